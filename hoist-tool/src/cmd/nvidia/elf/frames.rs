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
        // those that no compiler for these machines writes have numbers alone
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
