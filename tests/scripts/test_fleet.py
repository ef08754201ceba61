"""scripts/fleet.yml on three real sshd, of which one fails; and on what else can go wrong."""

import getpass
import json
import os
import re
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
        return self.play_inventory(inventory, *options)

    def play_inventory(self, inventory, *options):
        return subprocess.run(
            ["ansible-playbook", "-i", inventory, *options, ROOT / "scripts/fleet.yml"],
            env=os.environ | {"ANSIBLE_HOME": str(self.here / "ansible"), "PWD": str(self.here)},
            cwd=self.here, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
        )

    def collected(self, fleet):
        """The lab's table of what the folder holds: by host, a row's cells by column."""
        lab = ["cargo", "run", "--quiet", "--release", "--locked", "--package", "cowitness-lab", "--"]
        done = subprocess.run(
            [*lab, "matrix", "--collect", fleet], cwd=ROOT, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line.strip("| \n") for line in done.stdout.splitlines() if line.startswith("|")]
        head, _, *rows = [[cell.strip() for cell in line.split("|")] for line in lines]
        return {row[0]: dict(zip(head, row)) for row in rows}

    @staticmethod
    def by_reader(row, head):
        """The parts of the cell whose column is `head` and the readers' names."""
        (column,) = (column for column in row if column.startswith(head))
        return dict(zip(column.removeprefix(head).split(" / "), row[column].split(" / "), strict=True))

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
                "text": self.variables(first, cowitness_args="selftest  then env"),
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
        text = (fleet / "text/results.csv").read_text()
        self.assertRegex(text, r"(?s)\Aok clock.*\n[0-9]+ passed, 0 failed, [0-9]+ skipped\n#cowitness 1\n#")
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

    def test_words_of_another_kind_are_refused_before_anything_is_removed(self):
        machine = self.enter(FarMachine("127.0.0.2"))
        kept = self.here / "fleet/only/results.csv"
        kept.parent.mkdir(parents=True)
        kept.write_text("of an earlier run\n")
        for words in ({"bench": None}, [], "", 7, [["bench"]]):
            done = self.play({"only": self.variables(machine, cowitness_args=words)})
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn("cowitness_args is a list of words or a string of them", done.stdout)
            self.assertEqual(kept.read_text(), "of an earlier run\n")

    def test_by_default_the_lab_gets_all_it_needs(self):
        """Without any words, and with the inventory that the playbook's head shows."""
        machine = self.enter(FarMachine("127.0.0.2"))
        inventory = self.here / "inventory"
        shown = re.search(r"^#     (first +ansible_host.*)$", (ROOT / "scripts/fleet.yml").read_text(), re.MULTILINE)[1]
        inventory.write_text(
            shown.replace("192.0.2.1", machine.address).replace("=root", f"={getpass.getuser()}")
            + f" ansible_port={machine.port} ansible_ssh_private_key_file={machine.key}"
            + f" ansible_ssh_common_args='-oUserKnownHostsFile={machine.known_hosts} -F none'\n"
        )
        done = self.play_inventory(inventory)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        row = self.collected(self.here / "fleet")["first"]
        # Which pages are split comes from `bench`, holes from `probe`.
        split, hole = self.by_reader(row, "% split by "), self.by_reader(row, "hole by ")
        self.assertEqual(split["proc"], "0")
        self.assertRegex(split["vmread"], r"^[0-9]+(\.[0-9]+)?$")
        self.assertEqual((hole["proc"], hole["vmread"]), ("EIO", "EFAULT"))


if __name__ == "__main__":
    unittest.main()
