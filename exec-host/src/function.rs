//! Function pointers that do not outlive their code.

use crate::Host;
use core::marker::PhantomData;
use core::ops::Deref;
use elf_core::{Arch as _, Symbol};

/// Where what a symbol of this type names is, of which an address is known: bit 0 of a pointer to Thumb code says so, and is not of its place (AAELF32,
/// "Symbol Values").
pub(crate) fn place_of(r#type: u8, address: u64) -> u64 {
    Host::symbol(&Symbol { info: r#type, value: address, ..Symbol::default() }).0
}

/// A function of a loaded module, to be called like the pointer it derefs to. Who copies the pointer sees to it that the module is there
/// when it is called.
///
/// It borrows the module, so that its code is there as long as it is:
///
/// ```compile_fail,E0505
/// # use exec_host::{Module, Process};
/// # let object = include_bytes!("../../fixtures/x86_64/elftest.o");
/// # let mut process = Process::new();
/// let module = Module::load([&object[..]], &mut |name| process.find(name))?;
/// let foo = unsafe { module.get::<unsafe extern "C" fn(i32) -> f32>("foo")? };
/// drop(module); // cannot move out of `module` because it is borrowed
/// unsafe { foo(321) };
/// # Ok::<(), exec_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TypedFunction<'m, F> {
    pointer: F,
    module: PhantomData<&'m ()>,
}

impl<F> TypedFunction<'_, F> {
    pub(crate) const fn new(pointer: F) -> Self {
        Self { pointer, module: PhantomData }
    }
}

impl<F> Deref for TypedFunction<'_, F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.pointer
    }
}

/// An `unsafe` pointer to a function of the C calling convention with up to twelve arguments: `extern "C-unwind"` if exceptions or
/// panics may leave it.
///
/// Safe pointers are none, as anybody may keep a copy of one and call it when the module is gone:
///
/// ```compile_fail,E0277
/// # use exec_host::{Module, Process};
/// # let object = include_bytes!("../../fixtures/x86_64/elftest.o");
/// # let mut process = Process::new();
/// # let module = Module::load([&object[..]], &mut |name| process.find(name))?;
/// let foo = unsafe { module.get::<extern "C" fn(i32) -> f32>("foo")? }; // not a `FunctionPointer`
/// # Ok::<(), exec_host::Error>(())
/// ```
pub trait FunctionPointer: Copy + sealed::Sealed {
    /// The pointer for code at `address`.
    ///
    /// # Safety
    /// A function of this type is at `address`.
    unsafe fn at(address: usize) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! pointers {
    ($($argument:ident)*) => {
        pointers!(@ unsafe extern "C" fn($($argument),*) -> R, $($argument)*);
        pointers!(@ unsafe extern "C-unwind" fn($($argument),*) -> R, $($argument)*);
    };
    (@ $type:ty, $($argument:ident)*) => {
        impl<R, $($argument),*> sealed::Sealed for $type {}
        impl<R, $($argument),*> FunctionPointer for $type {
            unsafe fn at(address: usize) -> Self {
                let code = core::ptr::with_exposed_provenance::<()>(address);
                // SAFETY: pointers to functions and to data have one size here; the caller guarantees the type.
                unsafe { core::mem::transmute::<*const (), Self>(code) }
            }
        }
    };
}
pointers!();
pointers!(A);
pointers!(A B);
pointers!(A B C);
pointers!(A B C D);
pointers!(A B C D E);
pointers!(A B C D E G);
pointers!(A B C D E G H);
pointers!(A B C D E G H I);
pointers!(A B C D E G H I J);
pointers!(A B C D E G H I J K);
pointers!(A B C D E G H I J K L);
pointers!(A B C D E G H I J K L M);
