//! Options of `selftest`.

use super::{CommandSpec, Common, Topic};

/// The command.
pub const SPEC: CommandSpec<Common> = CommandSpec {
    topic: Topic::Selftest,
    name: "selftest",
    purpose: "try every mechanism once, a line each; what the first process runs by default",
    about: "Tries clock, fixture, evidence, each reader and what PROT_NONE and a hole give,\n\
            one line each on stdout: `ok NAME`, `skip NAME: reason` (not offered here) or\n\
            `fail NAME: reason`, then `N passed, N failed, N skipped`. Takes less than a\n\
            second. Exit status 4 if a check failed. The common options change nothing.\n\n\
            As /init of an initramfs, cowitness runs this, or what stands after -- on the\n\
            kernel's command line, and powers off:\n  \
            -- [--on-done poweroff|reboot|halt|shell PATH] [COMMAND... [then COMMAND...]]\n\
            Its last line is `cowitness: verdict: pass|fail|invalid|error`, the worst of the\n\
            commands (exit status 0, 4, 3, any other); the kernel's own may follow.\n",
    operand: None,
    options: &[],
    examples: &[
        ("cowitness selftest", "does everything work here?"),
        (
            "console=ttyS0 quiet panic=-1 -- probe then bench --mb=8 --repeats=2",
            "a kernel's command line; it takes 32 words after -- at most",
        ),
    ],
};
