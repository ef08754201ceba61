//! What the appliance's own writer writes comes back as it was.

use cowitness::emit::Sink;
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::record::Status;
use cowitness::emit::stream::{Preamble, StreamError};
use cowitness_lab::stream::{StreamReader, Tolerance};
use std::convert::Infallible;

struct Memory<'m>(&'m mut Vec<u8>);

impl Sink for Memory<'_> {
    type Error = Infallible;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// A row without any figure that may be unknown.
fn row<'a>(repeat: u64, label: &'a str, status: Status<'a>) -> BenchRow<'a> {
    BenchRow {
        label,
        kernel: "6.1.0",
        arch: "x86_64",
        page_bytes: 4096,
        layout: "vma",
        pages: "small",
        segment_pages: Some(16),
        vmas: 410,
        arena_bytes: 26_869_760,
        method: "proc",
        block_bytes: u64::MAX,
        repeat,
        position: 2,
        bytes_per_pass: None,
        warm_passes: 0,
        cold_ns: None,
        warm_ns: None,
        warm_min_ns: None,
        warm_max_ns: None,
        cold_mib_s: None,
        warm_mib_s: None,
        evidence: "none",
        tracked_pages: None,
        shared_before: None,
        shared_after: None,
        split_pages: None,
        target_minflt: Some(i64::MIN),
        target_majflt: None,
        reader_minflt_cold: None,
        reader_minflt_warm: None,
        target_rss_kib: None,
        target_pss_kib: None,
        target_shared_dirty_kib: None,
        target_private_kib: None,
        partner_pss_kib: None,
        first_write_ns: None,
        status,
        pinned_pages: Some(7),
        not_pinned: "large-folios",
    }
}

fn write(rows: &[BenchRow<'_>], bytes: &mut Vec<u8>) -> Result<(), StreamError<Infallible>> {
    let mut preamble = Preamble::begin(Memory(bytes))?;
    preamble.note("label", rows[0].label)?;
    preamble.note("empty", "")?;
    preamble.note("two", "line\nfeed and = and #")?;
    let mut stream = preamble.header::<BenchRow<'_>>(rows.len() as u64)?;
    for row in rows {
        stream.row(row)?;
    }
    stream.end()
}

#[test]
fn rows_and_notes_come_back() {
    for label in [
        "",
        "#cowitness 1",
        "#end rows=1 crc32=00000000",
        "a,\"b\" \u{1f980} ",
        "record,",
    ] {
        let rows = [
            row(1, label, Status::Errno("EPERM")),
            row(2, label, Status::Skipped("no: at all")),
            row(3, label, Status::Short(4096)),
        ];
        let mut bytes = Vec::new();
        write(&rows, &mut bytes).unwrap();
        let mut streams = StreamReader::new("memory", &*bytes, Tolerance::Whole);
        let mut stream = streams.next_stream().unwrap().unwrap();
        let notes = stream.notes().iter().map(|note| (&*note.key, &*note.value));
        assert!(notes.eq([
            ("label", label),
            ("empty", ""),
            ("two", "line?feed and = and #")
        ]));
        assert_eq!((stream.number(), stream.announced()), (1, Some(3)));
        for wanted in &rows {
            let found = stream.next_row().unwrap().unwrap();
            assert_eq!(&found.parse::<BenchRow<'_>>().unwrap(), wanted);
        }
        assert!(stream.next_row().unwrap().is_none());
        assert!(stream.cut().is_none());
        assert!(streams.next_stream().unwrap().is_none());
    }
}

#[test]
fn a_stream_that_is_not_read_to_its_end_is_checked_all_the_same() {
    let mut bytes = Vec::new();
    let rows = [1, 2].map(|repeat| row(repeat, "a", Status::Ok));
    write(&rows, &mut bytes).unwrap();
    let mut streams = StreamReader::new("memory", &*bytes, Tolerance::Whole);
    streams
        .next_stream()
        .unwrap()
        .unwrap()
        .next_row()
        .unwrap()
        .unwrap();
    assert!(streams.next_stream().unwrap().is_none());

    let last = bytes.len() - 2;
    bytes[last] = if bytes[last] == b'0' { b'1' } else { b'0' };
    let mut streams = StreamReader::new("memory", &*bytes, Tolerance::Whole);
    assert!(streams.next_stream().unwrap().is_some());
    let error = streams.next_stream().err().unwrap();
    assert!(error.to_string().contains("bad checksum"), "{error}");
    assert!(
        streams.next_stream().unwrap().is_none(),
        "after an error there is nothing"
    );
}
