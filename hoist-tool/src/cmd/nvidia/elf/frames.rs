//! Tables of unwinding (`.debug_frame`, DWARF 5 section 6.4) as cuobjdump prints them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;

use anyhow::{Context as _, Result};

mod expression;
mod reader;

use expression::expression;
use reader::Reader;

/// Prints all entries. `functions` are the names that relocations put at offsets of the section.
pub(super) fn frames(
    bytes: &[u8],
    functions: &HashMap<u64, String>,
    out: &mut dyn Write,
) -> Result<()> {
    let first = Reader::new(bytes).number(4).unwrap_or(0);
    writeln!(out, "decodeDebugFrame, frameBuf {first:#x}, total_length {}", bytes.len())?;
    let mut rest = Reader::new(bytes);
    while !rest.is_empty() {
        entry(&mut rest, functions, out).context(".debug_frame ends within an entry")??;
    }
    Ok(())
}

/// An entry; nothing if it ends too soon.
fn entry(
    rest: &mut Reader<'_>,
    functions: &HashMap<u64, String>,
    out: &mut dyn Write,
) -> Option<Result<()>> {
    let start = rest.clone().number(4)?;
    let (length, id, width) = match rest.number(4)? {
        0xffff_ffff => (rest.number(8)?, u64::MAX, 8),
        length => (length, 0xffff_ffff, 4),
    };
    let mut entry = rest.split(length)?;
    let pointer = entry.number(width)?;
    if pointer == id {
        common(entry, length, start, out)
    } else {
        function(entry, (length, pointer), functions, out)
    }
}

/// What functions have in common.
fn common(
    mut entry: Reader<'_>,
    length: u64,
    start: u64,
    out: &mut dyn Write,
) -> Option<Result<()>> {
    let version = entry.number(1)?;
    let augmentation = entry.text()?;
    // how long the numbers are
    let before = entry.rest().len();
    let code = entry.unsigned()?;
    let between = entry.rest().len();
    let data = entry.signed()?;
    let lengths = (before.checked_sub(between)?, between.checked_sub(entry.rest().len())?);
    let address = match entry.unsigned()? {
        0xffff_ffff => "0xffffffff".into(),
        number => register(number),
    };
    let size = entry.rest().len();
    let beginning = entry.clone().number(4).unwrap_or(0);
    let mut print = || {
        writeln!(out, "CIE length {length}, cie_id -1\nversion {version}")?;
        writeln!(out, "augmentation slen {}\naugmentation {augmentation}", augmentation.len() + 1)?;
        writeln!(
            out,
            "code_align_factor slen {}\ndata_align_factor slen {}",
            lengths.0, lengths.1
        )?;
        writeln!(out, " Debug Frame Common Information Entry")?;
        writeln!(out, "  length:                 {length}")?;
        writeln!(out, "  CIE_id :                -1")?;
        writeln!(out, "  version:                {version}")?;
        writeln!(out, "  augmentation:           {augmentation}")?;
        writeln!(out, "  code align factor:      {code}")?;
        writeln!(out, "  data align factor:      {data}")?;
        writeln!(out, "  return address register {address}")?;
        writeln!(
            out,
            "  initial instructions: {size} bytes, ptr = {beginning:#x}, frameBuf = {start:#x}"
        )?;
        anyhow::Ok(())
    };
    match print() {
        Ok(()) => instructions(entry, out),
        error => Some(error),
    }
}

/// Of one function.
fn function(
    mut entry: Reader<'_>,
    (length, pointer): (u64, u64),
    functions: &HashMap<u64, String>,
    out: &mut dyn Write,
) -> Option<Result<()>> {
    let at = entry.at();
    let (location, range) = (entry.number(8)?, entry.number(8)?);
    let name = functions.get(&at).map_or("N/A", String::as_str);
    let size = entry.rest().len();
    let mut print = || {
        writeln!(out, " Debug Frame Description Entry")?;
        writeln!(out, "  length:                 {length}")?;
        writeln!(out, "  CIE_pointer:            {pointer}")?;
        writeln!(out, "  initial_location:       {location:#x}")?;
        writeln!(out, "  address_range:          {range:#x}")?;
        writeln!(out, "  function:               {name}")?;
        writeln!(out, "  instructions: {size} bytes")?;
        anyhow::Ok(())
    };
    match print() {
        Ok(()) => instructions(entry, out),
        error => Some(error),
    }
}

