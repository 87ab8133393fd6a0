//! Signatures, prepared once for all calls: which register each argument goes to, or, where registers do not suffice, libffi's
//! description.

use crate::types::Kind;
use core::ffi::c_void;
use libffi::middle::{Cif, Type as FfiType};
use libffi::raw;

/// Arguments that a function can have.
pub(crate) const MOST: usize = 64;

/// Registers for integers, by architecture (psABI of x86-64, 3.2.3; AAPCS64 6.8.2; RISC-V, "Integer Calling Convention").
const INTEGERS: usize = if cfg!(target_arch = "x86_64") { 6 } else { 8 };
/// Registers for floating-point numbers.
const FLOATS: usize = 8;

/// Types of arguments and result, and how such a function is called.
pub(crate) struct Signature {
    pub(crate) arguments: Box<[Kind]>,
    pub(crate) result: Kind,
    way: Way,
}

/// How a function is called.
enum Way {
    /// All arguments are in registers for integers.
    Integers,
    /// All are in registers.
    Registers,
    /// Some are on the stack.
    Stack(Cif),
}

/// Arguments of one call as bits, each where its class is counted.
pub(crate) struct Slots {
    words: [u64; MOST],
    floats: [f64; FLOATS],
    next: (usize, usize),
}

impl Slots {
    pub(crate) const fn new() -> Self {
        Self { words: [0; MOST], floats: [0.0; FLOATS], next: (0, 0) }
    }
}

impl Signature {
    /// `None` if there are too many arguments, or one is `void`.
    pub(crate) fn new(arguments: &[Kind], result: Kind) -> Option<Self> {
        if arguments.len() > MOST || arguments.contains(&Kind::Void) {
            return None;
        }
        let floats = arguments.iter().filter(|kind| kind.is_float()).count();
        let integers = arguments.len() - floats;
        let way = if integers > INTEGERS || floats > FLOATS {
            Way::Stack(Self::cif(arguments, result))
        } else if floats == 0 && !result.is_float() {
            Way::Integers
        } else {
            Way::Registers
        };
        Some(Self { arguments: arguments.into(), result, way })
    }

    /// The same for libffi.
    pub(crate) fn cif(arguments: &[Kind], result: Kind) -> Cif {
        Cif::new(arguments.iter().map(|&kind| ffi(kind)), ffi(result))
    }

    /// Puts the next argument of a call into its place.
    pub(crate) fn put(&self, slots: &mut Slots, kind: Kind, bits: u64) {
        let (word, float) = slots.next;
        let to_float = kind.is_float() && !matches!(self.way, Way::Stack(_));
        if to_float {
            if let Some(place) = slots.floats.get_mut(float) {
                *place = f64::from_bits(boxed(kind, bits));
            }
            slots.next = (word, float + 1);
        } else {
            if let Some(place) = slots.words.get_mut(word) {
                *place = widened(kind, bits);
            }
            slots.next = (word + 1, float);
        }
    }

    /// Calls the function at `address`. Gives the bits of the result.
    ///
    /// # Safety
    /// A function of this type is there, and may be called with these arguments.
    pub(crate) unsafe fn call(&self, address: usize, slots: &mut Slots) -> u64 {
        let code = core::ptr::with_exposed_provenance_mut::<c_void>(address);
        let (words, floats) = (&slots.words, &slots.floats);
        match &self.way {
            // SAFETY: registers that the function does not know of are its to overwrite; the caller vouches for the rest.
            Way::Integers => unsafe { registers::of_integers(code, words) },
            Way::Registers if self.result.is_float() => {
                // SAFETY: as above.
                unsafe { registers::to_float(code, words, floats) }.to_bits()
            }
            // SAFETY: as above.
            Way::Registers => unsafe { registers::to_integer(code, words, floats) },
            Way::Stack(cif) => {
                let mut places =
                    slots.words.each_mut().map(|word| (&raw mut *word).cast::<c_void>());
                let mut result = [0u64; 2];
                // SAFETY: one pointer for each argument of the description; the result has room for any of ours.
                unsafe {
                    raw::ffi_call(
                        cif.as_raw_ptr(),
                        Some(core::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(code)),
                        result.as_mut_ptr().cast(),
                        places.as_mut_ptr(),
                    );
                }
                result[0]
            }
        }
    }
}

/// The bits of a floating-point number as its register has them (RISC-V, "NaN Boxing of Narrower Values").
const fn boxed(kind: Kind, bits: u64) -> u64 {
    if cfg!(target_arch = "riscv64") && matches!(kind, Kind::F32) {
        bits | (u32::MAX as u64) << 32
    } else {
        bits
    }
}

/// The bits of an integer as its register has them: RISC-V extends all of 32 bits by their sign.
const fn widened(kind: Kind, bits: u64) -> u64 {
    if cfg!(target_arch = "riscv64") && matches!(kind, Kind::U32) {
        bits as i32 as i64 as u64
    } else {
        bits
    }
}

fn ffi(kind: Kind) -> FfiType {
    match kind {
        Kind::Void => FfiType::void(),
        Kind::I8 => FfiType::i8(),
        Kind::I16 => FfiType::i16(),
        Kind::I32 => FfiType::i32(),
        Kind::I64 => FfiType::i64(),
        Kind::Bool | Kind::U8 => FfiType::u8(),
        Kind::U16 => FfiType::u16(),
        Kind::U32 => FfiType::u32(),
        Kind::U64 => FfiType::u64(),
        Kind::F32 => FfiType::f32(),
        Kind::F64 => FfiType::f64(),
        Kind::Pointer | Kind::Text => FfiType::pointer(),
    }
}

/// Calls with all registers for arguments filled: whatever a function takes, it finds.
mod registers {
    use super::{FLOATS, MOST};
    use core::ffi::c_void;

    macro_rules! calls {
        ($($word:ident)*) => {
            /// # Safety
            /// Code that takes integers in registers, if anything, and gives an integer or nothing.
            pub(super) unsafe fn of_integers(code: *mut c_void, words: &[u64; MOST]) -> u64 {
                type Function = unsafe extern "C" fn($(calls!(@ $word u64)),*) -> u64;
                let [$($word,)* ..] = *words;
                // SAFETY: as the caller says.
                unsafe { core::mem::transmute::<*mut c_void, Function>(code)($($word),*) }
            }

            calls!(to_integer u64, $($word)*);
            calls!(to_float f64, $($word)*);
        };
        ($name:ident $result:ident, $($word:ident)*) => {
            /// # Safety
            /// Code that takes its arguments in registers, and gives a number of this class, or nothing.
            pub(super) unsafe fn $name(code: *mut c_void, words: &[u64; MOST], floats: &[f64; FLOATS]) -> $result {
                type Function = unsafe extern "C" fn(
                    $(calls!(@ $word u64),)* f64, f64, f64, f64, f64, f64, f64, f64,
                ) -> $result;
                let [$($word,)* ..] = *words;
                let [s, t, u, v, w, x, y, z] = *floats;
                // SAFETY: as the caller says.
                unsafe { core::mem::transmute::<*mut c_void, Function>(code)($($word,)* s, t, u, v, w, x, y, z) }
            }
        };
        (@ $word:ident $type:ident) => { $type };
    }

    #[cfg(target_arch = "x86_64")]
    calls!(a b c d e f);
    #[cfg(not(target_arch = "x86_64"))]
    calls!(a b c d e f g h);
}
