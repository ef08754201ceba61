//! A million rows: how long the page takes, how much memory, how large it is.
//!
//! Ignored where nobody asks, because it is about the release:
//! `cargo test --release -p cowitness-lab --test large -- --ignored`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROWS: u64 = 1_000_000;
const SECONDS_MAX: u64 = 10;
const KIB_MAX: u64 = 500 * 1024;

/// CRC-32 of all pieces that were added.
struct Crc(u32, [u32; 256]);

impl Crc {
    fn new() -> Self {
        let bit = |crc: u32| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        let entry = |byte: usize| (0..8).fold(byte as u32, |crc, _| bit(crc));
        Self(!0, std::array::from_fn(entry))
    }

    fn add(&mut self, bytes: &[u8]) {
        let Self(crc, table) = self;
        for byte in bytes {
            *crc = *crc >> 8 ^ table[(*crc as u8 ^ byte) as usize];
        }
    }
}

/// A run of `ROWS` cases, their times spread by a linear congruence.
fn run() -> Vec<u8> {
    let bench = include_str!("data/bench.csv");
    let header = bench
        .lines()
        .find(|line| line.starts_with("record,"))
        .unwrap();
    let mut text = format!("{header}\n");
    let mut seed = 1_u64;
    for row in 0..ROWS {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let block = [4096, 65536, 262_144][(row / 2 % 3) as usize];
        let (method, split, cold) =
            [("proc", 0, 500_000), ("vmread", 256, 2_000_000)][(row % 2) as usize];
        let (repeat, cold) = (row / 6 + 1, cold + (seed >> 33) % 100_000);
        let shared = 256 - split;
        // MiB/s in hundredths, rounded half up.
        let rate = (100_000_000_000 + cold / 2) / cold;
        writeln!(
            text,
            "bench,,6.1.0,x86_64,4096,contiguous,small,,1,1048576,{method},{block},{repeat},1,1048576,5,\
             {cold},2000000,400000,400000,{}.{:02},2500.00,pfn,256,256,{shared},{split},0,0,{split},0,0,0,0,0,0,,ok",
            rate / 100,
            rate % 100
        )
        .unwrap();
    }
    let mut crc = Crc::new();
    crc.add(text.as_bytes());
    let mut stream = format!("#cowitness 1\n#command=bench\n#rows={ROWS}\n{text}").into_bytes();
    writeln!(stream, "#end rows={ROWS} crc32={:08x}", !crc.0).unwrap();
    stream
}

#[test]
#[ignore = "about the release: --release -- --ignored"]
fn a_million_rows_are_a_page_in_time() {
    let input = run();
    let started = Instant::now();
    // GNU time or not, the kernel counts: VmHWM of the child, asked for before it is reaped.
    let mut child = Command::new(env!("CARGO_BIN_EXE_cowitness-lab"))
        .args(["report", "-o", "-", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    let mut most = 0;
    let status = format!("/proc/{}/status", child.id());
    let reader = std::thread::spawn({
        let mut out = child.stdout.take().unwrap();
        move || {
            let mut page = String::new();
            std::io::Read::read_to_string(&mut out, &mut page).map(|_| page)
        }
    });
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let high = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let high = high.and_then(|high| high.trim().trim_end_matches(" kB").parse().ok());
        most = most.max(high.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    let (page, took) = (reader.join().unwrap().unwrap(), started.elapsed());
    feeder.join().unwrap().unwrap();
    println!("{took:.1?}, {most} KiB, a page of {} bytes", page.len());
    assert!(page.contains("1000000 of 1000000 cases ok"));
    assert!(page.contains("proc 3.") || page.contains("proc 4."));
    // Shares are drawn, not a million dots.
    assert!(page.len() < 300_000 && !page.contains("<circle class=\"dot"));
    assert!(took.as_secs() < SECONDS_MAX, "{took:?}");
    assert!((1..KIB_MAX).contains(&most), "{most} KiB");
}
