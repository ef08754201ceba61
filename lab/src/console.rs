//! A guest's console, read: the commands that init ran, what it says of their ends, its
//! verdict, and the signs that a kernel is dead or stuck. Pure: text in, facts out.

use crate::readers::READERS;
use crate::text::sentence;

const RUN: &str = "cowitness: init: run: ";
const END: &str = "cowitness: init: end: ";
const VERDICT: &str = "cowitness: verdict: ";
const TAINTED: &str = "cowitness: init: kernel tainted: ";
const ERROR: &str = "cowitness: init: error: ";

/// What init thinks of all its commands together, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All is well.
    Pass,
    /// A check of selftest failed.
    Fail,
    /// A measurement is not valid or not possible there.
    Invalid,
    /// A command failed in another way.
    Error,
}

const VERDICTS: [(&str, Verdict); 4] = [
    ("pass", Verdict::Pass),
    ("fail", Verdict::Fail),
    ("invalid", Verdict::Invalid),
    ("error", Verdict::Error),
];

/// A line that decides something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Init's last line.
    Verdict(Verdict),
    /// The kernel has panicked: its reason.
    Panic(String),
    /// The kernel says that it or a task is stuck.
    Stall(String),
    /// The kernel could not execute init: its path and the error number.
    NotExecuted(String),
    /// The kernel says, or init says of it, that something in it is broken.
    Oops(String),
    /// Init could not do something itself: what, and why.
    InitError(String),
}

/// What a kernel says when it is stuck, as `kernel/watchdog.c`, `kernel/rcu/tree_stall.h`
/// and `kernel/hung_task.c` have it.
const STALLS: [&[&str]; 5] = [
    &["BUG: soft lockup"],
    &["hard LOCKUP"],
    &["rcu: INFO: rcu_", "detected stall"],
    &["rcu: INFO: rcu_", "self-detected stall"],
    &["INFO: task ", " blocked for more than "],
];

/// How the lines begin with which a kernel says that something in it is broken:
/// `lib/bug.c`, `kernel/panic.c`, `arch/*/mm/fault.c`, `arch/*/kernel/traps.c`. "Bad page
/// state" comes after `BUG: `, but not in every series.
const OOPSES: [&str; 5] = [
    "BUG: ",
    "WARNING: ",
    "Oops",
    "Bad page state",
    "Internal error: ",
];

/// What `line`, without its line feed, decides.
#[must_use]
pub fn sign(line: &str) -> Option<Sign> {
    let line = line.trim_end();
    if let Some(word) = line.strip_prefix(VERDICT) {
        let verdict = VERDICTS.iter().find(|(name, _)| *name == word);
        return verdict.map(|(_, verdict)| Sign::Verdict(*verdict));
    }
    if let Some(flags) = line.strip_prefix(TAINTED) {
        let flags = sentence(flags.as_bytes());
        return Some(Sign::Oops(format!("kernel tainted: {flags}")));
    }
    if let Some(error) = line.strip_prefix(ERROR) {
        return Some(Sign::InitError(sentence(error.as_bytes())));
    }
    let after = |marker: &str| {
        line.split_once(marker)
            .map(|(_, rest)| sentence(rest.as_bytes()))
    };
    // The end of a panic repeats its reason after "end ".
    if let Some(reason) = after("Kernel panic - not syncing: ") {
        return Some(Sign::Panic(reason));
    }
    if let Some(what) = after("Failed to execute ") {
        return Some(Sign::NotExecuted(what));
    }
    let stall = |words: &&[&str]| words.iter().all(|word| line.contains(word));
    let said = without_time(line);
    if STALLS.iter().any(stall) {
        return Some(Sign::Stall(sentence(said.as_bytes())));
    }
    let broken = OOPSES.iter().any(|start| said.starts_with(start));
    broken.then(|| Sign::Oops(sentence(said.as_bytes())))
}

