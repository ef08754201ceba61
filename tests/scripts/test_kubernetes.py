"""scripts/kubernetes.yaml against the schemas of Kubernetes, and its privileges; what is
collected from its pods."""

import copy
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from far import ROOT, SMALL_BENCH, Case

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
            (("spec", "backoffLimitPerIndex"), "backoffLimitPerindex"),
            (("spec", "completionMode"), "completionsMode"),
            ((*pod, "topologySpreadConstraints", 0, "topologyKey"), "topologykey"),
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
        changed["spec"]["backoffLimitPerIndex"] = "none"
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

    def test_several_nodes_are_two_numbers(self):
        changed = copy.deepcopy(self.manifest)
        changed["spec"] |= {"completions": 3, "parallelism": 3}
        for version in VERSIONS:
            self.validate(changed, version)
        self.assertEqual(changed["spec"]["completionMode"], "Indexed")
        # With it the first pod that fails would end the others.
        self.assertNotIn("backoffLimit", changed["spec"])
        template = changed["spec"]["template"]
        (spread,) = template["spec"]["topologySpreadConstraints"]
        self.assertEqual((spread["topologyKey"], spread["maxSkew"]), ("kubernetes.io/hostname", 1))
        self.assertEqual(spread["labelSelector"]["matchLabels"], template["metadata"]["labels"])

    def test_image_and_manifest_agree_on_the_user(self):
        containerfile = (ROOT / "scripts/Containerfile").read_text()
        user, group = re.search(r"^USER (\d+):(\d+)$", containerfile, re.MULTILINE).groups()
        context = self.manifest["spec"]["template"]["spec"]["securityContext"]
        self.assertEqual((context["runAsUser"], context["runAsGroup"]), (int(user), int(group)))


# In kubectl's place: there is no cluster here. It answers from the files of its directory.
KUBECTL = """#!/bin/sh
here=$(dirname "$0")
[ "$1 $2" = "--context lab" ] || { echo "not the cluster: $*" >&2; exit 1; }
shift 2
case $* in
"get job cowitness -o json") cat "$here/job" ;;
"get pods -l job-name=cowitness -o json") cat "$here/pods" ;;
"logs "*) cat "$here/log.$2" ;;
*) echo "what: $*" >&2; exit 1 ;;
esac
"""


class Collecting(Case):
    def setUp(self):
        import yaml

        self.here = Path(self.enter(tempfile.TemporaryDirectory()))
        self.args = yaml.safe_load(MANIFEST.read_text())["spec"]["template"]["spec"]["containers"][0]["args"]
        kubectl = self.here / "kubectl"
        kubectl.write_text(KUBECTL)
        kubectl.chmod(0o755)
        self.pods = []
        self.job("Complete")

    def job(self, condition):
        conditions = [{"type": condition, "status": "True"}]
        (self.here / "job").write_text(json.dumps({"kind": "Job", "status": {"conditions": conditions}}))

    def pod(self, name, node, state, log=None):
        import kubernetes_validate

        container = {"name": "cowitness", "image": "i", "args": self.args}
        told = {"name": "cowitness", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        pod = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [container]} | ({"nodeName": node} if node else {}),
            "status": {"phase": "Pending"} | ({"containerStatuses": [told]} if state else {}),
        }
        # As the cluster's schema has it, so that what is read here is there.
        kubernetes_validate.validate(pod, VERSIONS[0], strict=True)
        self.pods.append(pod)
        if log is not None:
            (self.here / f"log.{name}").write_text(log)

    def collect(self, *options):
        (self.here / "pods").write_text(json.dumps({"items": self.pods}))
        return subprocess.run(
            [ROOT / "scripts/kubernetes-collect", "-o", self.here / "fleet", *options, "--", "--context", "lab"],
            env=os.environ | {"PATH": f"{self.here}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )

    def files(self):
        fleet = self.here / "fleet"
        return {str(path.relative_to(fleet)): path.read_text() for path in fleet.glob("*/*")}

    @staticmethod
    def ended(code):
        return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}

    def real_log(self):
        """What the image's program writes with the manifest's words, by an executable from here."""
        subprocess.run([ROOT / "scripts/build-appliance", os.uname().machine], check=True, capture_output=True)
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        small = [word for arg in self.args for word in ([arg, *SMALL_BENCH[1:]] if arg == "bench" else [arg])]
        program = target / f"appliance/{os.uname().machine}/cowitness"
        return subprocess.run(
            [program, *small], check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ).stdout

    def test_whole_logs_of_each_node_and_a_reason_for_each_other(self):
        log = self.real_log()
        old = self.here / "fleet/cut/results.csv"
        old.parent.mkdir(parents=True)
        old.write_text("of an earlier run\n")
        self.pod("p0", "good", self.ended(0), log)
        self.pod("p1", "cut", self.ended(0), log[len(log) // 2 :])
        self.pod("p2", "invalid", self.ended(3), log)
        self.pod("p3", "no-image", {"waiting": {"reason": "ImagePullBackOff"}})
        self.pod("p4", None, None)
        self.pod("p5", "good", self.ended(0), log)
        self.job("Failed")
        done = self.collect()
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        files = self.files()
        self.assertRegex(files.pop("cut/failed"), r"\Aexit status 0: the log is not whole \(.*\)\n\Z")
        self.assertEqual(files, {
            "good/results.csv": log,
            "cut/results.csv.partial": log[len(log) // 2 :],
            "invalid/results.csv": log,
            "invalid/failed": "exit status 3: Error\n",
            "no-image/failed": "not started: ImagePullBackOff\n",
            "p4/failed": "Pending, not ended\n",
            # A second pod on a node does not take the first one's place.
            "p5/results.csv": log,
        })

    def test_all_well(self):
        log = self.real_log()
        self.pod("p0", "one", self.ended(0), log)
        done = self.collect()
        self.assertEqual((done.returncode, self.files()), (0, {"one/results.csv": log}), done.stderr)

    def test_a_job_that_is_not_over(self):
        self.job("Suspended")
        self.pod("p0", "one", {"running": {}})
        done = self.collect("--timeout", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the Job is not over after 1 s", done.stderr)
        self.assertEqual(self.files(), {"one/failed": "Pending, not ended\n"})

    def test_what_kubectl_refuses_is_said(self):
        (self.here / "job").unlink()
        done = self.collect()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Ascripts/kubernetes-collect: error: kubectl get job cowitness: .*No such file.*\n\Z")


if __name__ == "__main__":
    unittest.main()
