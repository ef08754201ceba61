"""scripts/kinds-table: what most gave, who gave something else by letter, and nothing filled in."""

import subprocess
import tempfile
import unittest
from pathlib import Path

from far import ROOT

HEADER = (
    "record,label,kernel,arch,page_bytes,kind,method,op,requested_bytes,returned_bytes,errno,content,"
    "split_pages,faulted_in_pages,swapped_in_pages,target_anon_huge_kib,vma_change,status,target_vm_size_kib"
)


def row(kind, method, op="page", asked=4096, came=4096, errno="", split=0, status="ok", grown=0):
    return f"probe,,6.1,x,4096,{kind},{method},{op},{asked},{came},{errno},ok,{split},0,0,0,0,{status},{grown}"


def stream(*rows):
    return "\n".join(["#cowitness 1", HEADER, *rows, "#end"]) + "\n"


def table(**machines):
    with tempfile.TemporaryDirectory() as folder:
        arguments = []
        for name, text in machines.items():
            path = Path(folder, name)
            path.write_text(text, encoding="utf-8")
            arguments.append(f"{name.replace('_', ':')}={path}")
        return subprocess.run([ROOT / "scripts" / "kinds-table", *arguments], capture_output=True, text=True, check=True).stdout


def machine(split, *more):
    return stream(row("heap", "none", came=""), row("heap", "vmread", split=split), *more)


class KindsTable(unittest.TestCase):
    def test_who_differs_has_a_letter(self):
        said = table(old_x=machine(0), old_a=machine(0), mid_x=machine(1), mid_a=machine(1), new_x=machine(1))
        self.assertIn("| heap | - | read S; a: read |", said)
        self.assertIn("- a: old\n", said)

    def test_the_letter_is_the_same_where_the_others_lack_the_kind(self):
        tagged = [row("tagged", "none", came=""), row("tagged", "vmread", split=1)]
        lacks = [row("tagged", method, came="", status="skipped:no-such-kind-here") for method in ("none", "vmread")]
        unsplit = [row("tagged", "none", came=""), row("tagged", "vmread")]
        said = table(old_x=machine(0, *lacks), old_a=machine(0, *unsplit), mid_x=machine(1, *lacks),
                     mid_a=machine(1, *tagged), new_a=machine(1, *tagged))
        self.assertIn("| tagged (b: no-such-kind-here) | - | read S; a: read |", said)
        self.assertIn("- a: old\n- b: all of x\n", said)

    def test_a_mapping_that_grew_is_a_change(self):
        rows = [row("below-stack", "none", came=""), row("below-stack", "proc", grown=4), row("below-stack", "ptrace", grown=16)]
        said = table(one_x=stream(*rows, row("below-stack", "hybrid")))
        self.assertIn("| below-stack | read V | - | - | read V | - | - | read |\n", said)

    def test_rows_that_cannot_tell_are_refused(self):
        old = stream(row("heap", "none", came="")).replace(",target_vm_size_kib", "")
        with self.assertRaises(subprocess.CalledProcessError) as refused:
            table(one_x=old)
        self.assertIn("from before probe told how mappings grow", refused.exception.stderr)

    def test_what_runs_over_an_end_and_what_is_left(self):
        over = {"op": "cross", "asked": 8192}
        rows = [row("file-end", "none", came="")]
        rows += [row("file-end", "none", came="", **over), row("file-end", "proc", errno="EIO", **over)]
        rows += [row("file-end", "proc-seek", errno="EIO", **over)]
        rows += [row("file-end", "hybrid", status="skipped:left-unread", **over)]
        rows += [row("file-end", "kcore", came="", status="skipped:not-in-this-kernel", **over)]
        said = table(one_x=stream(*rows))
        self.assertIn("| file-end | - | - | - | - | - | - |\n", said)
        self.assertIn("| file-end, and over its end | 1 page, EIO | - | - | - | - | 1 page, left |", said)


if __name__ == "__main__":
    unittest.main()
