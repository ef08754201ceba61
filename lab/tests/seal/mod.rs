//! Damage that no checksum shows.

use cowitness::emit::crc::Crc32;

/// `text` with the counts and checksums of its streams made right for what is in them now.
pub fn resealed(text: &str) -> String {
    let mut out = String::new();
    let mut announced = None;
    let (mut rows, mut crc) = (0, None::<Crc32>);
    for line in text.split_inclusive('\n') {
        let feed = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
        let plain = line.replace('\r', "");
        if plain.starts_with("#rows=") {
            announced = Some(out.len()..out.len() + line.len());
        } else if plain.starts_with("record,") {
            (rows, crc) = (0, Some(Crc32::new()));
        }
        if plain.starts_with("#end ") {
            let sum = crc.take().unwrap().value();
            out += &format!("#end rows={rows} crc32={sum:08x}{feed}");
            out.replace_range(announced.take().unwrap(), &format!("#rows={rows}{feed}"));
            continue;
        }
        if let Some(crc) = &mut crc {
            crc.update(plain.as_bytes());
            rows += u64::from(!plain.starts_with("record,"));
        }
        out += line;
    }
    out
}
