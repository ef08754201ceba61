"""scripts/fleet.yml on three real sshd, of which one fails; and on what else can go wrong."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from far import ENDLESS_BENCH, ROOT, SMALL_BENCH, Case, FarMachine, eventually


class Fleet(Case):
    def setUp(self):
        self.assertTrue(shutil.which("ansible-playbook"), "no ansible-playbook: tests/scripts/requirements.txt")
        self.here = Path(self.enter(tempfile.TemporaryDirectory()))

    def full(self, machine):
        """Fills its directory (root), or takes it away."""
        if os.geteuid() != 0:
            machine.tmp.rmdir()
            self.addCleanup(machine.tmp.mkdir)
            return "cannot make a directory in"
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", machine.tmp], check=True)
        self.addCleanup(subprocess.run, ["umount", machine.tmp], check=True)
        return "No space left on device"

    @staticmethod
    def variables(machine, **more):
        return {
            "ansible_host": machine.address,
            "ansible_port": machine.port,
            "ansible_ssh_private_key_file": str(machine.key),
            "ansible_ssh_common_args": f"-o 'UserKnownHostsFile {machine.known_hosts}' -oIdentitiesOnly=yes -F none",
        } | more

    def play(self, hosts, *options):
        inventory = self.here / "inventory.json"
        everywhere = {"cowitness_args": [*SMALL_BENCH, "-q"]}
        inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": everywhere}}))
        return subprocess.run(
            ["ansible-playbook", "-i", inventory, *options, ROOT / "scripts/fleet.yml"],
            env=os.environ | {"ANSIBLE_HOME": str(self.here / "ansible"), "PWD": str(self.here)},
            cwd=self.here, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
        )

    def assert_failed(self, folder, reason):
        self.assertFalse((folder / "results.csv").exists())
        line = (folder / "failed").read_text()
        self.assertRegex(line, rf"\Aexit status [0-9]+: [^\n]*{reason}[^\n]*\n\Z")

    def test_one_folder_a_machine_and_a_reason_for_each_that_failed(self):
        machines = [self.enter(FarMachine(f"127.0.0.{n}")) for n in (2, 3, 4)]
        first, second, third = machines
        no_space = self.full(third)
        fleet = self.here / "fleet"
        (fleet / "second").mkdir(parents=True)
        (fleet / "second/failed").write_text("of an earlier run\n")
        (fleet / "down").mkdir()
        (fleet / "down/results.csv").write_text("of an earlier run\n")
        endless = {"cowitness_args": ENDLESS_BENCH, "cowitness_timeout": 2}
        done = self.play(
            {
                "first": self.variables(first),
                "second": self.variables(second),
                "third": self.variables(third),
                "down": self.variables(first, ansible_port=1),
                "slow": self.variables(second, **endless),
                "refuses": self.variables(first, cowitness_args=["bench", "--nope"]),
            },
        )
        said = done.stdout + done.stderr
        self.assertNotEqual(done.returncode, 0, said)
        for name in ("first", "second"):
            files = sorted(path.name for path in (fleet / name).iterdir())
            self.assertEqual(files, ["results.csv", "stderr.txt"], said)
            stream = (fleet / name / "results.csv").read_text().splitlines()
            self.assertRegex(stream[-1], "^#end rows=4 crc32=")
        self.assert_failed(fleet / "third", no_space)
        self.assert_failed(fleet / "down", "Connection refused")
        self.assert_failed(fleet / "slow", "not done after 2 s")
        self.assert_failed(fleet / "refuses", "unknown option '--nope'")
        for machine in (first, second):
            eventually("the machine is clean", machine.is_clean, 10)
        self.assertEqual(third.processes(), [])

    def test_a_fleet_without_failures_passes(self):
        machine = self.enter(FarMachine("127.0.0.2"))
        elsewhere = self.here / "else where"
        done = self.play({"only": self.variables(machine)}, "-e", json.dumps({"cowitness_output": str(elsewhere)}))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(path.name for path in (elsewhere / "only").iterdir()), ["results.csv", "stderr.txt"])


if __name__ == "__main__":
    unittest.main()
