//! The hands of the hybrid reader: each way of getting at bytes, and the buffer they come into.

use super::decide::{Way, Why, absent};
use super::trust::{Pins, Trust};
use super::window::{Window, behind, reached};
use super::{Care, Learned, Target};
use crate::reader::files::Shut;
use crate::reader::map_files::Behind;
use crate::reader::vma::Vmas;
use crate::reader::{End, Pass, Seen};
use crate::sys::errno::is_lack;
use crate::sys::file::pread_once;
use crate::sys::page_lists;
use crate::sys::remote::{RemoteSpan, process_vm_readv_to};
use crate::sys::{Errno, RemoteAddr};
use core::hint::black_box;
use core::ops::Range;
use rustix::fd::OwnedFd;

/// What a pass was given, and what it has come to.
pub(super) struct Io<'b, 's> {
    pub(super) buffer: &'b mut [u8],
    pub(super) seen: Seen<'s>,
    pub(super) pass: Pass,
}

pub(super) struct Hands {
    pid: i32,
    pub(super) page_bytes: u64,
    mem: OwnedFd,
    vmas: Vmas,
    files: Option<Behind>,
    window: Window,
    pub(super) care: Care,
    pins: Pins,
    /// Addresses of the buffer that has been written to throughout.
    settled: Range<usize>,
    goes_on: bool,
}

impl Hands {
    pub(super) fn new(
        target: &Target<'_>,
        mem: OwnedFd,
        files: Option<Behind>,
        care: Care,
    ) -> Self {
        Self {
            pid: target.pid,
            page_bytes: target.page_bytes as u64,
            mem,
            vmas: Vmas::with_flags(target.pid),
            files,
            window: Window::new(),
            care,
            pins: Pins::new(care.pin_faults.is_some() && !target.learned.charged),
            settled: 0..0,
            goes_on: target.manners.one_walk,
        }
    }

    pub(super) fn learned(&self) -> Learned {
        Learned {
            charged: !self.pins(),
            late: self.files.as_ref().map(Behind::late).unwrap_or_default(),
        }
    }

    /// Forgets what an earlier pass saw of the mappings.
    pub(super) fn forget(&mut self) {
        self.vmas.forget();
    }

    /// Free bytes in the buffer; never none.
    pub(super) fn room(&mut self, io: &mut Io<'_, '_>) -> Result<u64, End> {
        if self.window.filled() == io.buffer.len() {
            self.flush(io)?;
        }
        Ok((io.buffer.len() - self.window.filled()) as u64)
    }

    /// One run, which the buffer has room for.
    pub(super) fn run(
        &mut self,
        way: Way,
        span: RemoteSpan,
        io: &mut Io<'_, '_>,
    ) -> Result<(), End> {
        if !self.window.has_room() {
            self.flush(io)?;
        }
        if !matches!(way, Way::Absent | Way::PinOwn) {
            self.care.count(way, span.len.div_ceil(self.page_bytes));
        }
        match way {
            Way::PinFile => {
                self.window.take_later(span, false);
                Ok(())
            }
            Way::PinOwn => self.pin_own(span, io),
            Way::Copy => self.copy(span, io),
            Way::Absent => self.by_mapping(span, io),
            Way::Zeros => {
                let filled = self.window.filled();
                io.buffer[filled..filled + span.len as usize].fill(0);
                self.window.take(span);
                Ok(())
            }
            Way::File => self.file(span, io),
            // What no reader gets ends the pass, as it does with the others, unless the pass is one
            // of many.
            Way::Leave(Why::Unmapped | Why::Guard) if !self.goes_on => Err(End::Failed(Errno::IO)),
            Way::Leave(_) => Ok(()),
        }
    }

    /// A pass begins: anything may have been charged since the last.
    pub(super) fn begin(&mut self) {
        self.pins.charged = None;
    }

    /// Before the first pages of a walk in many passes are pinned, and again after some thousand:
    /// others may have come onto a CPU's list since.
    fn renew(&mut self, io: &mut Io<'_, '_>) -> Result<(), End> {
        if !self.goes_on || !self.pins.are_due() {
            return Ok(());
        }
        // What was put off had been looked at before.
        self.flush(io)?;
        if self.pins() {
            // Without that the first steps are all there is.
            let _ = page_lists::drain();
            self.pins.renew();
        }
        Ok(())
    }

    /// Whether it still pins anonymous pages.
    pub(super) fn pins(&self) -> bool {
        self.pins.trust != Trust::LOST
    }

