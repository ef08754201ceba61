//! process_vm_readv(2): the kernel pins the target's pages and copies once
//! (mm/process_vm_access.c). Pinning for reading unshares anonymous pages that fork
//! shared, since Linux 5.19 (FAULT_FLAG_UNSHARE, mm/gup.c).

use super::{BlockReader, End, Pass, Reader, Seen};
use crate::sys::remote::{RemoteSpan, SPANS_PER_CALL, process_vm_readv};
use crate::sys::{Errno, RemoteAddr};

/// `vmread`: one call a block.
pub struct Vmread {
    pid: i32,
}

impl Vmread {
    /// For that target.
    #[must_use]
    pub const fn new(pid: i32) -> Self {
        Self { pid }
    }
}

impl BlockReader for Vmread {
    #[inline]
    fn read(&mut self, start: RemoteAddr, block: &mut [u8]) -> Result<usize, Errno> {
        let len = block.len() as u64;
        process_vm_readv(self.pid, block, &[RemoteSpan { start, len }])
    }
}

/// Bytes that `vmread-batch` asks for in one call, unless one block is larger.
pub const BATCH_BYTES: usize = 1 << 20;

/// `vmread-batch`: as many blocks a call as fit into [`BATCH_BYTES`] and into the
/// kernel's limit of 1,024 spans, copied one after the other into the buffer.
pub struct VmreadBatch {
    pid: i32,
    spans: [RemoteSpan; SPANS_PER_CALL],
}

impl VmreadBatch {
    /// For that target.
    #[must_use]
    pub const fn new(pid: i32) -> Self {
        let nowhere = RemoteSpan {
            start: RemoteAddr(0),
            len: 0,
        };
        Self {
            pid,
            spans: [nowhere; SPANS_PER_CALL],
        }
    }

    /// One call for the first `count` spans, or more calls if the kernel stopped early.
    fn call(
        &mut self,
        count: usize,
        buffer: &mut [u8],
        pass: &mut Pass,
        seen: &mut Seen<'_>,
    ) -> Result<(), End> {
        let mut first = 0;
        while first < count {
            let batch = &mut self.spans[first..count];
            let want: u64 = batch.iter().map(|span| span.len).sum();
            let got = match process_vm_readv(self.pid, &mut buffer[..want as usize], batch) {
                Ok(0) => return Err(End::Short),
                Ok(got) => got,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(End::Failed(errno)),
            };
            pass.bytes += got as u64;
            first += account(batch, &buffer[..got], pass, seen);
        }
        Ok(())
    }
}

/// Hands the blocks that were copied to `seen`, shortens the one the copy ended in, and
/// says how many are done.
fn account(batch: &mut [RemoteSpan], copied: &[u8], pass: &mut Pass, seen: &mut Seen<'_>) -> usize {
    let mut rest = copied;
    let mut done = 0;
    for span in batch {
        let (block, behind) = rest.split_at(rest.len().min(span.len as usize));
        if done == 0 {
            pass.last = RemoteSpan {
                start: span.start,
                len: block.len() as u64,
            };
        }
        if let Some(seen) = seen {
            seen(span.start, block);
        }
        span.start = span.start.plus(block.len() as u64);
        span.len -= block.len() as u64;
        if span.len > 0 {
            break;
        }
        rest = behind;
        done += 1;
    }
    done
}

impl Reader for VmreadBatch {
    fn pass(
        &mut self,
        spans: &mut dyn Iterator<Item = RemoteSpan>,
        block_bytes: usize,
        buffer: &mut [u8],
        mut seen: Seen<'_>,
    ) -> Pass {
        let per_call = (BATCH_BYTES / block_bytes).clamp(1, SPANS_PER_CALL);
        let mut pass = Pass::NOTHING;
        let mut count = 0;
        for span in spans {
            for block in blocks(span, block_bytes as u64) {
                self.spans[count] = block;
                count += 1;
                if count == per_call {
                    if let Err(end) = self.call(count, buffer, &mut pass, &mut seen) {
                        return Pass { end, ..pass };
                    }
                    count = 0;
                }
            }
        }
        match self.call(count, buffer, &mut pass, &mut seen) {
            Ok(()) => pass,
            Err(end) => Pass { end, ..pass },
        }
    }
}

/// A span cut into blocks; the last may be shorter.
fn blocks(span: RemoteSpan, block_bytes: u64) -> impl Iterator<Item = RemoteSpan> {
    let count = span.len.div_ceil(block_bytes);
    (0..count).map(move |index| {
        let offset = index * block_bytes;
        RemoteSpan {
            start: span.start.plus(offset),
            len: block_bytes.min(span.len - offset),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn own_pass(memory: &[u8], parts: &[core::ops::Range<usize>], block: usize) -> (Pass, Vec<u8>) {
        let base = memory.as_ptr() as u64;
        let mut spans = parts.iter().map(|part| RemoteSpan {
            start: RemoteAddr(base + part.start as u64),
            len: part.len() as u64,
        });
        let mut reader = VmreadBatch::new(std::process::id().cast_signed());
        let mut seen = Vec::new();
        let mut buffer = vec![0; block.max(BATCH_BYTES)];
        let mut note = |_: RemoteAddr, bytes: &[u8]| seen.extend_from_slice(bytes);
        let pass = reader.pass(&mut spans, block, &mut buffer, Some(&mut note));
        (pass, seen)
    }

    #[test]
    fn many_spans_arrive_in_order() {
        let memory: Vec<u8> = (0..100_000u32).map(|index| (index % 251) as u8).collect();
        // 16-byte blocks: more spans than one call takes.
        let (pass, seen) = own_pass(&memory, &[0..50_001, 60_000..60_007, 60_007..100_000], 16);
        let want = [&memory[..50_001], &memory[60_000..]].concat();
        assert_eq!((pass.bytes, pass.end), (want.len() as u64, End::Complete));
        assert!(seen == want);
    }

    #[test]
    fn a_partial_copy_goes_on_inside_the_block_it_ended_in() {
        let span = |start, len| RemoteSpan {
            start: RemoteAddr(start),
            len,
        };
        let mut batch = [span(0, 4), span(100, 4), span(200, 4)];
        let mut pass = Pass::NOTHING;
        let mut seen = Vec::new();
        let mut note = |at: RemoteAddr, bytes: &[u8]| seen.push((at.0, bytes.to_vec()));
        let done = account(&mut batch, b"abcdef", &mut pass, &mut Some(&mut note));
        assert_eq!(done, 1);
        assert_eq!(batch[1], span(102, 2));
        assert_eq!(seen, [(0, b"abcd".to_vec()), (100, b"ef".to_vec())]);
    }
}