/// Whether a line after the verdict is the kernel's own: with a time in front, or one of
/// `kernel/reboot.c`, which a kernel without times prints, too.
fn is_kernels(line: &str) -> bool {
    without_time(line).len() < line.len() || line.starts_with("reboot: ")
}

/// A kernel's line without the time in front of it.
fn without_time(line: &str) -> &str {
    let timed = line
        .strip_prefix('[')
        .and_then(|line| line.split_once("] "));
    timed.map_or(line, |(_, rest)| rest)
}

/// One command that init ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The command with its arguments, as init repeats it.
    pub command: String,
    /// Lines of the console before those of the command.
    pub line: usize,
    /// What it wrote, carriage returns and all.
    pub text: String,
    /// `status N` or `signal N`; `None`: init has not said.
    pub end: Option<String>,
}

impl Section {
    /// The command's first word.
    #[must_use]
    pub fn name(&self) -> &str {
        self.command.split(' ').next().unwrap_or("")
    }
}

/// A console, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Console {
    /// The commands, in order.
    pub sections: Vec<Section>,
    /// Everything that decides something, in order.
    pub signs: Vec<Sign>,
    /// The last line that is not empty; empty if there is none.
    pub last: String,
    /// The first line after a verdict that is neither the kernel's nor decides anything.
    pub stray: Option<String>,
}

/// Takes a console apart.
#[must_use]
pub fn read(bytes: &[u8]) -> Console {
    let text = String::from_utf8_lossy(bytes);
    let mut console = Console::default();
    // Nothing but a line that is whole is believed.
    let lines = text.split_inclusive('\n');
    for (number, line) in lines.enumerate() {
        let plain = line.trim_end();
        if !plain.is_empty() {
            console.last = sentence(plain.as_bytes());
        }
        let sign = sign(plain).filter(|_| line.ends_with('\n'));
        if sign.is_none() && !plain.is_empty() && !is_kernels(plain) && console.stray.is_none() {
            let over = console.verdict().is_some();
            console.stray = over.then(|| sentence(plain.as_bytes()));
        }
        // What init becomes after its verdict may well run commands of its own.
        if console.verdict().is_none() {
            console.section(number + 1, line, plain);
        }
        console.signs.extend(sign);
    }
    console
}

impl Console {
    /// Puts a line to the command it belongs to; `plain` is the line without its end.
    fn section(&mut self, number: usize, line: &str, plain: &str) {
        if let Some(command) = plain.strip_prefix(RUN) {
            self.sections.push(Section {
                command: command.to_owned(),
                line: number,
                text: String::new(),
                end: None,
            });
            return;
        }
        let last = self.sections.last_mut();
        let Some(section) = last.filter(|section| section.end.is_none()) else {
            return;
        };
        match plain.strip_prefix(END) {
            Some(end) => section.end = Some(end.to_owned()),
            None => section.text += line,
        }
    }

    /// Init's verdict, if it came to one; of several, the worst.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdicts().max()
    }

    /// Every verdict, in order.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.signs.iter().filter_map(|sign| match sign {
            Sign::Verdict(verdict) => Some(*verdict),
            _ => None,
        })
    }
}

/// What `selftest` counted, and what its lines are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selftest {
    /// Lines `ok`, `fail` and `skip`.
    pub lines: [u64; 3],
    /// The closing `N passed, N failed, N skipped`.
    pub closing: Option<[u64; 3]>,
    /// The lines `ok NAME: detail`, without `ok `.
    pub passes: Vec<String>,
    /// The lines `fail NAME: reason`, without `fail `.
    pub failures: Vec<String>,
    /// The lines `skip NAME: reason`, without `skip `.
    pub skips: Vec<String>,
    /// The names of all checks.
    pub names: Vec<String>,
    /// The first line after the closing count that is neither the kernel's nor a message.
    pub stray: Option<String>,
}

