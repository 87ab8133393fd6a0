//! Compares tables of relocation kinds with the answers of linkers that `make.py` wrote down.

use elf_core::{Arch, Kind, Query, Record, Role, SectionMut, Slot, Stage, apply};
use std::fmt::Write as _;

const PLACE: u64 = 0x10008;

/// Where a linker is known to answer otherwise: kind, linker, how often, why.
pub(crate) type Difference = (&'static str, &'static str, usize, &'static str);

/// Asks what the linkers were asked. All differences must be known, all known ones must be seen. Returns the number of kinds
/// compared and of answers that agree.
pub(crate) fn compare<A: Arch>(text: &str, known: &[Difference]) -> (usize, usize) {
    let (mut kinds, mut agree) = (Vec::new(), 0);
    let (mut seen, mut unknown) = (vec![0; known.len()], String::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, before, held, role, value, base, addend, lld, ld] = *words else {
            panic!("{line}")
        };
        let ours = answer::<A>(name, before, held, role, value, base, addend);
        for (linker, theirs) in
            [("lld", lld), ("ld", ld)].into_iter().filter(|(_, theirs)| *theirs != "?")
        {
            if !kinds.contains(&name) {
                kinds.push(name);
            }
            if ours == theirs {
                agree += 1;
            } else if let Some(index) =
                known.iter().position(|known| (known.0, known.1) == (name, linker))
            {
                seen[index] += 1;
            } else {
                writeln!(unknown, "{line}: ours is {ours}, that of {linker} {theirs}").unwrap();
            }
        }
    }
    assert_eq!(unknown, "", "unknown differences");
    let expected: Vec<usize> = known.iter().map(|known| known.2).collect();
    assert_eq!(seen, expected, "known differences");
    (kinds.len(), agree)
}

/// The kinds of a table that a linker computes.
pub(crate) fn count<A: Arch>() -> usize {
    let computed = |kind: &&Kind| kind.stage == Stage::Link && kind.writes();
    A::KINDS.iter().filter(computed).count()
}

fn number(hex: &str) -> i64 {
    let sign = if hex.starts_with('-') { -1i64 } else { 1 };
    sign.wrapping_mul(u64::from_str_radix(hex.trim_start_matches('-'), 16).unwrap() as i64)
}

/// The word that `apply` makes, or `-`.
fn answer<A: Arch>(
    name: &str,
    before: &str,
    held: &str,
    role: &str,
    value: &str,
    base: &str,
    addend: &str,
) -> String {
    let role = match role {
        "S" => Role::Address,
        "L" => Role::Plt,
        "G" => Role::Got(Slot::Address),
        "GD" => Role::Got(Slot::TlsGd),
        "LD" => Role::Got(Slot::TlsLd),
        "IE" => Role::Got(Slot::TpOffset),
        "DESC" => Role::Got(Slot::TlsDesc),
        "DTP" => Role::DtpOffset,
        "TP" => Role::TpOffset,
        "GOT" => Role::GotBase,
        "Z" => Role::Size,
        _ => panic!("{role}"),
    };
    let answer = |query: &Query| match query.role {
        asked if asked == role => Some(number(value) as u64),
        Role::GotBase => Some(number(base) as u64),
        _ => None,
    };
    let kind = A::KINDS.iter().find(|kind| kind.name == name).unwrap();
    let size = held.len() / 2;
    let mut bytes = [0x90; 16];
    bytes[7] = number(before) as u8;
    bytes[8..8 + size].copy_from_slice(&(number(held) as u64).to_le_bytes()[..size]);
    let rel = A::ADDRESS_SIZE == 4; // the place holds the addend
    let record = Record {
        offset: 8,
        symbol: 1,
        r#type: kind.number,
        addend: (!rel).then(|| number(addend)),
    };
    let mut section = SectionMut { bytes: &mut bytes, address: PLACE - 8, big_endian: false };
    match apply::<A>(&record, &mut section, &answer) {
        Ok(()) => bytes[8..8 + size]
            .iter()
            .rev()
            .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}")),
        Err(error) => {
            let refuses = "is not in|is no multiple of";
            assert!(refuses.split('|').any(|words| error.to_string().contains(words)), "{error}");
            "-".into()
        }
    }
}
