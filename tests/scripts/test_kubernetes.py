"""scripts/kubernetes.yaml against the schemas of Kubernetes, and its privileges."""

import copy
import re
import unittest

from far import ROOT

MANIFEST = ROOT / "scripts/kubernetes.yaml"
# The oldest that is still in wide use, and the newest that the validator knows.
VERSIONS = ("1.30", "1.37")


def misspell(manifest, path, wrong):
    """The manifest with the last name of `path` replaced by `wrong`."""
    changed = copy.deepcopy(manifest)
    *way, name = path
    place = changed
    for step in way:
        place = place[step]
    place[wrong] = place.pop(name)
    return changed


class Manifest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # From tests/scripts/requirements.txt: their absence is a failure.
        import kubernetes_validate
        import yaml

        cls.validator = kubernetes_validate
        cls.manifest = yaml.safe_load(MANIFEST.read_text())

    def validate(self, manifest, version):
        self.validator.validate(manifest, version, strict=True)

    def test_it_is_valid(self):
        for version in VERSIONS:
            self.validate(self.manifest, version)

    def test_misspelt_fields_are_refused(self):
        pod = ("spec", "template", "spec")
        container = (*pod, "containers", 0)
        for path, wrong in [
            (("spec", "backoffLimit"), "backofLimit"),
            ((*pod, "automountServiceAccountToken"), "autoMountServiceAccountToken"),
            ((*pod, "securityContext", "runAsNonRoot"), "runAsNonroot"),
            ((*container, "securityContext", "readOnlyRootFilesystem"), "readOnlyRootFileSystem"),
            ((*container, "image"), "images"),
        ]:
            for version in VERSIONS:
                with self.subTest(wrong=wrong, version=version):
                    with self.assertRaises(self.validator.ValidationError) as caught:
                        self.validate(misspell(self.manifest, path, wrong), version)
                    self.assertIn(wrong, str(caught.exception))

    def test_a_value_of_another_type_is_refused(self):
        changed = copy.deepcopy(self.manifest)
        changed["spec"]["backoffLimit"] = "none"
        with self.assertRaises(self.validator.ValidationError):
            self.validate(changed, VERSIONS[0])

    def test_it_asks_for_nothing(self):
        pod = self.manifest["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        self.assertIs(pod["automountServiceAccountToken"], False)
        self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
        self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        context = container["securityContext"]
        self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
        self.assertIs(context["readOnlyRootFilesystem"], True)
        self.assertIs(context["allowPrivilegeEscalation"], False)
        self.assertEqual(container["resources"]["limits"], container["resources"]["requests"])
        for name in ("hostPID", "hostNetwork", "hostIPC", "volumes", "serviceAccountName"):
            self.assertNotIn(name, pod)

    def test_image_and_manifest_agree_on_the_user(self):
        containerfile = (ROOT / "scripts/Containerfile").read_text()
        user, group = re.search(r"^USER (\d+):(\d+)$", containerfile, re.MULTILINE).groups()
        context = self.manifest["spec"]["template"]["spec"]["securityContext"]
        self.assertEqual((context["runAsUser"], context["runAsGroup"]), (int(user), int(group)))


if __name__ == "__main__":
    unittest.main()