    /// Writes to each page of a buffer that is another than before, so that its own faults are not
    /// taken for those of pages of the target.
    fn settle(&mut self, buffer: &mut [u8]) {
        let places = buffer.as_ptr_range();
        let places = places.start.addr()..places.end.addr();
        if self.settled != places {
            self.settled = places;
            self.pins.charged = None;
            for page in buffer.chunks_mut(self.page_bytes as usize) {
                touch(page.first_mut());
            }
            touch(buffer.last_mut());
        }
    }

    /// As much at once as the calls before allow.
    fn pin_own(&mut self, span: RemoteSpan, io: &mut Io<'_, '_>) -> Result<(), End> {
        self.renew(io)?;
        let mut rest = span;
        while rest.len > 0 {
            let all = rest.len.div_ceil(self.page_bytes);
            match self.pins.trust {
                Trust::LOST => {
                    self.care.count(Way::Copy, all);
                    return self.copy(rest, io);
                }
                Trust::WHOLE => {
                    self.care.count(Way::PinOwn, all);
                    self.pins.since += all;
                    self.window.take_later(rest, true);
                    return Ok(());
                }
                _ => {}
            }
            let most = self.pins.trust.pages() * self.page_bytes - rest.start.0 % self.page_bytes;
            let len = rest.len.min(most);
            let got = self.try_pin(RemoteSpan { len, ..rest }, io)?;
            rest = behind(rest, got);
        }
        Ok(())
    }

    /// A call of its own for some pages; gives how many bytes came.
    fn try_pin(&mut self, span: RemoteSpan, io: &mut Io<'_, '_>) -> Result<u64, End> {
        self.settle(io.buffer);
        let filled = self.window.filled();
        let place = &mut io.buffer[filled..filled + span.len as usize];
        if self.pins.trust == Trust::NEW {
            // Nothing at all: what the call needs of the tool itself is there afterwards.
            let _ = process_vm_readv_to(self.pid, place, &[], &[], None);
        }
        let (got, charged) = process_vm_readv_to(self.pid, place, &[0], &[span], self.pins.charged);
        self.pins.note(charged, true, &mut self.care);
        let pages = span.len.div_ceil(self.page_bytes);
        match got {
            Err(Errno::INTR) => Ok(0),
            // As in `fetch`.
            Err(Errno::FAULT) | Ok(0) => {
                self.care.count(Way::Copy, pages);
                self.copy(span, io).map(|()| span.len)
            }
            Err(errno) => Err(End::Failed(errno)),
            Ok(got) => {
                let len = got as u64;
                self.pins.since += pages;
                self.care.count(Way::PinOwn, len.div_ceil(self.page_bytes));
                self.window.take(RemoteSpan { len, ..span });
                Ok(len)
            }
        }
    }

    fn copy(&mut self, span: RemoteSpan, io: &mut Io<'_, '_>) -> Result<(), End> {
        self.pins.charged = None;
        let filled = self.window.filled();
        let place = &mut io.buffer[filled..filled + span.len as usize];
        let (got, end) = copied(&self.mem, span.start, place);
        if got > 0 {
            self.window.take(RemoteSpan {
                len: got as u64,
                ..span
            });
        }
        match end {
            End::Complete => Ok(()),
            failed => Err(failed),
        }
    }

    /// What pagemap alone does not decide, mapping by mapping.
    fn by_mapping(&mut self, span: RemoteSpan, io: &mut Io<'_, '_>) -> Result<(), End> {
        self.pins.charged = None;
        let mut rest = span;
        while rest.len > 0 {
            let vma = self.vmas.at(rest.start).map_err(End::Failed)?;
            let until = vma.map_or_else(|| self.vmas.next_start(), |vma| vma.end);
            let len = rest.len.min(until - rest.start.0);
            self.run(absent(vma.as_ref()), RemoteSpan { len, ..rest }, io)?;
            rest = behind(rest, len);
        }
        Ok(())
    }

