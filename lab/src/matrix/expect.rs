//! Findings against what the table expects. Expectations are compared, never shown in
//! place of a finding.

use super::findings::Findings;
use crate::kernels::table::{Expect, Kernel};

/// The readers of each class; what holds for a class holds for each of them.
const PROC: [&str; 2] = ["proc", "proc-seek"];
const VMREAD: [&str; 2] = ["vmread", "vmread-batch"];

/// What a comparison came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Questions that were answered as expected.
    pub agreed: usize,
    /// What was not, a line each.
    pub differences: Vec<String>,
}

/// Compares what was found with what `kernel` has to show. With `complete`, a question
/// without an answer is a difference.
#[must_use]
pub fn compare(found: &Findings, kernel: &Kernel, complete: bool) -> Compared {
    let mut compared = Compared::default();
    let measured = found.page_bytes > 0;
    let arch = measured.then_some(&*found.arch);
    compared.check(complete, "the CPU", arch, kernel.arch.name());
    let bytes = measured.then(|| found.page_bytes.to_string());
    let expected = (kernel.page_kib * 1024).to_string();
    compared.check(complete, "bytes in a page", bytes.as_deref(), &expected);
    for (methods, percent) in classes(&kernel.expect) {
        for method in methods {
            compared.split(found, method, percent, complete);
        }
    }
    for (kind, methods, says) in answers(&kernel.expect) {
        for method in methods {
            let what = format!("{kind} by {method}");
            compared.check(complete, &what, found.says(kind, method), says);
        }
    }
    compared
}

fn classes(expect: &Expect) -> [([&'static str; 2], u64); 2] {
    [(PROC, expect.proc_split), (VMREAD, expect.vmread_split)]
}

fn answers(expect: &Expect) -> [(&'static str, [&'static str; 2], &str); 4] {
    [
        ("prot-none", PROC, &expect.prot_none_proc),
        ("prot-none", VMREAD, &expect.prot_none_vmread),
        ("hole", PROC, &expect.hole_proc),
        ("hole", VMREAD, &expect.hole_vmread),
    ]
}

impl Compared {
    fn check(&mut self, complete: bool, what: &str, found: Option<&str>, expected: &str) {
        match found {
            Some(found) if found == expected => self.agreed += 1,
            Some(found) => {
                let difference = format!("{what}: {found}, expected {expected}");
                self.differences.push(difference);
            }
            None if complete => self.differences.push(format!("{what}: not measured")),
            None => {}
        }
    }

    fn split(&mut self, found: &Findings, method: &str, percent: u64, complete: bool) {
        let what = format!("split by {method}");
        let expected = percent.to_string();
        let Some(split) = found.split(method) else {
            return self.check(complete, &what, None, &expected);
        };
        let says = split.percent();
        let says = if split.is_exactly(percent) {
            &expected
        } else {
            &says
        };
        self.check(complete, &what, Some(says), &expected);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::table::Table;
    use crate::matrix::findings::{Answer, Split};

    fn kernel() -> Kernel {
        let table = Table::built_in();
        let kernel = table
            .kernels
            .iter()
            .find(|kernel| kernel.name == "6.12-x86_64");
        kernel.unwrap().clone()
    }

    fn as_expected() -> Findings {
        let split = |method: &str, split| Split {
            method: method.to_owned(),
            tracked: 2048,
            split,
            ok: 2,
            not_ok: 0,
        };
        let answer = |kind: &str, method: &str, says: &str| Answer {
            kind: kind.to_owned(),
            method: method.to_owned(),
            says: says.to_owned(),
        };
        let mut found = Findings {
            kernel: "6.12.1".to_owned(),
            arch: "x86_64".to_owned(),
            page_bytes: 4096,
            ..Findings::default()
        };
        for method in PROC {
            found.splits.push(split(method, 0));
            found.answers.push(answer("prot-none", method, "read"));
            found.answers.push(answer("hole", method, "EIO"));
        }
        for method in VMREAD {
            found.splits.push(split(method, 2048));
            found.answers.push(answer("prot-none", method, "EFAULT"));
            found.answers.push(answer("hole", method, "EFAULT"));
        }
        found
    }

    #[test]
    fn what_is_as_expected_agrees() {
        let compared = compare(&as_expected(), &kernel(), true);
        assert_eq!(compared.differences, Vec::<String>::new());
        assert_eq!(compared.agreed, 14);
    }

    #[test]
    fn each_difference_is_named() {
        let mut found = as_expected();
        found.splits[1].split = 3;
        found.splits.pop();
        found.answers[0].says = "EIO".to_owned();
        found.page_bytes = 16384;
        let compared = compare(&found, &kernel(), true);
        assert_eq!(
            compared.differences,
            [
                "bytes in a page: 16384, expected 4096",
                "split by proc-seek: 0.14, expected 0",
                "split by vmread-batch: not measured",
                "prot-none by proc: EIO, expected read",
            ]
        );
    }

    #[test]
    fn what_was_not_asked_is_a_difference_only_where_everything_was() {
        let nothing = Findings::default();
        assert_eq!(compare(&nothing, &kernel(), false), Compared::default());
        assert_eq!(compare(&nothing, &kernel(), true).differences.len(), 14);
    }
}
