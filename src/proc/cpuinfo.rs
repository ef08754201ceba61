//! Which CPU this is, from /proc/cpuinfo.
//!
//! Source: arch/x86/kernel/cpu/proc.c, arch/arm64/kernel/cpuinfo.c; the numbers are those
//! of MIDR_EL1, named in arch/arm64/include/asm/cputype.h.

use super::lines::complete;
use super::number::{hex, split_once};

/// What the kernel says about a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model<'a> {
    /// The text of "model name", as on x86. Not necessarily UTF-8.
    Name(&'a [u8]),
    /// The numbers of an Arm CPU.
    Arm(ArmCpu),
}

/// An Arm CPU by the two numbers that identify its design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArmCpu {
    /// Who made it: MIDR_EL1 bits 31–24, at most 0xff.
    pub implementer: u32,
    /// What they call it: MIDR_EL1 bits 15–4, at most 0xfff. Some hypervisors give 0.
    pub part: u32,
}

impl ArmCpu {
    /// The name of the design, if it is a known one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let known = |(implementer, part, _): &&(u32, u32, &str)| {
            *implementer == self.implementer && *part == self.part
        };
        PARTS.iter().find(known).map(|(_, _, name)| *name)
    }

    /// The name of the maker, if it is a known one.
    #[must_use]
    pub fn maker(self) -> Option<&'static str> {
        let known = |(implementer, _): &&(u32, &str)| *implementer == self.implementer;
        MAKERS.iter().find(known).map(|(_, name)| *name)
    }
}

const MAKERS: [(u32, &str); 11] = [
    (0x41, "Arm"),
    (0x42, "Broadcom"),
    (0x43, "Cavium"),
    (0x46, "Fujitsu"),
    (0x48, "HiSilicon"),
    (0x4e, "NVIDIA"),
    (0x50, "APM"),
    (0x51, "Qualcomm"),
    (0x61, "Apple"),
    (0x6d, "Microsoft"),
    (0xc0, "Ampere"),
];

/// Implementer, part, name: servers, clouds, and what QEMU emulates.
const PARTS: [(u32, u32, &str); 34] = [
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd04, "Cortex-A35"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd47, "Cortex-A710"),
    (0x41, 0xd48, "Cortex-X2"),
    (0x41, 0xd49, "Neoverse-N2"),
    (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd81, "Cortex-A720"),
    (0x41, 0xd84, "Neoverse-V3"),
    (0x41, 0xd8e, "Neoverse-N3"),
    (0x43, 0x0a1, "ThunderX"),
    (0x43, 0x0af, "ThunderX2"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "TSV110"),
    (0x51, 0x001, "Oryon-X1"),
    (0x51, 0xc00, "Falkor"),
    (0x61, 0x022, "M1-Icestorm"),
    (0x61, 0x023, "M1-Firestorm"),
    (0x61, 0x032, "M2-Blizzard"),
    (0x61, 0x033, "M2-Avalanche"),
    (0x6d, 0xd49, "Azure-Cobalt-100"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1A"),
];

/// The model of the first CPU; on a machine with several kinds it is one of them. Text
/// that was cut behind the first CPU's lines is enough. `None` if the kernel does not
/// say, which x86 spells `unknown`.
#[must_use]
pub fn model(text: &[u8]) -> Option<Model<'_>> {
    arm(text).map(Model::Arm).or_else(|| named(text))
}

/// On aarch64 "model name" appears as well for a 32-bit personality, and names only the
/// architecture; the numbers come first.
fn arm(text: &[u8]) -> Option<ArmCpu> {
    Some(ArmCpu {
        implementer: number(value(text, b"CPU implementer")?)?,
        part: number(value(text, b"CPU part")?)?,
    })
}

fn named(text: &[u8]) -> Option<Model<'_>> {
    let name = value(text, b"model name")?;
    let known = !name.is_empty() && name != b"unknown";
    known.then_some(Model::Name(name))
}

/// A value of the first CPU, whose lines end at the first empty one.
fn value<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    complete(text)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| split_once(line, b':'))
        .find(|(found, _)| found.trim_ascii_end() == name)
        .map(|(_, value)| value.trim_ascii())
}

fn number(text: &[u8]) -> Option<u32> {
    u32::try_from(hex(text.strip_prefix(b"0x")?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::samples::{CPUINFO_ARM, CPUINFO_X86};

    #[test]
    fn x86_has_a_name() {
        assert_eq!(model(CPUINFO_X86), Some(Model::Name(b"AMD EPYC")));
    }

    #[test]
    fn aarch64_has_numbers() {
        let cpu = ArmCpu {
            implementer: 0x41,
            part: 0xd0c,
        };
        assert_eq!(model(CPUINFO_ARM), Some(Model::Arm(cpu)));
        assert_eq!(cpu.name(), Some("Neoverse-N1"));
        assert_eq!(cpu.maker(), Some("Arm"));
    }

    #[test]
    fn designs_are_looked_up_by_both_numbers() {
        let cases = [
            (0x41, 0xd40, Some("Neoverse-V1"), Some("Arm")),
            (0x41, 0xd49, Some("Neoverse-N2"), Some("Arm")),
            (0x6d, 0xd49, Some("Azure-Cobalt-100"), Some("Microsoft")),
            (0xc0, 0xac3, Some("Ampere-1"), Some("Ampere")),
            (0x61, 0x000, None, Some("Apple")),
            (0x41, 0xfff, None, Some("Arm")),
            (0x00, 0xd0c, None, None),
        ];
        for (implementer, part, name, maker) in cases {
            let cpu = ArmCpu { implementer, part };
            assert_eq!((cpu.name(), cpu.maker()), (name, maker), "{cpu:x?}");
        }
    }

    #[test]
    fn the_tables_have_no_double_entry() {
        let sorted = |pair: &[(u32, u32, &str)]| (pair[0].0, pair[0].1) < (pair[1].0, pair[1].1);
        assert!(PARTS.windows(2).all(sorted));
        assert!(MAKERS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn hostile_texts() {
        let arm = |implementer, part| Some(Model::Arm(ArmCpu { implementer, part }));
        let cases: [(&[u8], Option<Model<'_>>); 12] = [
            (b"", None),
            (b"model name\t: \n", None),
            (b"model name\t: unknown\n", None),
            (b"model name\t: AMD EP", None),
            (b"model name\t: \xff: a\r\n", Some(Model::Name(b"\xff: a"))),
            (b"model\t: 2\nmodel name: x\n", Some(Model::Name(b"x"))),
            (
                b"CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
                arm(0x41, 0xd0c),
            ),
            (b"CPU implementer\t: 0x41\nCPU part\t: 0xd0", None),
            (b"CPU implementer\t: 0x41\n\nCPU part\t: 0xd0c\n", None),
            (b"CPU implementer\t: 41\nCPU part\t: 0xd0c\n", None),
            (b"CPU implementer\t: 0x41\nCPU part\t: 0x100000000\n", None),
            (
                b"model name\t: v8l\nCPU implementer\t: 0x41\nCPU part\t: 0xd03\n",
                arm(0x41, 0xd03),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(model(text), expected, "{}", text.escape_ascii());
        }
    }
}
