//! Findings against what the table expects. Expectations are compared, never shown in
//! place of a finding.

#[path = "expect_kinds.rs"]
mod kinds;
#[path = "expect_quiet.rs"]
mod quiet;

use super::findings::Findings;
use super::split::Split;
use super::version::version;
use crate::kernels::table::Kernel;
use crate::readers::{READERS, Reader};
use cowitness::proc::rollup;

/// What a comparison came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Questions that were answered as expected.
    pub agreed: usize,
    /// What was not, a line each.
    pub differences: Vec<String>,
}

/// What a machine has to show.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'e> {
    /// Its line of the table.
    pub kernel: &'e Kernel,
    /// What `uname -r` says there, as the package of its image has it.
    pub release: &'e str,
    /// Whether every question of the table was asked: one without an answer is a difference.
    pub complete: bool,
    /// The kinds of `probe` that it cannot have: its packages lack a module.
    pub lost: &'e [&'e str],
}

/// Compares what was found with what is expected.
#[must_use]
pub fn compare(found: &Findings, expected: &Expected<'_>) -> Compared {
    let Expected {
        kernel, complete, ..
    } = *expected;
    let mut compared = Compared::default();
    let measured = found.page_bytes > 0;
    let (bytes, table) = (
        found.page_bytes.to_string(),
        (kernel.page_kib * 1024).to_string(),
    );
    for (what, seen, wanted) in [
        ("the kernel", &*found.kernel, expected.release),
        ("the CPU", &*found.arch, kernel.arch.name()),
        ("bytes in a page", &*bytes, &*table),
    ] {
        compared.check(complete, what, measured.then_some(seen), wanted);
    }
    let expect = &kernel.expect;
    for Reader {
        name,
        class,
        in_bench,
    } in READERS
    {
        let percent = expect.split(class);
        if in_bench {
            let what = format!("split by {name}");
            compared.split(&found.splits, &what, name, percent, complete);
        }
        let what = format!("split by {name} in probe");
        compared.split(&found.probe_splits, &what, name, percent, complete);
        for (kind, says) in [
            ("prot-none", expect.prot_none(class)),
            ("hole", expect.hole(class)),
        ] {
            let what = format!("{kind} by {name}");
            compared.check(complete, &what, found.says(kind, name), says);
        }
    }
    let uname_v = found.note("kernel_version").unwrap_or_default();
    let version = version(expected.release, uname_v);
    kinds::compare(found, expected, version, &mut compared);
    quiet::compare(found, expected, version, &mut compared);
    // What lacks them says so; here is why.
    let modules = found.note("modules").filter(|note| note.contains(':'));
    let refused = modules.map(|note| format!("modules that did not load: {note}"));
    compared.differences.extend(refused);
    compared
}

impl Compared {
    /// Compares the known fields that smaps_rollup lacks, by selftest, with those that came
    /// after this kernel.
    pub fn rollup(&mut self, lacks: Option<&[String]>, expected: &Expected<'_>) {
        let (major, minor, _) = version(expected.release, "");
        let names = |names: Vec<&str>| match &*names {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        let lacks = lacks.map(|lacks| names(lacks.iter().map(String::as_str).collect()));
        let wanted = names(rollup::lacking((major, minor)).collect());
        let what = "fields that smaps_rollup lacks";
        self.check(expected.complete, what, lacks.as_deref(), &wanted);
    }

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

    fn split(&mut self, splits: &[Split], what: &str, method: &str, percent: u64, complete: bool) {
        let expected = percent.to_string();
        let Some(split) = splits.iter().find(|split| split.method == method) else {
            return self.check(complete, what, None, &expected);
        };
        let says = split.percent();
        let says = if split.is_exactly(percent) {
            &expected
        } else {
            &says
        };
        self.check(complete, what, Some(says), &expected);
    }
}

#[cfg(test)]
mod samples {
    use crate::kernels::table::{Kernel, Table};
    use crate::matrix::findings::Answer;

    /// What readers got: kind, reader, answer.
    pub(super) fn answers(of: &[(&str, &str, &str)]) -> Vec<Answer> {
        let answer = |&(kind, method, says): &(&str, &str, &str)| Answer {
            kind: kind.to_owned(),
            method: method.to_owned(),
            says: says.to_owned(),
        };
        of.iter().map(answer).collect()
    }

