//! The records of `startup`: one exec, the difference of two arms, a line over objects.

use super::fixed::Milli;
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
        /// `a`, `b`, `null` (A once more), `null-b` (B once more), or `n=N` and `static` of a
        /// slope.
        arm: &'a str,
        /// How the program was reached: `direct`, `registered`, `memfd`, `native`; `unknown`
        /// where neither of the first two is proved.
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
        /// Of files, before the exec: `warm`, or `cold` if the kernel dropped it.
        cache: &'a str,
    }
}

record! {
    /// Two arms of `startup ab` compared in one of the two times.
    pub struct StartupAbRow<'a> = "startup-ab" {
        /// What `--label` said.
        label: &'a str,
        /// `uname -r`.
        kernel: &'a str,
        /// `uname -m`.
        arch: &'a str,
        /// As in the rows of the execs.
        cache: &'a str,
        /// Which time: `exec` or `total`.
        metric: &'a str,
        /// How arm `a` was reached.
        a_dispatch: &'a str,
        /// How arm `b` was reached.
        b_dispatch: &'a str,
        /// Rounds in which both arms were measured.
        pairs: u64,
        /// Median of arm `a`, ns.
        a_median_ns: Option<u64>,
        /// Median of arm `b`, ns.
        b_median_ns: Option<u64>,
        /// Median of a - b within rounds, ns.
        difference_ns: Option<i64>,
        /// Where that lies: from here, ns.
        low_ns: Option<i64>,
        /// To here, ns.
        high_ns: Option<i64>,
        /// With at least this confidence, per cent.
        confidence_percent: Option<Milli>,
        /// Median of a - null within rounds, ns: the same program twice.
        null_difference_ns: Option<i64>,
        /// Where that lies: from here, ns.
        null_low_ns: Option<i64>,
        /// To here, ns.
        null_high_ns: Option<i64>,
        /// `resolved`: the interval excludes 0 and the difference is over three times the
        /// null's; else `unresolved`.
        verdict: &'a str,
    }
}

record! {
    /// One arm of `startup slope` against the line through all medians, in one of the two
    /// times. The line is the same in every row of a time.
    pub struct StartupFitRow<'a> = "startup-fit" {
        /// What `--label` said.
        label: &'a str,
        /// `uname -r`.
        kernel: &'a str,
        /// `uname -m`.
        arch: &'a str,
        /// As in the rows of the execs.
        cache: &'a str,
        /// Which time: `exec` or `total`.
        metric: &'a str,
        /// `n=N` or `static`.
        arm: &'a str,
        /// Shared objects; empty for `static`, which is not part of the line.
        n_objects: Option<u64>,
        /// Execs that were measured.
        samples: u64,
        /// Their median, ns.
        median_ns: Option<u64>,
        /// The line at n = 0, ns.
        intercept_ns: Option<Milli>,
        /// What one more object takes, ns.
        slope_ns: Option<Milli>,
        /// Share of the variance of the medians that the line explains.
        r2: Option<Milli>,
        /// The median above the line, ns; of `static`, above the line at n = 0.
        residual_ns: Option<Milli>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::record::Record;

    /// The order that scripts rely on: the protocol's, and what was added behind it.
    const INTERFACE: &str = "record,label,kernel,arch,round,position,arm,dispatch,n_objects,exec_ns,total_ns,\
        exit_status,minflt,majflt,nivcsw,status,cache";

    #[test]
    fn columns_are_the_interface() {
        let columns = StartupRow::COLUMNS.iter().copied();
        assert!(INTERFACE.split(',').skip(1).eq(columns));
    }
}