/// Call frame instructions up to the end of an entry.
fn instructions(mut rest: Reader<'_>, out: &mut dyn Write) -> Option<Result<()>> {
    while !rest.is_empty() {
        let text = instruction(&mut rest)?;
        if let Err(error) = writeln!(out, "  DW_CFA_{text}") {
            return Some(Err(error.into()));
        }
    }
    Some(Ok(()))
}

/// An instruction (DWARF 5, table 7.29).
fn instruction(rest: &mut Reader<'_>) -> Option<String> {
    let code = rest.number(1)?;
    let low = code & 0x3f;
    Some(match code {
        0x40..0x80 => format!("advance_loc delta {low}"),
        0x80..0xc0 => format!("offset offset {:x}, register R{low}", rest.unsigned()?),
        0xc0.. => format!("restore register R{low}"),
        0x00 => "nop".to_owned(),
        0x01 => format!("set_loc address {}", rest.number(8)?),
        0x02 => format!("advance_loc1 delta {}", rest.number(1)?),
        0x03 => format!("advance_loc2 delta {}", rest.number(2)?),
        0x04 => format!("advance_loc4 delta {}", rest.number(4)?),
        0x05 => {
            format!("offset_extended register {}, offset {:x}", rest.register()?, rest.unsigned()?)
        }
        0x06 => format!("restore_extended register {}", rest.register()?),
        0x07 => format!("undefined  {}", rest.register()?),
        0x08 => format!("same_value {}", rest.register()?),
        0x09 => format!("register register {}, {}", rest.register()?, rest.register()?),
        0x0a => "remember_state".to_owned(),
        0x0b => "restore_state".to_owned(),
        0x0c => format!("def_cfa register {}, offset {}", rest.register()?, rest.unsigned()?),
        0x0d => format!("def_cfa_register register {}", rest.register()?),
        0x0e => format!("def_cfa_offset offset {}", rest.unsigned()?),
        0x0f => format!("def_cfa_expression {}", expression(rest)?),
        0x10 => format!("expression {}, {}", rest.register()?, expression(rest)?),
        0x11 => {
            format!("offset_extended_sf register {}, offset {:x}", rest.register()?, rest.signed()?)
        }
        0x16 => format!("val_expression {}, {}", rest.register()?, expression(rest)?),
        // those from here on cuobjdump does not know: it passes over their first byte and takes the others for instructions
        0x12 => format!("def_cfa_sf register {}, offset {}", rest.register()?, rest.signed()?),
        0x13 => format!("def_cfa_offset_sf offset {}", rest.signed()?),
        0x14 => format!("val_offset register {}, offset {:x}", rest.register()?, rest.unsigned()?),
        0x15 => format!("val_offset_sf register {}, offset {:x}", rest.register()?, rest.signed()?),
        0x1d => format!("MIPS_advance_loc8 delta {}", rest.number(8)?),
        0x2d => "GNU_window_save".to_owned(),
        0x2e => format!("GNU_args_size size {}", rest.unsigned()?),
        0x2f => format!(
            "GNU_negative_offset_extended register {}, offset {:x}",
            rest.register()?,
            rest.unsigned()?
        ),
        code => format!("{code:#x}"),
    })
}

