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

/// Places of arguments that are all in registers: those of integers, then those of floating-point numbers.
pub(crate) const REGISTERS: usize = WORDS + FLOATS;
/// Places of integers among them, whatever the architecture.
const WORDS: usize = 8;

/// Types of arguments and result, and how such a function is called.
pub(crate) struct Signature {
    pub(crate) parameters: Box<[Parameter]>,
    pub(crate) result: Kind,
    pub(crate) way: Way,
}

/// What an argument is, and where its bits go: decided once, so that a call only puts them there.
pub(crate) struct Parameter {
    pub(crate) kind: Kind,
    place: usize,
    is_in_register: bool,
}

/// How a function is called.
pub(crate) enum Way {
    /// All arguments are in registers for integers.
    Integers,
    /// All are in registers.
    Registers,
    /// Some are on the stack.
    Stack(Cif),
}

impl Parameter {
    /// Puts an argument's bits into its place.
    #[inline]
    pub(crate) fn put<const SLOTS: usize>(&self, slots: &mut [u64; SLOTS], bits: u64) {
        if let Some(slot) = slots.get_mut(self.place) {
            *slot = if self.is_in_register { in_register(self.kind, bits) } else { bits };
        }
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
        let is_in_register = !matches!(way, Way::Stack(_));
        let (mut words, mut floats) = (0.., WORDS..);
        let parameters = arguments.iter().map(|&kind| {
            let next = if is_in_register && kind.is_float() { &mut floats } else { &mut words };
            Some(Parameter { kind, place: next.next()?, is_in_register })
        });
        Some(Self { parameters: parameters.collect::<Option<_>>()?, result, way })
    }

    /// The same for libffi.
    pub(crate) fn cif(arguments: &[Kind], result: Kind) -> Cif {
        Cif::new(arguments.iter().map(|&kind| ffi(kind)), ffi(result))
    }

    /// Calls the function at `address`, all of whose arguments are in registers. Gives the bits of the result.
    ///
    /// # Safety
    /// A function of this type is there, and may be called with these arguments.
    #[inline]
    pub(crate) unsafe fn call(&self, address: usize, slots: &[u64; REGISTERS]) -> u64 {
        let code = core::ptr::with_exposed_provenance_mut::<c_void>(address);
        match &self.way {
            // SAFETY: registers that the function does not know of are its to overwrite; the caller guarantees the rest.
            Way::Integers => unsafe { registers::of_integers(code, slots) },
            // SAFETY: as above.
            _ if self.result.is_float() => unsafe { registers::to_float(code, slots) }.to_bits(),
            // SAFETY: as above.
            _ => unsafe { registers::to_integer(code, slots) },
        }
    }
}

/// Calls the function at `address` as libffi's description says. Gives the bits of the result.
///
/// # Safety
/// A function of this type is there, and may be called with these arguments.
pub(crate) unsafe fn call_with_stack(cif: &Cif, address: usize, slots: &mut [u64; MOST]) -> u64 {
    let code = core::ptr::with_exposed_provenance_mut::<c_void>(address);
    let mut places = slots.each_mut().map(|slot| (&raw mut *slot).cast::<c_void>());
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

/// The bits of an argument as its register has them. RISC-V extends all integers of 32 bits by their sign ("Integer Calling Convention"),
/// and single precision by ones ("NaN Boxing of Narrower Values").
const fn in_register(kind: Kind, bits: u64) -> u64 {
    if !cfg!(target_arch = "riscv64") {
        return bits;
    }
    match kind {
        Kind::F32 => bits | (u32::MAX as u64) << 32,
        Kind::U32 => bits as i32 as i64 as u64,
        _ => bits,
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

/// Calls with all registers for arguments filled: whatever a function takes, it finds. On x86-64 the type is that of a function with variable
/// arguments: such a one looks for floating-point numbers only if `al` says that there are any (psABI, 3.2.3), and others do not look at it.
mod registers {
    use super::{FLOATS, REGISTERS};
    use core::ffi::c_void;

    macro_rules! calls {
        ([$($more:tt)*] $($word:ident)*) => {
            /// # Safety
            /// Code that takes integers in registers, if anything, and gives an integer or nothing.
            #[inline]
            pub(super) unsafe fn of_integers(code: *mut c_void, slots: &[u64; REGISTERS]) -> u64 {
                type Function = unsafe extern "C" fn($(calls!(@ $word u64),)* $($more)*) -> u64;
                let [$($word,)* ..] = *slots;
                // SAFETY: as the caller says.
                unsafe { core::mem::transmute::<*mut c_void, Function>(code)($($word),*) }
            }

            calls!([$($more)*] to_integer u64, $($word)*);
            calls!([$($more)*] to_float f64, $($word)*);
        };
        ([$($more:tt)*] $name:ident $result:ident, $($word:ident)*) => {
            /// # Safety
            /// Code that takes its arguments in registers, and gives a number of this class, or nothing.
            #[inline]
            pub(super) unsafe fn $name(code: *mut c_void, slots: &[u64; REGISTERS]) -> $result {
                type Function = unsafe extern "C" fn(
                    $(calls!(@ $word u64),)* f64, f64, f64, f64, f64, f64, f64, f64, $($more)*
                ) -> $result;
                let [$($word,)* ..] = *slots;
                let [.., s, t, u, v, w, x, y, z] = *slots;
                let [s, t, u, v, w, x, y, z]: [f64; FLOATS] = [s, t, u, v, w, x, y, z].map(f64::from_bits);
                // SAFETY: as the caller says.
                unsafe { core::mem::transmute::<*mut c_void, Function>(code)($($word,)* s, t, u, v, w, x, y, z) }
            }
        };
        (@ $word:ident $type:ident) => { $type };
    }

    #[cfg(target_arch = "x86_64")]
    calls!([...] a b c d e f);
    #[cfg(not(target_arch = "x86_64"))]
    calls!([] a b c d e f g h);
}