    /// From the file, as far as it is in memory. What cannot be had is left unread.
    fn file(&mut self, span: RemoteSpan, io: &mut Io<'_, '_>) -> Result<(), End> {
        // Opening it may take its time, and what was put off was looked at already.
        if !self.window.spans.is_empty() {
            self.flush(io)?;
        }
        let mut rest = span;
        while rest.len > 0 {
            if !self.window.has_room() {
                self.flush(io)?;
            }
            let filled = self.window.filled();
            let place = &mut io.buffer[filled..filled + rest.len as usize];
            let vma = self.vmas.at(rest.start).map_err(End::Failed)?;
            let files = self.files.as_mut().zip(vma).ok_or(Shut::Says(Errno::NOENT));
            let held = files.and_then(|(files, vma)| files.held(&vma, rest.start, place));
            let (got, missing, why) = match held {
                Ok((got, missing)) => (got as u64, missing as u64, Why::NotInMemory),
                Err(Shut::Says(Errno::INTR)) => continue,
                Err(Shut::Zeros) => {
                    place.fill(0);
                    (rest.len, 0, Why::NotInMemory)
                }
                Err(Shut::Swapped) => (0, rest.len, Why::Swapped),
                Err(Shut::Says(errno)) if is_lack(errno) => return Err(End::Failed(errno)),
                Err(Shut::Absent) => (0, rest.len, Why::NotInMemory),
                Err(Shut::Denied | Shut::Says(_)) => (0, rest.len, Why::FileNotOpened),
            };
            if got > 0 {
                self.window.take(RemoteSpan { len: got, ..rest });
            }
            self.leave(missing, why);
            rest = behind(rest, got + missing);
        }
        Ok(())
    }

    /// Counts bytes of a file, which were to be read, as left unread.
    fn leave(&mut self, bytes: u64, why: Why) {
        let pages = bytes.div_ceil(self.page_bytes);
        self.care.filed -= pages;
        self.care.count(Way::Leave(why), pages);
    }

    /// Fetches what was put off and hands the buffer on.
    pub(super) fn flush(&mut self, io: &mut Io<'_, '_>) -> Result<(), End> {
        let fetched = self.fetch(io.buffer);
        let (sound, ended) = match fetched {
            Ok(()) => (usize::MAX, Ok(())),
            Err((sound, end)) => (sound, Err(end)),
        };
        if io.seen.is_some() {
            self.pins.charged = None;
        }
        self.window
            .hand_on(sound, io.buffer, &mut io.pass, &mut io.seen);
        ended
    }

    /// One call for all runs, or more if the kernel stops early. The error says how many bytes
    /// of the buffer are sound.
    fn fetch(&mut self, buffer: &mut [u8]) -> Result<(), (usize, End)> {
        self.settle(buffer);
        let window = &mut self.window;
        let mut first = 0;
        while first < window.spans.len() {
            let (spans, offsets) = (&mut window.spans[first..], &mut window.offsets[first..]);
            let own = window.has_own;
            let got = if own && self.pins.trust == Trust::LOST {
                Ok(0)
            } else {
                let (got, charged) =
                    process_vm_readv_to(self.pid, buffer, offsets, spans, self.pins.charged);
                self.pins.note(charged, own, &mut self.care);
                got
            };
            let (done, into) = match got {
                Err(Errno::INTR) => continue,
                // Not to be pinned, like PROT_NONE: the other way may be allowed.
                Err(Errno::FAULT) | Ok(0) => {
                    self.pins.charged = None;
                    let pages = spans[0].len.div_ceil(self.page_bytes);
                    self.care.pinned = self.care.pinned.saturating_sub(pages);
                    self.care.count(Way::Copy, pages);
                    let place = &mut buffer[offsets[0]..][..spans[0].len as usize];
                    match copied(&self.mem, spans[0].start, place) {
                        (_, End::Complete) => (1, 0),
                        (got, end) => return Err((offsets[0] + got, end)),
                    }
                }
                Err(errno) => return Err((offsets[0], End::Failed(errno))),
                Ok(got) => reached(spans, got),
            };
            if into > 0 {
                spans[done] = behind(spans[done], into);
                offsets[done] += into as usize;
            }
            first += done;
        }
        Ok(())
    }
}

/// Writes a byte as it is.
fn touch(byte: Option<&mut u8>) {
    if let Some(byte) = byte {
        *byte = black_box(*byte);
    }
}

/// Copies into all of `place`; says how far it came and why not further.
fn copied(mem: &OwnedFd, start: RemoteAddr, place: &mut [u8]) -> (usize, End) {
    let mut done = 0;
    while done < place.len() {
        match pread_once(mem, &mut place[done..], start.0 + done as u64) {
            Ok(0) => return (done, End::Short),
            Ok(got) => done += got,
            Err(Errno::INTR) => {}
            Err(errno) => return (done, End::Failed(errno)),
        }
    }
    (done, End::Complete)
}
