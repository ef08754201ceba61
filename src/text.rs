//! Text of bounded length. A text that overflowed cannot be read: what was cut would look
//! like what was meant.

/// The longest text in bytes: a row of any record.
pub const TEXT_MAX: usize = 1024;

/// The text did not fit into [`TEXT_MAX`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A line or a row under construction.
///
/// Pieces are added without a check each; overflow is remembered, and reading the text
/// is where it surfaces. There is one size only, so there is one copy of this code.
#[derive(Clone, Debug)]
pub struct Text {
    bytes: [u8; TEXT_MAX],
    len: usize,
    overflowed: bool,
}

impl Default for Text {
    fn default() -> Self {
        Self::new()
    }
}

impl Text {
    /// Empty.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: [0; TEXT_MAX],
            len: 0,
            overflowed: false,
        }
    }

    /// What stands in it.
    ///
    /// # Errors
    /// [`Full`] if anything that was added did not fit.
    pub fn read(&self) -> Result<&str, Full> {
        if self.overflowed {
            return Err(Full);
        }
        // Only whole strs and ASCII are added, so this is UTF-8.
        core::str::from_utf8(&self.bytes[..self.len]).map_err(|_| Full)
    }

    /// Adds `part`, whole or not at all.
    #[inline(never)]
    pub fn add(&mut self, part: &str) -> &mut Self {
        let end = self.len + part.len();
        match self.bytes.get_mut(self.len..end) {
            Some(space) => {
                space.copy_from_slice(part.as_bytes());
                self.len = end;
            }
            None => self.overflowed = true,
        }
        self
    }

    /// Adds `part` with `?` for each ASCII control character.
    pub fn add_printable(&mut self, part: &str) -> &mut Self {
        let start = self.len;
        self.add(part);
        let added = self.bytes[start..self.len].iter_mut();
        added
            .filter(|byte| byte.is_ascii_control())
            .for_each(|byte| *byte = b'?');
        self
    }

    /// Adds a decimal number.
    #[inline(never)]
    pub fn number(&mut self, value: u64) -> &mut Self {
        let mut digits = [0; 20];
        let mut first = digits.len();
        let mut rest = value;
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.ascii(&digits[first..])
    }

    /// Adds a decimal number with its sign, if negative.
    pub fn signed(&mut self, value: i64) -> &mut Self {
        if value < 0 {
            self.add("-");
        }
        self.number(value.unsigned_abs())
    }

    /// Adds a number in lower-case hexadecimal, as maps prints addresses but for leading zeros.
    #[inline(never)]
    pub fn address(&mut self, value: u64) -> &mut Self {
        let digits = (64 - value.leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            let nibble = (value >> (4 * digit) & 15) as usize;
            self.add(&"0123456789abcdef"[nibble..=nibble]);
        }
        self
    }

    /// Adds hundredths as a number with two decimals.
    #[inline(never)]
    pub fn hundredths(&mut self, value: u64) -> &mut Self {
        let zero = if value % 100 < 10 { ".0" } else { "." };
        self.number(value / 100).add(zero).number(value % 100)
    }

    /// Adds thousandths as a number with three decimals and, where it is negative, a sign.
    #[inline(never)]
    pub fn thousandths(&mut self, value: i64) -> &mut Self {
        let sign = if value < 0 { "-" } else { "" };
        let (whole, part) = (value.unsigned_abs() / 1000, value.unsigned_abs() % 1000);
        let zeros = match part {
            0..10 => "00",
            10..100 => "0",
            _ => "",
        };
        self.add(sign)
            .number(whole)
            .add(".")
            .add(zeros)
            .number(part)
    }

    /// Adds eight lower-case hexadecimal digits.
    pub fn hex(&mut self, value: u32) -> &mut Self {
        let digit = |index| b"0123456789abcdef"[(value >> (28 - 4 * index) & 0xf) as usize];
        self.ascii(&core::array::from_fn::<u8, 8, _>(digit))
    }

    /// Adds spaces until it is `column` characters long; at least one, so that columns
    /// never run together.
    #[inline(never)]
    pub fn pad_to(&mut self, column: usize) -> &mut Self {
        let used = width(&self.bytes[..self.len]);
        for _ in used..column.max(used + 1) {
            self.add(" ");
        }
        self
    }

    /// Adds what `write` writes, right-aligned in `columns` characters.
    #[inline(never)]
    pub fn right(&mut self, columns: usize, write: &dyn Fn(&mut Self)) -> &mut Self {
        let mut part = Self::new();
        write(&mut part);
        for _ in width(&part.bytes[..part.len])..columns {
            self.add(" ");
        }
        match part.read() {
            Ok(part) => self.add(part),
            Err(Full) => {
                self.overflowed = true;
                self
            }
        }
    }

    /// Adds a number, right-aligned in `columns` characters.
    pub fn right_number(&mut self, columns: usize, value: u64) -> &mut Self {
        self.right(columns, &|part| {
            part.number(value);
        })
    }

    fn ascii(&mut self, bytes: &[u8]) -> &mut Self {
        match core::str::from_utf8(bytes) {
            Ok(text) => self.add(text),
            Err(_) => unreachable!(),
        }
    }
}

/// Characters, for columns: the bytes of UTF-8 that begin one.
fn width(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Text)) -> std::string::String {
        let mut text = Text::new();
        write(&mut text);
        text.read().unwrap().into()
    }

    #[test]
    fn addresses() {
        for address in [0, 1, 0x10, 0x0040_0000, 0x7f12_3456_7000, u64::MAX] {
            let mut text = Text::new();
            assert_eq!(
                text.address(address).read().unwrap(),
                std::format!("{address:x}")
            );
        }
    }

    #[test]
    fn numbers() {
        for value in [0, 7, 10, 99, 100, u64::MAX] {
            assert_eq!(
                written(|text| {
                    text.number(value);
                }),
                std::format!("{value}")
            );
        }
        for value in [0, -1, i64::MIN, i64::MAX] {
            assert_eq!(
                written(|text| {
                    text.signed(value);
                }),
                std::format!("{value}")
            );
        }
        assert_eq!(
            written(|text| {
                text.hex(0x00a0_1b2c);
            }),
            "00a01b2c"
        );
    }

    #[test]
    fn two_decimals() {
        for (value, want) in [
            (0, "0.00"),
            (5, "0.05"),
            (50, "0.50"),
            (1234, "12.34"),
            (u64::MAX, "184467440737095516.15"),
        ] {
            assert_eq!(
                written(|text| {
                    text.hundredths(value);
                }),
                want
            );
        }
    }

    #[test]
    fn columns() {
        let text = written(|text| {
            text.add("µ").pad_to(4).right_number(5, 17);
            text.pad_to(3).add("|");
        });
        assert_eq!(text, "µ      17 |");
    }

    #[test]
    fn what_did_not_fit_cannot_be_read() {
        let mut text = Text::new();
        text.add(&"x".repeat(TEXT_MAX - 1)).add("y");
        assert_eq!(text.read().map(str::len), Ok(TEXT_MAX));
        text.add("");
        assert!(text.read().is_ok());
        text.add("z");
        assert_eq!(text.read(), Err(Full));
        let mut outer = Text::new();
        outer.right(3, &|part| {
            part.add(&"x".repeat(TEXT_MAX + 1));
        });
        assert_eq!(outer.read(), Err(Full));
    }
}
