//! Entry of `cowitness-lab`; the flow is in `cowitness_lab::app`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cowitness_lab::app::main(lexopt::Parser::from_env())
}