    /// A line of the table.
    pub(super) fn kernel(name: &str) -> Kernel {
        let mut kernels = Table::built_in().kernels.into_iter();
        kernels.find(|kernel| kernel.name == name).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::findings::{Answer, Seen};
    use crate::readers::Class;
    use crate::stream::Note;

    /// Questions of the table: the machine, and of each reader its splits and answers.
    const QUESTIONS: usize = 3 + 5 * 4 + 3;

    fn compared(found: &Findings, complete: bool) -> Compared {
        let release = "6.12.1";
        compare(
            found,
            &Expected {
                kernel: &samples::kernel("6.12-x86_64"),
                release,
                complete,
                lost: &[],
            },
        )
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
        for Reader {
            name,
            class,
            in_bench,
        } in READERS
        {
            let (pages, prot_none, hole) = match class {
                Class::Vmread => (2048, "EFAULT", "EFAULT"),
                Class::Proc | Class::Ptrace | Class::Hybrid => (0, "read", "EIO"),
            };
            found.splits.extend(in_bench.then(|| split(name, pages)));
            found.probe_splits.push(split(name, pages));
            found.answers.push(answer("prot-none", name, prot_none));
            found.answers.push(answer("hole", name, hole));
        }
        found
    }

    #[test]
    fn what_is_as_expected_agrees() {
        let compared = compared(&as_expected(), true);
        assert_eq!(compared.differences, Vec::<String>::new());
        assert_eq!(compared.agreed, QUESTIONS);
    }

    #[test]
    fn each_difference_is_named() {
        let mut found = as_expected();
        found.kernel = "6.1.0".to_owned();
        found.splits[1].split = 3;
        found.splits.pop();
        found.answers[0].says = "zeros".to_owned();
        found.page_bytes = 16384;
        assert_eq!(
            compared(&found, true).differences,
            [
                "the kernel: 6.1.0, expected 6.12.1",
                "bytes in a page: 16384, expected 4096",
                "prot-none by proc: zeros, expected read",
                "split by proc-seek: 0.14, expected 0",
                "split by hybrid: not measured",
            ]
        );
    }

    #[test]
    fn a_module_that_did_not_load_is_a_difference() {
        let with = |value: &str| {
            let mut found = as_expected();
            found.streams.push(Seen {
                notes: vec![Note {
                    key: "modules".to_owned(),
                    value: value.to_owned(),
                }],
                checksum: 0,
                rows: 1,
            });
            compared(&found, true).differences.join("; ")
        };
        assert_eq!(with("zsmalloc,zram"), "");
        assert_eq!(with("absent"), "");
        assert_eq!(
            with("zsmalloc,zram:ENOKEY"),
            "modules that did not load: zsmalloc,zram:ENOKEY"
        );
    }

    #[test]
    fn fields_of_smaps_rollup_are_those_of_the_version() {
        let kernel = samples::kernel("5.10-x86_64");
        let of = |release: &str, complete: bool, lacks: Option<&[&str]>| {
            let expected = Expected {
                kernel: &kernel,
                release,
                complete,
                lost: &[],
            };
            let lacks: Option<Vec<String>> =
                lacks.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            let mut compared = Compared::default();
            compared.rollup(lacks.as_deref(), &expected);
            (compared.agreed, compared.differences.join("; "))
        };
        let agreed = (1, String::new());
        assert_eq!(of("5.10.0-32", true, Some(&["Pss_Dirty", "KSM"])), agreed);
        assert_eq!(of("6.1.0-53", false, Some(&["KSM"])), agreed);
        assert_eq!(of("6.12.117", true, Some(&[])), agreed);
        let what = "fields that smaps_rollup lacks";
        let more = of("6.12.117", true, Some(&["KSM"]));
        assert_eq!(more, (0, format!("{what}: KSM, expected none")));
        let fewer = of("5.10.0-32", false, Some(&["KSM"]));
        assert_eq!(fewer, (0, format!("{what}: KSM, expected Pss_Dirty, KSM")));
        let unsaid = of("6.12.117", true, None);
        assert_eq!(unsaid, (0, format!("{what}: not measured")));
        assert_eq!(of("6.12.117", false, None), (0, String::new()));
    }

    #[test]
    fn what_was_not_asked_is_a_difference_only_where_everything_was() {
        let nothing = Findings::default();
        assert_eq!(compared(&nothing, false), Compared::default());
        assert_eq!(compared(&nothing, true).differences.len(), QUESTIONS);
    }
}
