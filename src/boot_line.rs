//! Several commands in one line, and what the words behind `--` on a kernel's command line
//! ask the first process for:
//!
//! ```text
//! COMMAND [WORD]... [then COMMAND...]...
//! [--on-done poweroff|reboot|halt|shell PATH] [COMMAND [WORD]... [then COMMAND...]...]
//! ```
//!
//! Pure, and shared with the lab, which has to know what a machine was asked to do.

/// The most words that a kernel hands to its first process (MAX_INIT_ARGS, init/main.c).
pub const WORDS_MAX: usize = 32;

/// The word between two commands.
pub const THEN: &[u8] = b"then";

/// What is run if no command is named.
pub const DEFAULT: &str = "selftest";

const ON_DONE: &[u8] = b"--on-done";

/// What to do when all commands have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDone {
    /// Power off.
    PowerOff,
    /// Start again.
    Reboot,
    /// Stop, powered on.
    Halt,
    /// Become the program that the word of this number names.
    Become(usize),
}

/// `--on-done` with a value that makes no sense: the number of the word at fault, which may
/// be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadOnDone(pub usize);

/// Words by their number, from 0 on; `None` past the last.
pub type Words<'w> = &'w dyn Fn(usize) -> Option<&'w [u8]>;

/// What `--on-done` says, if it comes first, and the number of the first word behind it.
///
/// # Errors
/// [`BadOnDone`].
pub fn on_done(words: Words<'_>) -> Result<(OnDone, usize), BadOnDone> {
    let Some(rest) = words(0).and_then(|word| word.strip_prefix(ON_DONE)) else {
        return Ok((OnDone::PowerOff, 0));
    };
    let (value, at) = match rest {
        b"" => (words(1).ok_or(BadOnDone(0))?, 1),
        _ => (rest.strip_prefix(b"=").ok_or(BadOnDone(0))?, 0),
    };
    let next = at + 1;
    match value {
        b"poweroff" => Ok((OnDone::PowerOff, next)),
        b"reboot" => Ok((OnDone::Reboot, next)),
        b"halt" => Ok((OnDone::Halt, next)),
        b"shell" if words(next).is_some() => Ok((OnDone::Become(next), next + 1)),
        _ => Err(BadOnDone(at)),
    }
}

/// The words of one command, by their numbers. None at all is the default command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The first.
    pub first: usize,
    /// Past the last.
    pub end: usize,
    /// Where the next command begins.
    pub next: Option<usize>,
}

impl Command {
    /// The command that begins at word `first`.
    #[must_use]
    pub fn at(words: Words<'_>, first: usize) -> Self {
        let mut end = first;
        loop {
            let next = match words(end) {
                None => None,
                Some(THEN) => Some(end + 1),
                Some(_) => {
                    end += 1;
                    continue;
                }
            };
            return Self { first, end, next };
        }
    }

    /// The number of the command's own word `index`, from 0 on.
    #[must_use]
    pub fn word(&self, index: usize) -> Option<usize> {
        let number = self.first.checked_add(index)?;
        (number < self.end).then_some(number)
    }

    /// Whether no command is named: it is the default one.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.first == self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec;
    use std::vec::Vec;

    fn split(line: &str) -> Vec<&[u8]> {
        line.split_ascii_whitespace().map(str::as_bytes).collect()
    }

    /// The commands that the words ask for.
    fn commands(line: &str) -> Vec<String> {
        let list = split(line);
        let words = |index: usize| list.get(index).copied();
        let (_, mut first) = on_done(&words).unwrap();
        let mut commands = Vec::new();
        loop {
            let command = Command::at(&words, first);
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            commands.push(words[command.first..command.end].join(" "));
            match command.next {
                Some(next) => first = next,
                None => return commands,
            }
        }
    }

    #[test]
    fn commands_are_divided() {
        assert_eq!(commands(""), [""]);
        assert_eq!(
            commands("bench --mb=4 then probe -q"),
            ["bench --mb=4", "probe -q"]
        );
        assert_eq!(commands("--on-done reboot env then"), ["env", ""]);
        assert_eq!(commands("--on-done=halt"), [""]);
        assert_eq!(
            commands("bench --on-done=halt then then env"),
            ["bench --on-done=halt", "", "env"]
        );
    }

    #[test]
    fn what_comes_last_is_chosen_or_refused() {
        let found = |line| {
            let list = split(line);
            on_done(&|index| list.get(index).copied())
        };
        let right = vec![
            ("", OnDone::PowerOff, 0),
            ("--on-done reboot", OnDone::Reboot, 2),
            ("--on-done=halt env", OnDone::Halt, 1),
            ("--on-done shell /bin/sh env", OnDone::Become(2), 3),
            ("--on-done=shell /sh", OnDone::Become(1), 2),
        ];
        for (line, on_done, next) in right {
            assert_eq!(found(line), Ok((on_done, next)), "{line}");
        }
        for (line, word) in [
            ("--on-done sleep", 1),
            ("--on-done", 0),
            ("--on-done=shell", 0),
            ("--on-done shell", 1),
            ("--on-doneX", 0),
            ("--on-done=x", 0),
        ] {
            assert_eq!(found(line), Err(BadOnDone(word)), "{line}");
        }
    }
}