/// What `selftest` checks besides the readers, each of which has a check of its name.
const CHECKS: [&str; 11] = [
    "clock",
    "fault-counters",
    "evidence",
    "fork",
    "smaps",
    "smaps-rollup",
    "control",
    "memcpy",
    "prot-none",
    "prot-none-untouched",
    "hole",
];

impl Selftest {
    /// Why it is not what selftest writes, whatever its checks have found.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let [passed, failed, skipped] = self.lines;
        let Some([a, b, c]) = self.closing else {
            return Some("selftest has no closing count".to_owned());
        };
        if self.closing != Some(self.lines) {
            return Some(format!(
                "selftest counts {a} passed, {b} failed, {c} skipped; \
                 its lines are {passed}, {failed}, {skipped}"
            ));
        }
        if let Some(stray) = &self.stray {
            return Some(format!("selftest, after its closing count: {stray}"));
        }
        let readers = READERS.iter().map(|reader| reader.name);
        let mut wanted = CHECKS.into_iter().chain(readers);
        let missing = wanted.find(|name| !self.names.iter().any(|found| found == name));
        missing.map(|name| format!("selftest without its check '{name}'"))
    }

    /// The known fields that the kernel's smaps_rollup lacks, by the check of it; `None`: it did
    /// not pass, or says something else.
    #[must_use]
    pub fn rollup_lacks(&self) -> Option<Vec<String>> {
        let mut passes = self.passes.iter();
        let said = passes.find_map(|pass| pass.strip_prefix("smaps-rollup: "))?;
        let (counts, lacks) = said.split_once(" known fields")?;
        let lacks: Vec<String> = match lacks.strip_prefix(", without ") {
            Some(names) => names.split(", ").map(str::to_owned).collect(),
            None => Vec::new(),
        };
        let (there, known) = counts.split_once(" of ")?;
        let there: usize = there.parse().ok()?;
        (there + lacks.len() == known.parse().ok()?).then_some(lacks)
    }

    fn line(&mut self, line: &str) {
        let rest = ["ok ", "fail ", "skip "].map(|word| line.strip_prefix(word));
        for (count, rest) in self.lines.iter_mut().zip(rest) {
            *count += u64::from(rest.is_some());
        }
        let name = |rest: &str| rest.split(':').next().unwrap_or(rest).to_owned();
        self.names
            .extend(rest.iter().flatten().map(|rest| name(rest)));
        let [pass, failure, skip] = rest.map(|rest| rest.map(|rest| sentence(rest.as_bytes())));
        self.passes.extend(pass);
        self.failures.extend(failure);
        self.skips.extend(skip);
    }
}

/// Reads what `selftest` wrote.
#[must_use]
pub fn selftest(text: &str) -> Selftest {
    let mut found = Selftest::default();
    for line in text.lines().map(str::trim_end) {
        if found.closing.is_none() {
            found.line(line);
            found.closing = closing(line);
        } else if found.stray.is_none() && !may_follow(line) {
            found.stray = Some(sentence(line.as_bytes()));
        }
    }
    found
}

/// Whether a line may come after the closing count: the kernel's, or of standard error.
fn may_follow(line: &str) -> bool {
    line.is_empty() || is_kernels(line) || line.starts_with("cowitness: ")
}

