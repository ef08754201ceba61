//! Text from files in the page, and that the page asks nobody for anything.

use super::seal::resealed;
use super::{BENCH, has, page};

/// No name in a file may become markup.
#[test]
fn everything_from_a_file_is_escaped() {
    let html = page(&["markup.csv"], "");
    for bad in [
        "<script>alert",
        "<img",
        "<b>6.1",
        "<i>",
        "<u>",
        "\"'>",
        "&amp;amp;<",
    ] {
        let count = html.matches(bad).count();
        assert_eq!(count, 0, "{bad}");
    }
    assert_eq!(html.matches("<script").count(), 1);
    has(&html, &["&#60;script&#62;alert(1)&#60;/script&#62;"]);
}

/// What a row's name hides is shown, and a long one fills no screen.
#[test]
fn hidden_characters_and_long_names_do_no_harm() {
    let odd = BENCH
        .replace("6.1.0-test", "6.1\u{202e}\u{7}x")
        .replace(",contiguous,", ",conti\u{1b}guous,")
        .replace("\"rack 4, \"\"left\"\"\"", &"l".repeat(3000))
        .replace("rack 4, \"left\"", &"l".repeat(3000));
    let odd = resealed(&odd);
    for files in [&["-"][..], &["-", "published.csv"]] {
        let html = page(files, odd.as_bytes());
        let hidden = |c: char| c != '\n' && c.is_control() || c == '\u{202e}';
        assert!(!html.contains(hidden), "{files:?}");
        has(&html, &["6.1\\u{202e}\\u{7}x", "conti\\u{1b}guous"]);
        let (head, _) = html.split_once("<section id=\"throughput\"").unwrap();
        assert!(!head.contains(&"l".repeat(61)), "{files:?}");
    }
}

#[test]
fn the_page_asks_for_nothing() {
    let html = page(&["bench.csv", "probe.csv"], "");
    for bad in [
        "http:",
        "https:",
        "@import",
        " src=",
        "srcset",
        "<link rel=\"stylesheet",
    ] {
        assert!(!html.contains(bad), "{bad}");
    }
    let urls = html.split("url(").skip(1);
    let links = html.split("href=\"").skip(1);
    for target in urls.chain(links) {
        assert!(
            target.starts_with('#') || target.starts_with("data:,\""),
            "{target:.60}"
        );
    }
    has(
        &html,
        &["default-src &#39;none&#39;; style-src &#39;sha256-"],
    );
}
