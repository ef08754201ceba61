//! What a machine was asked to do: the words behind `--`, read as its init reads them.

use cowitness::boot_line::{self, Command, DEFAULT, OnDone, THEN};

/// Words that make the appliance explain itself instead of running a command.
const EXPLAIN: [&str; 4] = ["-h", "--help", "-V", "--version"];

/// The commands, and what follows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Each with its words, in order; none if `--on-done` makes no sense.
    pub commands: Vec<Task>,
    /// Whether the machine stays up afterwards.
    pub stays_up: bool,
    /// Whether init becomes another program, which may write what it likes.
    pub becomes: bool,
}

/// One command and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task(pub Vec<String>);

impl Asked {
    /// Of `words`, as init gets them.
    #[must_use]
    pub fn of(words: &[String]) -> Self {
        let word = |index: usize| words.get(index).map(String::as_bytes);
        // Init says so itself, and gives the verdict `error`.
        let Ok((on_done, mut first)) = boot_line::on_done(&word) else {
            return Self {
                commands: Vec::new(),
                stays_up: false,
                becomes: false,
            };
        };
        let mut commands = Vec::new();
        loop {
            let command = Command::at(&word, first);
            commands.push(match command.is_default() {
                true => Task(vec![DEFAULT.to_owned()]),
                false => Task(words[command.first..command.end].to_vec()),
            });
            match command.next {
                Some(next) => first = next,
                None => break,
            }
        }
        let becomes = matches!(on_done, OnDone::Become(_));
        Self {
            commands,
            stays_up: becomes || on_done == OnDone::Halt,
            becomes,
        }
    }
}

impl Task {
    /// The command's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// As init repeats it on the console.
    #[must_use]
    pub fn line(&self) -> String {
        self.0.join(" ")
    }

    /// Whether it only prints a help text or a version.
    #[must_use]
    pub fn explains(&self) -> bool {
        self.0.iter().any(|word| EXPLAIN.contains(&&**word))
    }

    /// Each long option with its value, as far as the words tell them apart.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        let following = self.0.iter().skip(1).map(|word| Some(&**word));
        let following = following.chain([None]);
        self.0.iter().zip(following).filter_map(|(word, next)| {
            let word = word.strip_prefix("--")?;
            match word.split_once('=') {
                Some(option) => Some(option),
                None => Some((word, next.filter(|next| !next.starts_with('-'))?)),
            }
        })
    }
}

/// The word between two commands, as text.
#[must_use]
pub fn then() -> &'static str {
    str::from_utf8(THEN).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Asked {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Asked::of(&words)
    }

    fn lines(line: &str) -> Vec<String> {
        asked(line).commands.iter().map(Task::line).collect()
    }

    #[test]
    fn words_are_read_as_init_reads_them() {
        let cases: [(&str, &[&str], bool); 9] = [
            ("", &["selftest"], false),
            ("--on-done=halt", &["selftest"], true),
            ("--on-done halt selftest", &["selftest"], true),
            ("--on-done reboot env", &["env"], false),
            ("--on-done=shell /bin/sh env", &["env"], true),
            ("--on-done shell /sh", &["selftest"], true),
            ("env then", &["env", "selftest"], false),
            ("then then", &["selftest", "selftest", "selftest"], false),
            (
                "bench --on-done=halt then probe -q",
                &["bench --on-done=halt", "probe -q"],
                false,
            ),
        ];
        for (line, commands, stays_up) in cases {
            assert_eq!(lines(line), commands, "{line}");
            assert_eq!(asked(line).stays_up, stays_up, "{line}");
        }
        assert_eq!(lines("--on-done=sleep env"), [""; 0]);
    }

    #[test]
    fn options_and_their_values_are_told_apart() {
        let asked = asked("bench --mb=8 --block 64K -q --label=a=b --first-write");
        let options: Vec<_> = asked.commands[0].options().collect();
        assert_eq!(options, [("mb", "8"), ("block", "64K"), ("label", "a=b")]);
        assert!(!asked.commands[0].explains());
    }
}
