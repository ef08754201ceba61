//! Options of `env`.

use super::{CommandSpec, Common, Topic};

/// The command.
pub const SPEC: CommandSpec<Common> = CommandSpec {
    topic: Topic::Env,
    name: "env",
    purpose: "print the environment record that stands at the head of every result",
    about: "Prints what a result depends on, one `#key=value` a line: kernel, CPU, page\n\
            size, huge-page modes, clock, privileges, and the kernel's configuration\n\
            where it can be read. What cannot be read says why. Nothing in it names the\n\
            machine or a person unless --label does.\n",
    operand: None,
    options: &[],
    examples: &[("cowitness env", "the record of this machine")],
};
