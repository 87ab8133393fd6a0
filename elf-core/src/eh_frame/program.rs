//! Call frame instructions (DWARF 5, section 6.4.2 and 7.24), as far as the unwinder knows them.

use super::context::{Context, Machine, Places};
use super::error::{Error, ErrorKind};
use super::expression;
use super::pointer::Encoding;
use super::reader::Reader;

/// What has to be known of a frame to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    /// Something says where the frame is (the canonical frame address).
    is_known: bool,
    /// A rule says whether the return address is signed.
    has_sign: bool,
}

/// What follows an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operand {
    Unsigned,
    Signed,
    Byte,
    Half,
    Word,
    /// An address, encoded as those of functions.
    Address,
    /// A register that gets a rule. Where the unwinder has no room for it, the rule does nothing.
    Ruled,
    /// A register that is read.
    Read,
    /// An expression that starts with nothing on its stack.
    Frame,
    /// An expression that starts with the frame's address on its stack.
    Rule,
}

/// What an instruction does, beside giving rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    /// What follows is about later code.
    Advances,
    Defines,
    Remembers,
    Restores,
    /// Signed return addresses begin or end.
    Signs,
}

type Row = (&'static [Operand], Effect);

use Operand::{Address, Byte, Half, Read, Rule, Ruled, Signed, Unsigned, Word};

/// By number, those whose two high bits are 0.
const ROWS: [Option<Row>; 0x30] = {
    let mut rows: [Option<Row>; 0x30] = [None; 0x30];
    rows[0x00] = Some((&[], Effect::None)); // nop
    rows[0x01] = Some((&[Address], Effect::Advances)); // set_loc
    rows[0x02] = Some((&[Byte], Effect::Advances)); // advance_loc1
    rows[0x03] = Some((&[Half], Effect::Advances)); // advance_loc2
    rows[0x04] = Some((&[Word], Effect::Advances)); // advance_loc4
    rows[0x05] = Some((&[Ruled, Unsigned], Effect::None)); // offset_extended
    rows[0x06] = Some((&[Ruled], Effect::None)); // restore_extended
    rows[0x07] = Some((&[Ruled], Effect::None)); // undefined
    rows[0x08] = Some((&[Ruled], Effect::None)); // same_value
    rows[0x09] = Some((&[Ruled, Read], Effect::None)); // register
    rows[0x0a] = Some((&[], Effect::Remembers)); // remember_state
    rows[0x0b] = Some((&[], Effect::Restores)); // restore_state
    rows[0x0c] = Some((&[Read, Unsigned], Effect::Defines)); // def_cfa
    rows[0x0d] = Some((&[Read], Effect::Defines)); // def_cfa_register
    rows[0x0e] = Some((&[Unsigned], Effect::None)); // def_cfa_offset
    rows[0x0f] = Some((&[Operand::Frame], Effect::Defines)); // def_cfa_expression
    rows[0x10] = Some((&[Ruled, Rule], Effect::None)); // expression
    rows[0x11] = Some((&[Ruled, Signed], Effect::None)); // offset_extended_sf
    rows[0x12] = Some((&[Read, Signed], Effect::Defines)); // def_cfa_sf
    rows[0x13] = Some((&[Signed], Effect::None)); // def_cfa_offset_sf
    rows[0x14] = Some((&[Ruled, Unsigned], Effect::None)); // val_offset
    rows[0x15] = Some((&[Ruled, Signed], Effect::None)); // val_offset_sf
    rows[0x16] = Some((&[Ruled, Rule], Effect::None)); // val_expression
    rows[0x2d] = Some((&[], Effect::Signs)); // AARCH64_negate_ra_state
    rows[0x2e] = Some((&[Unsigned], Effect::None)); // GNU_args_size
    rows[0x2f] = Some((&[Ruled, Unsigned], Effect::None)); // GNU_negative_offset_extended
    rows
};

const ADVANCE: Row = (&[], Effect::Advances);
/// Of the register in the instruction's low bits.
const OFFSET: Row = (&[Unsigned], Effect::None);
const RESTORE: Row = (&[], Effect::None);

/// Each takes a copy of all rules from the unwinder's stack.
const MOST_STATES: u32 = 64;

/// A program that was checked, of plain instructions alone, which mean the same wherever they are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plain<'a> {
    bytes: &'a [u8],
    /// The frame that it begins with.
    frame: Frame,
}

/// Checks the instructions of a function's entry as [`check`] does. One after the other often has the same, which are checked once.
pub(super) fn check_next<'a, P: Places>(
    context: &Context<'_, P>,
    program: Reader<'a>,
    mut frame: Frame,
    code: Encoding,
    last: &mut Plain<'a>,
) -> Result<(), Error> {
    let plain = Plain { bytes: program.bytes(), frame };
    if plain.frame == last.frame && plain.bytes == last.bytes {
        return Ok(());
    }
    if pass_plain(plain.bytes, context.machine, &mut frame).is_empty() {
        *last = plain;
        return Ok(());
    }
    check(context, program, plain.frame, code).map(drop)
}

