//! Readers tried on memory that fork shares: a page for each, all in one child.

use super::changes::changes;
use super::look::{Look, Pages};
use super::read::Read;
use super::{Probed, Question, Stop, buffer_bytes, judge};
use crate::emit::record::Status;
use crate::fixture::Fixture;
use crate::fixture::kinds::{Ground, KINDS, Op, Sizes};
use crate::measure::evidence::Evidence;
use crate::reader::Method;
use crate::sys::{Clock, Region, RemoteAddr};
use core::mem::swap;

/// Has each of `methods`, at most [`PAGES`](crate::fixture::kinds::PAGES), read a page that it
/// alone reads, and tells the status, as of a probe, and whether that page was shared and is split
/// now. `None`: there was no child to try them on.
#[inline(never)]
pub fn trial(
    methods: &[Method],
    clock: Clock,
    page_bytes: usize,
    tell: &mut dyn FnMut(Method, Status<'_>, Option<bool>),
) -> Option<()> {
    let kind = &KINDS[0];
    let sizes = Sizes {
        page_bytes,
        huge_bytes: None,
        merging_is_ours: false,
    };
    let mut ground = Ground::make(kind, sizes, RemoteAddr(0)).ok()?;
    let fixture = Fixture::fork_kind(kind, &mut ground, clock).ok()?.ok()?;
    let look = Look::open(&fixture, &ground, page_bytes).ok()?;
    let pages = || Pages::new(sizes.pages_max(), page_bytes).ok();
    let (mut before, mut after) = (pages()?, pages()?);
    let mut own = Region::new(page_bytes).ok()?;
    let mut buffer = Region::new(buffer_bytes(page_bytes)).ok()?;
    look.pages(&mut before).ok()?;
    let evidence = match before.at(0).parent.frames_hidden() {
        true => Evidence::Exclusive,
        false => Evidence::Pfn,
    };
    for (number, &method) in methods.iter().enumerate() {
        let question = Question {
            kind,
            op: Op::Page,
            method: Some(method),
            stack: RemoteAddr(0),
        };
        let mut probed = Probed::nothing(page_bytes as u64, Status::Ok);
        let mut split = None;
        let mut ask = || {
            let mut read = Read::new(&fixture, &ground, &question, &mut own)?;
            read.skip(number);
            read.open()?;
            probed.answer = read.give(buffer.bytes_mut(), clock)?.answer;
            look.pages(&mut after)?;
            let pages = read.pages(page_bytes as u64);
            let found = changes(&mut before, &mut after, &pages, evidence);
            split = (found.tracked == 1).then_some(found.split == 1);
            probed.changes = Some(found);
            // The next one finds what this one leaves.
            swap(&mut before, &mut after);
            Ok(judge::judge(&question, page_bytes as u64, &probed))
        };
        match ask() {
            Ok(status) | Err(Stop::Status(status)) => tell(method, status, split),
            Err(Stop::Run(_)) => return None,
        }
    }
    Some(())
}
