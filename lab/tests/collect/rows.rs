//! Rows that are damaged, lost or lacking, their sums right.

use super::seal::resealed;
use super::{of_file, rows};
use cowitness::emit::record::Record;
use cowitness::emit::survey_row::SurveyRow;

#[test]
fn rows_that_come_to_nothing_do_not_pass() {
    let lines = |keep: &dyn Fn(&str) -> bool| {
        let all = rows();
        resealed(
            &all.split_inclusive('\n')
                .filter(|line| keep(line))
                .collect::<String>(),
        )
    };
    let is = |text: &str, outcome: &str, detail: &str| {
        let found = of_file(text);
        assert!(found.0 == outcome && found.1.contains(detail), "{found:?}");
    };
    is(&rows(), "pass", "");
    let none = lines(&|line| !line.starts_with("bench,") && !line.starts_with("probe,"));
    is(&none, "damaged", "0 readers, its options speak of 2");
    let unsaid = none
        .replace("#option_", "#opted_")
        .replace("#command=probe", "#command=x");
    is(&unsaid, "empty", "stream 1 has no row");
    let skipped = resealed(&rows().replace(",ok\n", ",skipped:no-evidence\n"));
    is(
        &skipped,
        "empty",
        "no row counts, the first is proc's, skipped: no-evidence",
    );
    let one = resealed(&rows().replacen(",ok\n", ",errno:EIO\n", 1));
    is(
        &one,
        "invalid",
        "1 of 74 rows lost, the first is proc's, failed: EIO",
    );
    let cut = lines(&|line| !line.contains(",hole,vmread,"));
    is(
        &cut,
        "damaged",
        "70 rows, where 8 questions to 9 readers make 72",
    );
    let without = lines(&|line| !line.contains(",hole,"));
    is(
        &without,
        "damaged",
        "probe without its question 'hole page'",
    );
    let without = lines(&|line| !line.contains(",cross,"));
    is(
        &without,
        "damaged",
        "probe without its question 'prot-none cross'",
    );
    is(
        &(rows() + &rows()),
        "damaged",
        "streams 1 and 3 are the same",
    );
    let foreign = rows().replacen("#kernel=6.12", "#kernel=6.1", 1);
    is(&foreign, "damaged", "its note 'kernel' is 6.1.117+deb13");
}

#[test]
fn rows_that_contradict_themselves_are_damaged() {
    let is = |from: &str, to: &str, wanted: &str| {
        let all = rows();
        assert!(all.contains(from), "{from}");
        let found = of_file(&resealed(&all.replacen(from, to, 1)));
        assert_eq!(found.0, "damaged", "{to}: {}", found.1);
        let said = format!("contradicts itself: {wanted}");
        assert!(found.1.contains(&said), "{}", found.1);
    };
    let pages = ",pfn,256,256,256,0,";
    is(
        pages,
        ",pfn,256,256,256,257,",
        "257 pages split of 256 tracked",
    );
    is(
        pages,
        ",pfn,256,256,255,0,",
        "255 pages still shared and 0 split do not make 256",
    );
    is(
        pages,
        ",pfn,257,257,257,0,",
        "257 tracked pages in an arena of 1048576 bytes",
    );
    is(
        ",hole,vmread,page,4096,0,EFAULT,",
        ",hole,vmread,page,4096,8192,EFAULT,",
        "8192 bytes came, 4096 were asked for",
    );
    is(
        ",hole,vmread,page,4096,0,EFAULT,",
        ",hole,vmread,page,4096,4096,EFAULT,",
        "all 4096 bytes came, and EFAULT",
    );
    is(
        ",hole,vmread,page,4096,0,EFAULT,",
        ",hole,vmread,page,4096,0,,",
        "nothing came, and no errno",
    );
}

/// A stream with sums that are right.
fn sealed(command: &str, header: &str, rows: &[&str]) -> String {
    let notes = "#kernel=6.1\n#arch=x86_64\n#page_bytes=4096\n#rows=0\n";
    let rows = rows.join("\n");
    resealed(&format!(
        "#cowitness 1\n#command={command}\n{notes}{header}\n{rows}\n#end rows=0 crc32=00000000\n"
    ))
}

#[test]
fn a_mapping_that_nobody_reads_is_no_loss_to_a_survey() {
    let header = std::iter::once("record").chain(SurveyRow::COLUMNS.iter().copied());
    let header = header.collect::<Vec<_>>().join(",");
    let row = |name: &str, status: &str| {
        let counts = ",1".repeat(10);
        format!("survey,,6.1,x86_64,4096,7,0,1000,r-xp,{name}{counts},{status},1,1,0,0,4,")
    };
    let of = |status: &str| {
        let rows = [row("[stack]", "ok"), row("[vsyscall]", status)];
        of_file(&sealed("survey", &header, &[&rows[0], &rows[1]]))
    };
    for nobody_reads in ["not-user-memory", "device-memory", "userfaultfd"] {
        assert_eq!(of(&format!("skipped:{nobody_reads}")).0, "pass");
    }
    let lost = of("skipped:mappings-changed");
    assert_eq!(lost.0, "invalid", "{}", lost.1);
}