/// Checks the instructions of an entry, which begin with a frame, and gives the frame that they end with.
pub(super) fn check<P: Places>(
    context: &Context<'_, P>,
    mut program: Reader<'_>,
    mut frame: Frame,
    code: Encoding,
) -> Result<Frame, Error> {
    let machine = context.machine;
    let mut states = 0u32;
    // how many of these were remembered when the frame was not known
    let mut unknown = 0u32;
    loop {
        program.go_on(pass_plain(program.bytes(), machine, &mut frame));
        if program.is_empty() {
            return Ok(frame);
        }
        let start = program;
        let error = |kind| Err(start.error(kind));
        let opcode = program.byte("instruction")?;
        let low = u64::from(opcode & 0x3f);
        let row = match opcode >> 6 {
            1 => Some(ADVANCE),
            2 => Some(OFFSET),
            3 => Some(RESTORE),
            _ => ROWS.get(usize::from(opcode)).copied().flatten(),
        };
        let is_sign = |register| Some(register) == machine.signs;
        frame.has_sign |= opcode >> 6 == 2 && is_sign(low);
        let Some((operands, effect)) = row else {
            return error(ErrorKind::Opcode { what: "call frame instruction", opcode });
        };
        for operand in operands {
            let at = program;
            let within = |register: u64, limit: u64| {
                if register < limit {
                    Ok(())
                } else {
                    Err(at.error(ErrorKind::Register { register, limit }))
                }
            };
            match operand {
                Operand::Unsigned => _ = program.unsigned("operand")?,
                Operand::Signed => _ = program.signed("operand")?,
                Operand::Byte => _ = program.byte("operand")?,
                Operand::Half => _ = program.fixed::<2>("operand")?,
                Operand::Word => _ = program.fixed::<4>("operand")?,
                Operand::Address => _ = code.read(&mut program, context, "operand")?,
                Operand::Ruled => {
                    let register = program.unsigned("register")?;
                    within(register, machine.registers)?;
                    frame.has_sign |= is_sign(register);
                }
                Operand::Read => within(program.unsigned("register")?, machine.columns)?,
                Operand::Frame | Operand::Rule => {
                    let size = program.unsigned("size of an expression")?;
                    let block = program.part(size, "expression")?;
                    let depth = u32::from(*operand == Operand::Rule);
                    expression::check(context, block, depth)?;
                }
            }
        }
        match effect {
            Effect::None => {}
            Effect::Advances if !frame.is_known => return error(ErrorKind::NoFrame),
            Effect::Advances => {}
            Effect::Defines => frame.is_known = true,
            Effect::Remembers if states >= MOST_STATES => {
                return error(ErrorKind::TooManyStates(MOST_STATES));
            }
            Effect::Remembers => {
                states = states.saturating_add(1);
                unknown = unknown.saturating_add(u32::from(!frame.is_known));
            }
            Effect::Restores => {
                let Some(left) = states.checked_sub(1) else { return error(ErrorKind::NoState) };
                states = left;
                frame.is_known = left >= unknown;
                unknown = unknown.min(left);
            }
            Effect::Signs if machine.signs.is_none() || frame.has_sign => {
                return error(ErrorKind::Opcode { what: "call frame instruction", opcode });
            }
            Effect::Signs => {}
        }
    }
}

/// Passes over those that most programs consist of, as far as nothing can be wrong with them: with operands of a byte, and without
/// states. They do to the frame what their rows say.
#[inline]
fn pass_plain<'a>(mut program: &'a [u8], machine: Machine, frame: &mut Frame) -> &'a [u8] {
    while let [opcode, behind @ ..] = program {
        program = match (*opcode, behind) {
            // advance_loc; without a frame it is refused
            (0x40..0x80, _) if frame.is_known => behind,
            // nop; restore
            (0x00 | 0xc0.., _) => behind,
            // offset
            (0x80..0xc0, [0..0x80, behind @ ..]) => {
                frame.has_sign |= machine.signs == Some(u64::from(opcode & 0x3f));
                behind
            }
            // def_cfa_offset
            (0x0e, [0..0x80, behind @ ..]) => behind,
            // advance_loc1; advance_loc2
            (0x02, [_, behind @ ..]) | (0x03, [_, _, behind @ ..]) if frame.is_known => behind,
            // def_cfa; def_cfa_register
            (0x0c, [register @ 0..0x80, 0..0x80, behind @ ..])
            | (0x0d, [register @ 0..0x80, behind @ ..])
                if u64::from(*register) < machine.columns =>
            {
                frame.is_known = true;
                behind
            }
            _ => break,
        };
    }
    program
}
