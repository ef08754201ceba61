//! Options of `survey`.

use super::{CommandSpec, Common, HasCommon, Operand, Refused, Topic, Word, value};

/// What `survey` was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The options every command has.
    pub common: Common,
    /// The process; 0 until it is given.
    pub pid: i32,
}

impl HasCommon for Options {
    fn common(&mut self) -> &mut Common {
        &mut self.common
    }
}

/// The command.
pub const SPEC: CommandSpec<Options> = CommandSpec {
    topic: Topic::Survey,
    name: "survey",
    purpose: "predict, per VMA of a live process, what each reader would split; reads nothing",
    about: "Looks at maps and pagemap of a process (at smaps, too, without CAP_SYS_ADMIN, with\n\
            swap or a userfaultfd in use on this machine, or with a device or hugetlb pages\n\
            mapped), never at its memory: per VMA and in total, which pages are\n\
            its own, shared by fork, of files, swapped out or absent, and so how many pages\n\
            proc, vmread and hybrid would split or bring in, what memory that would take,\n\
            and which reader to take. Whether they split at all on this kernel is tried on\n\
            a child of its own. A reserve of terabytes takes its time.\n\
            One CSV row a VMA goes to stdout, the last is the total. A process that runs on\n\
            changes meanwhile: stop it (kill -STOP) for figures that hold.\n\n\
            What pagemap calls the process's own is split by vmread all the same where a\n\
            pipe, a socket or a list of the kernel holds it: 0 is no proof.\n\
            Needs the same user and a dumpable process, or root, or CAP_SYS_PTRACE and\n\
            CAP_DAC_READ_SEARCH. Only root gets a number for vmread where this machine has\n\
            large folios (other than huge pages that a process maps as a whole), KSM or\n\
            swap in use; for others the field is empty: unknown.\n",
    operand: Some(Operand {
        name: "PID",
        allowed: "a process id, 1 to 4194304",
        set: |options, word| {
            options.pid = pid(word)?;
            Ok(())
        },
        is_set: |options| options.pid > 0,
    }),
    options: &[],
    examples: &[(
        "cowitness survey 1234 > survey.csv",
        "what would reading process 1234 cost?",
    )],
};

/// PID_MAX_LIMIT, include/linux/threads.h.
const PID_MAX: u64 = 4 << 20;

/// A process id.
///
/// # Errors
/// Anything else.
pub(super) fn pid(word: Word) -> Result<i32, Refused> {
    let number = value::number(word, 1, PID_MAX)?;
    i32::try_from(number).map_err(|_| Refused)
}
