//! Readers tried on memory that fork shares: a page for each, all in one child.

use super::look::Look;
use super::read::Read;
use super::{Probed, Prober, Question, Stop};
use crate::emit::record::Status;
use crate::fixture::Fixture;
use crate::fixture::kinds::{Ground, KINDS, Op};
use crate::reader::Method;
use crate::sys::RemoteAddr;
use core::mem::swap;

impl Prober {
    /// Has each of `methods`, at most [`PAGES`](crate::fixture::kinds::PAGES), read a page that it
    /// alone reads, and tells what came of it; if that page was shared, `tracked` is 1. `None`:
    /// there was no child to try them on.
    #[inline(never)]
    pub fn trial(
        &mut self,
        methods: &[Method],
        tell: &mut dyn FnMut(Method, &Probed),
    ) -> Option<()> {
        let kind = &KINDS[0];
        let page_bytes = self.sizes.page_bytes;
        let stack = RemoteAddr(0);
        let mut ground = Ground::make(kind, self.sizes, stack).ok()?;
        let fixture = Fixture::fork_kind(kind, &mut ground, self.clock)
            .ok()?
            .ok()?;
        let look = Look::open(&fixture, &ground, page_bytes).ok()?;
        look.pages(&mut self.before).ok()?;
        for (number, &method) in methods.iter().enumerate() {
            let question = Question {
                kind,
                op: Op::Page,
                method: Some(method),
                stack,
            };
            let mut probed = Probed::nothing(page_bytes as u64, Status::Ok);
            let mut ask = || {
                let mut read = Read::new(&fixture, &ground, &question, &mut self.own)?;
                read.skip(number);
                let (buffer, mut given) = (self.buffer.bytes_mut(), None);
                read.with_reader(&mut |reader| {
                    given = Some(read.give(reader, buffer, self.clock));
                })?;
                probed.answer = given.transpose()?.and_then(|given| given.answer);
                look.pages(&mut self.after)?;
                Ok(read.pages(page_bytes as u64))
            };
            match ask() {
                Ok(pages) => {
                    self.compare(&pages, &question, &mut probed);
                    // The next one finds what this one leaves.
                    swap(&mut self.before, &mut self.after);
                }
                Err(Stop::Status(status)) => probed.status = status,
                Err(Stop::Run(_)) => return None,
            }
            tell(method, &probed);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::tests::page_bytes;
    use crate::sys::Clock;
    use std::vec::Vec;

    /// Also of a reader that comes again, behind one that splits.
    #[test]
    fn a_trial_says_of_each_reader_what_a_probe_of_it_says() {
        const METHODS: [Method; 5] = [
            Method::Vmread,
            Method::Proc,
            Method::Hybrid,
            Method::MapFiles,
            Method::Vmread,
        ];
        let mut prober = Prober::new(Clock::system_call(), page_bytes()).unwrap();
        let mut told = Vec::new();
        let split = |probed: &Probed| probed.changes.map(|changes| changes.split == 1);
        let mut tell = |method, probed: &Probed| told.push((method, split(probed)));
        prober.trial(&METHODS, &mut tell).unwrap();
        let probed = METHODS.map(|method| {
            let probed = prober.probe(&KINDS[0], Op::Page, Some(method)).unwrap();
            (method, split(&probed))
        });
        assert_eq!(told, probed);
        assert!(told.contains(&(Method::Proc, Some(false))), "{told:?}");
    }
}