fn closing(line: &str) -> Option<[u64; 3]> {
    let words = [" passed", " failed", " skipped"];
    let mut parts = line.split(", ");
    let mut counts = [0; 3];
    for (count, word) in counts.iter_mut().zip(words) {
        *count = parts.next()?.strip_suffix(word)?.parse().ok()?;
    }
    parts.next().is_none().then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_what_kernels_and_init_print() {
        let panic = |reason: &str| Some(Sign::Panic(reason.to_owned()));
        let cases = [
            (
                "cowitness: verdict: pass\r",
                Some(Sign::Verdict(Verdict::Pass)),
            ),
            ("cowitness: verdict: passed", None),
            (" cowitness: verdict: pass", None),
            (
                "[    1.0] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000200",
                panic("Attempted to kill init! exitcode=0x00000200"),
            ),
            (
                "[    1.0] Failed to execute /init (error -8)",
                Some(Sign::NotExecuted("/init (error -8)".to_owned())),
            ),
            ("[    1.0] reboot: Power down", None),
        ];
        for (line, wanted) in cases {
            assert_eq!(sign(line), wanted, "{line}");
        }
    }

    #[test]
    fn stalls_are_known_by_their_words() {
        for line in [
            "[   48.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [swapper/0:1]",
            "[   48.1] rcu: INFO: rcu_preempt self-detected stall on CPU",
            "[   48.1] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:",
            "[  242.1] INFO: task init:1 blocked for more than 120 seconds.",
            "[   48.1] watchdog: Watchdog detected hard LOCKUP on cpu 0",
        ] {
            let stall = without_time(line).to_owned();
            let found = sign(line);
            assert!(
                matches!(&found, Some(Sign::Stall(text)) if *text == stall),
                "{line}: {found:?}"
            );
        }
        assert_eq!(sign("rcu: Hierarchical RCU implementation."), None);
    }

    #[test]
    fn a_console_is_cut_into_commands() {
        let text = "boot\r\ncowitness: init: run: bench --mb=8 -q\r\n#cowitness 1\r\nrow\r\n\
                    cowitness: init: end: status 0\r\nnoise\r\n\
                    cowitness: init: run: selftest\r\nok one\r\n\
                    cowitness: init: end: signal 11\r\ncowitness: verdict: error\r\n";
        let console = read(text.as_bytes());
        let [bench, selftest] = &*console.sections else {
            panic!("{console:?}");
        };
        assert_eq!((bench.name(), bench.line), ("bench", 2));
        assert_eq!(bench.text, "#cowitness 1\r\nrow\r\n");
        assert_eq!(bench.end.as_deref(), Some("status 0"));
        assert_eq!(
            (&*selftest.command, &*selftest.text),
            ("selftest", "ok one\r\n")
        );
        assert_eq!(selftest.end.as_deref(), Some("signal 11"));
        assert_eq!(console.verdict(), Some(Verdict::Error));
        assert_eq!(console.last, "cowitness: verdict: error");
        let cut = text.len() - "\n".len();
        assert_eq!(read(&text.as_bytes()[..cut]).verdict(), None);
    }

    #[test]
    fn fields_that_are_lacking_are_read_and_counted() {
        let lacks = |text: &str| selftest(text).rollup_lacks();
        let some = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(
            lacks("ok smaps-rollup: 20 of 22 known fields, without Pss_Dirty, KSM\r\n"),
            some(&["Pss_Dirty", "KSM"])
        );
        assert_eq!(lacks("ok smaps-rollup: 22 of 22 known fields\n"), some(&[]));
        for text in [
            "ok smaps-rollup: 20 of 22 known fields, without KSM\n",
            "ok smaps-rollup: 20 of 22 known fields\n",
            "ok smaps-rollup\n",
            "skip smaps-rollup: ENOENT\n",
            "fail smaps-rollup: unknown field Pss_Moon\n",
        ] {
            assert_eq!(lacks(text), None, "{text}");
        }
    }

    #[test]
    fn selftest_is_counted() {
        let text = "ok a\r\nskip b: no such thing\r\nfail c: wrong bytes\r\n\
                    1 passed, 1 failed, 1 skipped\r\nok late\r\n";
        let found = selftest(text);
        assert_eq!(found.lines, [1, 1, 1]);
        assert_eq!(found.closing, Some([1, 1, 1]));
        assert_eq!(found.failures, ["c: wrong bytes"]);
        assert_eq!(found.names, ["a", "b", "c"]);
        assert_eq!(found.stray.as_deref(), Some("ok late"));
        assert_eq!(selftest("ok a\n1 passed\n").closing, None);
    }
}
