//! Which entry a driver takes for a device.
//!
//! The rules are those of the CUDA C++ Programming Guide ("Binary Compatibility", "PTX Compatibility", "Family-Specific
//! Features"); families were measured with ptxas 13.5. No rule is published for a choice between two entries that run
//! equally well: the one with the narrower promise is preferred, then the first.

use crate::cubin::CubinHeader;
use crate::entry::RegionEntry;
use crate::error::Error;
use crate::kind::{CompressionMethod, EntryKind, Sm, Suffix};
use crate::parts::Part;
use core::cmp::Reverse;
use core::fmt;

/// A version of CUDA: 12.8. A driver has the version of the newest toolkit that it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CudaVersion {
    /// Before the dot.
    pub major: u16,
    /// After the dot.
    pub minor: u16,
}

impl CudaVersion {
    /// `major.minor`.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// The newest PTX ISA that a driver of this version compiles, of `(major, minor)`: PTX ISA, "Release Notes". Versions from
    /// 13 on count along; what is newer than the table is taken to go on so.
    #[must_use]
    pub const fn ptx_isa(self) -> (u16, u16) {
        match (self.major, self.minor) {
            (..8, _) => (4, 3),
            (8, _) => (5, 0),
            (9, 0) => (6, 0),
            (9, 1) => (6, 1),
            (9, _) => (6, 2),
            (10, 0) => (6, 3),
            (10, 1) => (6, 4),
            (10, _) => (6, 5),
            (11, minor) => (7, minor),
            (12, minor @ ..=5) => (8, minor),
            (12, minor) => (8, minor.saturating_sub(1)),
            (major, minor) => (major.saturating_sub(4), minor),
        }
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl CompressionMethod {
    /// The first version of CUDA whose tools write this method, and whose drivers therefore read it: 12.4 for Zstandard
    /// (fatbinary 11.8 falls back to LZ4 when asked for it); the others are as old as the format.
    #[must_use]
    pub const fn since(self) -> Option<CudaVersion> {
        match self {
            Self::Zstd => Some(CudaVersion::new(12, 4)),
            _ => None,
        }
    }
}

/// A GPU and its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetDevice {
    /// The SM: 90, 121.
    pub sm: u32,
    /// Version of CUDA that the driver knows (`cuDriverGetVersion`).
    pub driver: CudaVersion,
}

/// How well code fits a device: the greater, the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fit {
    /// PTX, which the driver compiles.
    Compiled,
    /// Machine code for a lower minor version.
    LowerMinor,
    /// Machine code for another SM of the family.
    Family,
    /// Machine code for this SM.
    Exact,
}

/// What decides about a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What it is.
    pub kind: EntryKind,
    /// The architecture it is for.
    pub sm: Sm,
    /// Major and minor version of the code, as in [`RegionEntry::code_version`].
    pub code_version: (u16, u16),
    /// How it is compressed.
    pub compression: Option<CompressionMethod>,
}

/// The SMs of Tegra: machine code for them runs on no other, and none other's on them.
const TEGRA: [u32; 7] = [32, 53, 62, 72, 87, 101, 110];

impl Candidate {
    /// The oldest driver that reads it. PTX wants one that knows its ISA ([`CudaVersion::ptx_isa`]) besides.
    ///
    /// ELF files of ABI 8 are written from CUDA 12.8 on (measured).
    #[must_use]
    pub fn needs(&self) -> Option<CudaVersion> {
        let abi = (self.kind == EntryKind::Elf && self.code_version >= (1, 8))
            .then_some(CudaVersion::new(12, 8));
        abi.max(self.compression.and_then(CompressionMethod::since))
    }

    /// How well it fits the device; none if it does not run there.
    #[must_use]
    pub fn fit(&self, device: TargetDevice) -> Option<Fit> {
        if self.needs().is_some_and(|needed| needed > device.driver) {
            return None;
        }
        match self.kind {
            EntryKind::Elf | EntryKind::Cubin => self.machine_code(device.sm),
            EntryKind::Ptx if self.code_version > device.driver.ptx_isa() => None,
            EntryKind::Ptx => {
                let runs = match self.sm.suffix {
                    Suffix::None => self.sm.number <= device.sm,
                    Suffix::Family => in_family(self.sm, device.sm),
                    Suffix::Specific => self.sm.number == device.sm,
                };
                runs.then_some(Fit::Compiled)
            }
            _ => None,
        }
    }