/// A register: its class in the highest byte, and its number.
fn register(number: u64) -> Cow<'static, str> {
    let index = number & 0xff_ffff;
    let class = match (number >> 24, index) {
        (1, _) => "C",
        (2, _) => "P",
        (5, _) => "R",
        (6, _) => "M",
        (8, _) => "I",
        (9, _) => "UP",
        (10 | 11, _) => "UR",
        (12, 0) => return "RPC.LO".into(),
        (12, 1) => return "RPC.HI".into(),
        (12, _) => return "RPC.INVALID".into(),
        (13, _) => "PSR",
        _ => " ",
    };
    format!("{class}{index}").into()
}

impl Reader<'_> {
    fn register(&mut self) -> Option<Cow<'static, str>> {
        self.unsigned().map(register)
    }
}

#[cfg(test)]
mod tests {
    use super::{Reader, instruction};

    /// The instruction, and how many bytes are behind it.
    fn shown(bytes: &[u8]) -> Option<(String, usize)> {
        let mut rest = Reader::new(bytes);
        let text = instruction(&mut rest)?;
        Some((text, rest.rest().len()))
    }

    #[test]
    fn instructions_that_cuobjdump_does_not_know_have_their_operands() {
        let known: [(&[u8], &str); 8] = [
            (&[0x12, 0x81, 0x80, 0x80, 0x28, 0x78], "def_cfa_sf register R1, offset -8"),
            (&[0x13, 0x78], "def_cfa_offset_sf offset -8"),
            (&[0x14, 0x90, 0x80, 0x80, 0x28, 0x20], "val_offset register R16, offset 20"),
            (&[0x15, 0x90, 0x80, 0x80, 0x28, 0x20], "val_offset_sf register R16, offset 20"),
            (&[0x1d, 1, 2, 0, 0, 0, 0, 0, 0], "MIPS_advance_loc8 delta 513"),
            (&[0x2d], "GNU_window_save"),
            (&[0x2e, 0x80, 1], "GNU_args_size size 128"),
            (&[0x30], "0x30"),
        ];
        for (bytes, expected) in known {
            let longer = [bytes, &[0]].concat();
            assert_eq!(shown(&longer), Some((expected.to_owned(), 1)), "{bytes:x?}");
            for end in 1..bytes.len() {
                assert_eq!(shown(&bytes[..end]), None, "{bytes:x?}, {end}");
            }
        }
    }

    #[test]
    fn forms_of_older_compilers_are_passed_over() {
        let bytes = [0x16, 0x81, 0x80, 0x80, 0x28, 9, 5, 0x0c, 0xff, 0xff, 0xff, 0xff, 0];
        let expected = "val_expression R1,                    5 byte block:  c ff ff ff ff (DW_OP_const4u: -1)";
        assert_eq!(shown(&bytes), Some((expected.to_owned(), 1)));
    }

    #[test]
    fn operations_have_their_operands() {
        let known: [(&[u8], &str); 10] = [
            (&[0x0c, 0xff, 0xff, 0xff, 0xff], "const4u: -1"),
            (&[0x0e, 0xff, 0, 0, 0, 0, 0, 0, 0x80], "const8u: 9223372036854776063"),
            (&[0x0f, 0, 0, 0, 0, 0, 0, 0, 0x80], "const8s: -9223372036854775808"),
            (&[0x10, 0xff, 1], "constu: 255"),
            (&[0x11, 0x7f], "consts: -1"),
            (&[0x28, 0xfe, 0xff], "bra: -2"),
            (&[0x90, 0x82, 0x80, 0x80, 0x28], "regx: R2"),
            (&[0x9d, 3, 4], "bit_piece: 3, 4"),
            (&[0x9e, 2, 5, 6], "implicit_value:  5  6 "),
            (&[0x9f], "stack_value"),
        ];
        for (bytes, expected) in known {
            let all = [&[0x0f, bytes.len() as u8], bytes].concat();
            let shown = shown(&all)
                .map(|(text, left)| (text.ends_with(&format!("(DW_OP_{expected})")), left));
            assert_eq!(shown, Some((true, 0)), "{expected}");
        }
    }
}
