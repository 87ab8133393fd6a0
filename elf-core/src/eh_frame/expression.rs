//! DWARF expressions (DWARF 5, section 2.5 and 7.7.1), as far as the unwinder knows them. Jumps lead forwards only, so that every
//! expression ends; then one look at each operation shows how many values are on the stack wherever it is reached from.

use super::context::{Context, Places};
use super::error::{Error, ErrorKind};
use super::pointer::Encoding;
use super::reader::Reader;

/// The values that the unwinder's stack has room for.
const MOST: u32 = 64;

/// Jumps that have not arrived yet: where to, and with how many values.
#[derive(Debug, Default)]
struct Jumps([Option<(u64, u32)>; 8]);

impl Jumps {
    /// Enters a jump by so many bytes from the next operation on, with so many values left.
    fn add(&mut self, next: &Reader<'_>, distance: i16, depth: u32) -> Option<()> {
        let ahead = u64::try_from(distance).ok().filter(|ahead| *ahead <= next.left())?;
        let place = self.0.iter_mut().find(|place| place.is_none())?;
        *place = Some((next.at().saturating_add(ahead), depth));
        Some(())
    }

    /// How many values those have that arrive here, if any do.
    fn land(&mut self, here: &Reader<'_>) -> Result<Option<u32>, Error> {
        let mut landed = None;
        for jump in &mut self.0 {
            let Some((target, depth)) = *jump else { continue };
            if target > here.at() {
                continue;
            }
            if target < here.at() || landed.is_some_and(|landed| landed != depth) {
                return Err(here.error(ErrorKind::Jump { distance: 0 }));
            }
            (landed, *jump) = (Some(depth), None);
        }
        Ok(landed)
    }
}

/// What an operation does to the stack: it needs so many values, and there are so many more or fewer afterwards.
#[derive(Clone, Copy, Debug)]
struct Change(u32, i32);

const PUSH: Change = Change(0, 1);
const UNARY: Change = Change(1, 0);
const BINARY: Change = Change(2, -1);
const NOTHING: Change = Change(0, 0);

/// Checks an expression that begins with so many values on the stack.
pub(super) fn check<P: Places>(
    context: &Context<'_, P>,
    mut block: Reader<'_>,
    depth: u32,
) -> Result<(), Error> {
    // none where only jumps lead
    let mut depth = Some(depth);
    let mut jumps = Jumps::default();
    let mut divisor = false;
    loop {
        let start = block;
        if let Some(landed) = jumps.land(&start)? {
            if depth.is_some_and(|depth| depth != landed) {
                return Err(start.error(ErrorKind::Stack { depth: landed }));
            }
            (depth, divisor) = (Some(landed), false);
        }
        if block.is_empty() {
            break;
        }
        let opcode = block.byte("operation")?;
        let is_division = matches!(opcode, 0x1b | 0x1d);
        if is_division && !divisor {
            return Err(start.error(ErrorKind::Division));
        }
        divisor = false;
        let Change(needs, change) = match opcode {
            0x28 | 0x2f => {
                let distance = block.fixed::<2>("operand")? as i16;
                let is_conditional = opcode == 0x28;
                let left = depth.map(|depth| depth.checked_sub(is_conditional.into()));
                let bad = || start.error(ErrorKind::Stack { depth: 0 });
                if let Some(left) = left {
                    let left = left.ok_or_else(bad)?;
                    jumps
                        .add(&block, distance, left)
                        .ok_or(start.error(ErrorKind::Jump { distance }))?;
                }
                if !is_conditional {
                    depth = None;
                }
                Change(is_conditional.into(), if is_conditional { -1 } else { 0 })
            }
            _ => {
                divisor = matches!(opcode, 0x31..=0x4f);
                operation(opcode, start, &mut block, context)?
            }
        };
        if let Some(before) = &mut depth {
            let after = before.checked_add_signed(change).filter(|after| *after <= MOST);
            let after = after.filter(|_| *before >= needs);
            *before = after.ok_or(start.error(ErrorKind::Stack { depth: *before }))?;
        }
    }
    match depth {
        Some(1..) => Ok(()),
        _ => Err(block.error(ErrorKind::Stack { depth: 0 })),
    }
}

/// Takes what follows an operation that is no jump.
fn operation<P: Places>(
    opcode: u8,
    start: Reader<'_>,
    block: &mut Reader<'_>,
    context: &Context<'_, P>,
) -> Result<Change, Error> {
    let what = "operand";
    let register = |register: u64| {
        let limit = context.machine.columns;
        if register < limit {
            Ok(PUSH)
        } else {
            Err(start.error(ErrorKind::Register { register, limit }))
        }
    };
    Ok(match opcode {
        0x03 | 0x0e | 0x0f => block.fixed::<8>(what).map(|_| PUSH)?, // addr, const8
        0x08 | 0x09 => block.byte(what).map(|_| PUSH)?,              // const1
        0x0a | 0x0b => block.fixed::<2>(what).map(|_| PUSH)?,        // const2
        0x0c | 0x0d => block.fixed::<4>(what).map(|_| PUSH)?,        // const4
        0x10 => block.unsigned(what).map(|_| PUSH)?,                 // constu
        0x11 => block.signed(what).map(|_| PUSH)?,                   // consts
        0x12 => Change(1, 1),                                        // dup
        0x13 => Change(1, -1),                                       // drop
        0x14 => Change(2, 1),                                        // over
        // pick: the unwinder wants one value more than it reads
        0x15 => Change(u32::from(block.byte(what)?).saturating_add(2), 1),
        0x16 => Change(2, 0),                         // swap
        0x17 => Change(3, 0),                         // rot
        0x06 | 0x19 | 0x1f | 0x20 => UNARY,           // deref, abs, neg, not
        0x23 => block.unsigned(what).map(|_| UNARY)?, // plus_uconst
        0x94 => match block.byte(what)? {
            1 | 2 | 4 | 8 => UNARY, // deref_size
            _ => return Err(start.error(ErrorKind::Opcode { what: "operation", opcode })),
        },
        // and, div, minus, mod, mul, or, plus, shl, shr, shra, xor; eq, ge, gt, le, lt, ne
        0x1a..=0x1e | 0x21 | 0x22 | 0x24..=0x27 | 0x29..=0x2e => BINARY,
        0x30..=0x4f => PUSH,                                            // lit
        0x50..=0x6f => register(u64::from(opcode.wrapping_sub(0x50)))?, // reg
        0x70..=0x8f => {
            block.signed(what)?; // breg
            register(u64::from(opcode.wrapping_sub(0x70)))?
        }
        0x90 => register(block.unsigned(what)?)?, // regx
        0x92 => {
            let number = block.unsigned(what)?; // bregx
            block.signed(what)?;
            register(number)?
        }
        0x96 => NOTHING, // nop
        0xf1 => {
            let encoding = block.byte(what)?; // GNU_encoded_addr
            let known = Encoding::new(encoding).filter(|_| encoding & 0x80 == 0);
            let unknown = start.error(ErrorKind::Encoding { what: "address", encoding });
            known.ok_or(unknown)?.read(block, context, "address")?;
            PUSH
        }
        _ => return Err(start.error(ErrorKind::Opcode { what: "operation", opcode })),
    })
}