    fn machine_code(&self, device: u32) -> Option<Fit> {
        if self.sm.number == device {
            return Some(Fit::Exact);
        }
        match self.sm.suffix {
            Suffix::Specific => None,
            Suffix::Family => in_family(self.sm, device).then_some(Fit::Family),
            Suffix::None => {
                let (own, other) = (self.sm, Sm::new(device));
                let tegra = TEGRA.contains(&own.number) || TEGRA.contains(&device);
                (own.major() == other.major() && own.minor() < other.minor() && !tegra)
                    .then_some(Fit::LowerMinor)
            }
        }
    }

    /// What to compare candidates by: fit, then the nearest architecture, then the narrowest promise, then the newest code.
    fn rank(&self, device: TargetDevice) -> Option<(Fit, u32, Suffix, (u16, u16))> {
        Some((self.fit(device)?, self.sm.number, self.sm.suffix, self.code_version))
    }
}

impl From<&RegionEntry<'_>> for Candidate {
    fn from(entry: &RegionEntry<'_>) -> Self {
        let (code_version, compression) = (entry.code_version(), entry.compression());
        Self { kind: entry.kind(), sm: entry.sm(), code_version, compression }
    }
}

impl From<&CubinHeader<'_>> for Candidate {
    /// An image on its own, as the runtimes of LLVM judge it: by its ELF header.
    fn from(cubin: &CubinHeader<'_>) -> Self {
        Self {
            kind: EntryKind::Elf,
            sm: cubin.sm,
            code_version: (1, cubin.abi.into()),
            compression: None,
        }
    }
}

/// Whether code for the family of `sm` runs on `device`: 100f on 100, 103 and 107, 103f on 103 and 107, 120f on 120 and 121
/// (ptxas 13.5), but not 100f on 101, which CUDA 13 calls 110.
const fn in_family(sm: Sm, device: u32) -> bool {
    let apart = sm.number == 101 || device == 101;
    sm.number == device || (sm.number / 10 == device / 10 && sm.number < device && !apart)
}

/// What a driver takes.
#[derive(Clone, Copy, Debug)]
pub struct Selected<'a> {
    /// The entry.
    pub entry: RegionEntry<'a>,
    /// The image in a concatenated entry.
    pub part: Option<Part>,
    /// How well it fits.
    pub fit: Fit,
}

