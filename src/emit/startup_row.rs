//! The record of `startup`: one exec.

use super::record::Status;
use crate::record;

record! {
    /// One exec of one arm.
    pub struct StartupRow<'a> = "startup" {
        /// What `--label` said.
        label: &'a str,
        /// `uname -r`.
        kernel: &'a str,
        /// `uname -m`.
        arch: &'a str,
        /// Which round, from 1; each runs every arm once.
        round: u64,
        /// The arm's place in its round, from 1.
        position: u64,
        /// `a`, `b`, `null` (A once more), or `n=N` and `static` of a slope.
        arm: &'a str,
        /// How the program was reached: `direct`, `registered`, `memfd` or `native`.
        dispatch: &'a str,
        /// Shared objects that are loaded, where it is a slope's.
        n_objects: Option<u64>,
        /// Nanoseconds from before clone to the vfork return.
        exec_ns: Option<u64>,
        /// Nanoseconds from before clone until the exit was reaped.
        total_ns: Option<u64>,
        /// Exit status; minus the signal's number if one ended it.
        exit_status: Option<i64>,
        /// Minor faults of the child.
        minflt: Option<u64>,
        /// Major faults of the child.
        majflt: Option<u64>,
        /// Involuntary context switches of the child.
        nivcsw: Option<u64>,
        /// Whether it was measured.
        status: Status<'a>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::record::Record;

    /// The order that scripts rely on, as the protocol has it.
    const INTERFACE: &str = "record,label,kernel,arch,round,position,arm,dispatch,n_objects,exec_ns,total_ns,\
        exit_status,minflt,majflt,nivcsw,status";

    #[test]
    fn columns_are_the_interface() {
        let columns = StartupRow::COLUMNS.iter().copied();
        assert!(INTERFACE.split(',').skip(1).eq(columns));
    }
}
