//! What the tests of `startup` share.

use super::common::{BINARY, Row, whole_stream};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub fn startup(words: &[&str]) -> Output {
    Command::new(BINARY)
        .arg("startup")
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts")
}

/// Two programs against each other; options are separated by blanks.
pub fn ab(options: &str, a: &[&str], b: &[&str]) -> Output {
    let options: Vec<&str> = options.split_whitespace().collect();
    startup(&[&["ab"], &options[..], &["--a"], a, &["--", "--b"], b].concat())
}

/// The rows of the execs, and those of the result.
pub fn rows(text: &str) -> (Vec<Row>, Vec<Row>) {
    let second = text[1..].find("#cowitness 1\n").expect("two streams") + 1;
    let (execs, results) = text.split_at(second);
    (whole_stream(execs).rows, whole_stream(results).rows)
}

/// A file of this test's own, gone with the value.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let name = format!("cowitness-startup-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