/// The entry that the driver takes for the device: machine code for its very SM; else of its family; else of the same
/// major version and the highest lower minor; else PTX for the newest architecture that is not newer. None if nothing runs.
///
/// # Errors
/// The first error of `entries`, or of a concatenated entry's table.
///
/// ```
/// # fn f(region: fatbin::Region<'_>) -> Result<(), fatbin::Error> {
/// use fatbin::{CudaVersion, TargetDevice, select};
///
/// let device = TargetDevice { sm: 90, driver: CudaVersion::new(12, 8) };
/// if let Some(selected) = select(region.entries(), device)? {
///     assert!(selected.entry.sm().number <= 90);
/// }
/// # Ok(()) }
/// ```
pub fn select<'a>(
    entries: impl IntoIterator<Item = Result<RegionEntry<'a>, Error>>,
    device: TargetDevice,
) -> Result<Option<Selected<'a>>, Error> {
    let mut best = None;
    let mut count = 0_u64;
    let mut offer = |candidate: Candidate, entry, part| {
        let Some(rank) = candidate.rank(device) else { return };
        count = count.saturating_add(1);
        let key = (rank, Reverse(count));
        if best.is_none_or(|(other, _)| key > other) {
            best = Some((key, Selected { entry, part, fit: rank.0 }));
        }
    };
    for entry in entries {
        let entry = entry?;
        let whole = Candidate::from(&entry);
        offer(whole, entry, None);
        for part in entry.parts()?.iter() {
            let candidate = Candidate {
                kind: part.kind,
                sm: part.sm,
                code_version: part.code_version,
                ..whole
            };
            offer(candidate, entry, Some(part));
        }
    }
    Ok(best.map(|(_, selected)| selected))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn code(text: &str) -> Candidate {
        // "elf 90a", "elf8 100" for ABI 8, "ptx8.0 80", with " zstd" behind
        let mut words = text.split(' ');
        let (kind, sm) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
        let compression = words
            .next()
            .map(|name| CompressionMethod::ALL.into_iter().find(|m| m.name() == name).unwrap());
        let (kind, code_version) = match kind.strip_prefix("ptx") {
            Some(isa) => {
                let (major, minor) = isa.split_once('.').unwrap();
                (EntryKind::Ptx, (major.parse().unwrap(), minor.parse().unwrap()))
            }
            None => (EntryKind::Elf, (1, if kind == "elf8" { 8 } else { 7 })),
        };
        Candidate { kind, sm, code_version, compression }
    }

    #[test]
    fn the_best_of_each_list() {
        let old = CudaVersion::new(11, 8);
        let new = CudaVersion::new(13, 0);
        let cases: &[(&[&str], u32, CudaVersion, Option<&str>)] = &[
            // exact before all else, in any order
            (&["elf 80", "elf 86", "ptx7.8 86"], 86, old, Some("elf 86")),
            (&["ptx7.8 86", "elf 86", "elf 80"], 86, old, Some("elf 86")),
            // lower minor, the nearest; never a higher one, never another major
            (&["elf 80", "elf 86", "ptx7.8 80"], 89, old, Some("elf 86")),
            (&["elf 86", "ptx7.0 70"], 80, old, Some("ptx7.0 70")),
            (&["elf 75", "elf 90"], 80, old, None),
            (&["elf 75", "ptx6.3 75"], 80, old, Some("ptx6.3 75")),
            // Tegra keeps to itself
            (&["elf 86", "elf 80"], 87, old, None),
            (&["elf 87", "ptx7.0 80"], 89, old, Some("ptx7.0 80")),
            (&["elf 87"], 87, old, Some("elf 87")),
            // suffix a: this very SM
            (&["elf 90", "elf 90a"], 90, new, Some("elf 90a")),
            (&["elf8 100a", "ptx8.7 100a", "ptx8.0 90"], 103, new, Some("ptx8.0 90")),
            (&["ptx8.0 90a", "ptx7.0 80"], 90, new, Some("ptx8.0 90a")),
            (&["ptx8.0 90a"], 100, new, None),
            // suffix f: the family upwards
            (&["elf8 100f", "elf8 100"], 103, new, Some("elf8 100f")),
            (&["elf8 103f", "ptx8.8 100f"], 100, new, Some("ptx8.8 100f")),
            (&["elf8 120f"], 121, new, Some("elf8 120f")),
            (&["elf8 120f"], 103, new, None),
            (&["elf8 100f"], 101, new, None),
            (&["ptx9.0 100f", "ptx9.0 100"], 110, new, Some("ptx9.0 100")),
            // PTX: the newest that is not newer, and that the driver knows
            (&["ptx7.0 80", "ptx7.8 90", "ptx8.7 100"], 90, new, Some("ptx7.8 90")),
            (&["ptx7.0 80", "ptx8.0 80"], 80, old, Some("ptx7.0 80")),
            (&["ptx7.0 80", "ptx8.0 80"], 80, new, Some("ptx8.0 80")),
            (&["ptx9.1 90"], 90, new, None),
            (&["ptx9.0 90"], 90, new, Some("ptx9.0 90")),
            // what an old driver cannot read
            (&["elf 80 zstd", "ptx7.0 70 lz4"], 80, old, Some("ptx7.0 70 lz4")),
            (&["elf 80 zstd", "ptx7.0 70 lz4"], 80, CudaVersion::new(12, 4), Some("elf 80 zstd")),
            (&["elf8 90", "ptx8.0 90"], 90, CudaVersion::new(12, 4), Some("ptx8.0 90")),
            (&["elf8 90", "ptx8.0 90"], 90, CudaVersion::new(12, 8), Some("elf8 90")),
            (&[], 90, new, None),
        ];
        for (list, sm, driver, expected) in cases {
            let device = TargetDevice { sm: *sm, driver: *driver };
            let ranked = list.iter().filter_map(|text| Some((code(text).rank(device)?, *text)));
            let mut ranked: Vec<_> = ranked.collect();
            ranked.reverse(); // `max_by_key` takes the last of equals
            let best = ranked.iter().max_by_key(|(rank, _)| *rank).map(|(_, text)| *text);
            assert_eq!(best, *expected, "{list:?} on sm_{sm}, driver {driver}");
        }
    }

    #[test]
    fn ptx_versions() {
        for (cuda, isa) in [
            ((8, 0), (5, 0)),
            ((9, 2), (6, 2)),
            ((10, 2), (6, 5)),
            ((11, 8), (7, 8)),
            ((12, 5), (8, 5)),
            ((12, 6), (8, 5)),
            ((12, 8), (8, 7)),
            ((12, 9), (8, 8)),
            ((13, 0), (9, 0)),
            ((13, 5), (9, 5)),
        ] {
            assert_eq!(CudaVersion::new(cuda.0, cuda.1).ptx_isa(), isa);
        }
    }
}
