//! Every prefix and every changed byte of a small stream is refused, but for the text of
//! notes, which no checksum covers.

use cowitness::emit::bench_row::BenchRow;
use cowitness_lab::stream::{Note, StreamError, StreamReader, Tolerance};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

const SMALL: &[u8] = include_bytes!("data/small.csv");

/// Notes and rows of a stream, and whether it is cut.
type Read = (Vec<Note>, Vec<String>, bool);

fn read(input: &[u8], tolerance: Tolerance) -> Result<Vec<Read>, StreamError> {
    let mut found = Vec::new();
    let mut streams = StreamReader::new("input", input, tolerance);
    while let Some(mut stream) = streams.next_stream()? {
        let mut rows = Vec::new();
        while let Some(row) = stream.next_row()? {
            rows.push(format!("{:?}", row.parse::<BenchRow<'_>>()?));
        }
        found.push((stream.notes().to_vec(), rows, stream.cut().is_some()));
    }
    Ok(found)
}

fn place(text: &str) -> Range<usize> {
    let at = SMALL
        .windows(text.len())
        .position(|part| part == text.as_bytes());
    let start = at.unwrap();
    start..start + text.len()
}

#[test]
fn every_prefix_is_refused() {
    for length in 0..SMALL.len() {
        let refused = read(&SMALL[..length], Tolerance::Whole);
        assert!(refused.is_err_and(|error| error.is_untrusted()), "{length}");
    }
}

#[test]
fn every_prefix_that_has_a_first_line_is_cut() {
    for length in "#cowitness 1".len()..SMALL.len() {
        let found = read(&SMALL[..length], Tolerance::Partial).unwrap();
        assert!(
            matches!(&*found, [(_, rows, true)] if rows.len() <= 1),
            "{length}"
        );
    }
}

/// What may change without being noticed: the key and the text of a note, and the line
/// feed between two notes, which then are one.
fn unnoticed() -> Vec<usize> {
    let mut places = Vec::new();
    // Not the `#`, not the `=`.
    places.extend(place("label=#end\n#seed").take("label".len()));
    places.extend(place("#end\n#seed").take("#end\n".len()));
    places.extend(place("seed=1\n#rows").take("seed".len()));
    places.extend(place("1\n#rows").take("1".len()));
    places
}

/// Changes the byte at `at` to every other value; whether one of them was accepted.
fn accepts_a_change(at: usize, whole: &Read, unnoticed: &[usize]) -> bool {
    let mut accepted = false;
    let mut input = SMALL.to_vec();
    for byte in (0..=u8::MAX).filter(|&byte| byte != SMALL[at]) {
        input[at] = byte;
        match read(&input, Tolerance::Whole) {
            Err(error) => assert!(error.is_untrusted(), "{at} {byte}: {error}"),
            Ok(found) => {
                assert!(unnoticed.contains(&at), "{at} {byte}");
                let [(notes, rows, false)] = &*found else {
                    panic!("{at} {byte}: {found:?}");
                };
                assert_eq!(rows, &whole.1);
                assert_ne!(notes, &whole.0);
                accepted = true;
            }
        }
    }
    accepted
}

#[test]
fn every_changed_byte_is_refused_outside_of_notes() {
    let whole = read(SMALL, Tolerance::Whole).unwrap().remove(0);
    let unnoticed = unnoticed();
    let next = AtomicUsize::new(0);
    let places = || std::iter::repeat_with(|| next.fetch_add(1, Relaxed));
    let search = || -> Vec<usize> {
        let mine = places().take_while(|&at| at < SMALL.len());
        mine.filter(|&at| accepts_a_change(at, &whole, &unnoticed))
            .collect()
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut accepted: Vec<usize> = thread::scope(|scope| {
        let searches: Vec<_> = (0..threads).map(|_| scope.spawn(search)).collect();
        searches
            .into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect()
    });
    accepted.sort_unstable();
    assert_eq!(accepted, unnoticed, "the list is no longer than it must be");
}

/// Refused or not, that is a matter of where: but what is taken as whole is whole, and no cut makes
/// more rows of a console than it has.
#[test]
fn a_changed_byte_is_never_a_panic() {
    let console = include_bytes!("data/console.log");
    let rows = |found: &[Read]| found.iter().map(|(_, rows, _)| rows.len()).sum::<usize>();
    let most = rows(&read(console, Tolerance::Whole).unwrap());
    for at in 0..console.len() {
        for byte in [0, b'\n', b'\r', b'"', b'#', b',', 0x80, 0xff] {
            let mut input = console.to_vec();
            input[at] = byte;
            let partial = read(&input, Tolerance::Partial);
            if let Ok(whole) = read(&input, Tolerance::Whole) {
                assert!(whole.iter().all(|(.., is_cut)| !is_cut), "{at} {byte}");
                assert_eq!(partial.unwrap(), whole, "{at} {byte}");
            }
        }
        if let Ok(cut) = read(&console[..at], Tolerance::Partial) {
            assert!(rows(&cut) <= most, "{at}");
        }
    }
}
