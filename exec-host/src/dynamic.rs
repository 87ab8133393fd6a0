//! Calls whose types are known only at run time, through libffi.

use crate::error::Error;
use crate::library::Library;
use crate::module::Module;
use core::ffi::c_void;
use libffi::middle::{Arg, Cif, CodePtr, Type as FfiType};

pub use exec_core::{Scalar, Type};

/// Runs `$do!` with every scalar type: variant, Rust type, libffi's constructor.
macro_rules! each_type {
    ($do:ident) => {
        $do! {
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64
        }
    };
}

fn argument(value: &Scalar) -> Arg<'_> {
    macro_rules! arms {
        ($($variant:ident $type:ident),*) => {
            match value {
                $(Scalar::$variant(value) => Arg::new(value),)*
                Scalar::Pointer(value) => Arg::new(value),
            }
        };
    }
    each_type!(arms)
}

/// The type as libffi knows it.
pub(crate) fn ffi(r#type: Type) -> FfiType {
    macro_rules! arms {
        ($($variant:ident $type:ident),*) => {
            match r#type {
                Type::Void => FfiType::void(),
                $(Type::$variant => FfiType::$type(),)*
                Type::Pointer => FfiType::pointer(),
            }
        };
    }
    each_type!(arms)
}

/// A function of a module together with its type.
///
/// ```
/// use exec_host::dynamic::{Scalar, Type};
/// use exec_host::{Module, Process};
///
/// # #[cfg(target_arch = "x86_64")] {
/// let object = include_bytes!("../../fixtures/x86_64/elftest.o");
/// let mut process = Process::new();
/// let module = Module::load([&object[..]], &mut |name| process.find(name))?;
/// let foo = module.dynamic("foo", &[Type::I32], Type::F32)?;
/// // SAFETY: the object was compiled from `float foo(int x) { return x + 12345678.f; }`.
/// assert_eq!(unsafe { foo.call(&[Scalar::I32(321)])? }, Some(Scalar::F32(12345999.0)));
/// // SAFETY: as above; arguments of other types are an error.
/// assert!(unsafe { foo.call(&[Scalar::F64(1.0)]) }.is_err());
/// # }
/// # Ok::<(), exec_host::Error>(())
/// ```
#[derive(Debug)]
pub struct DynamicFunction<'m> {
    code: CodePtr,
    cif: Cif,
    arguments: Vec<Type>,
    result: Type,
    module: core::marker::PhantomData<&'m ()>,
}

impl<B: AsRef<[u8]>> Module<B> {
    /// The function `name` that takes `arguments` and returns `result`.
    ///
    /// # Errors
    /// As [`Module::function`].
    pub fn dynamic(
        &self,
        name: &str,
        arguments: &[Type],
        result: Type,
    ) -> Result<DynamicFunction<'_>, Error> {
        Ok(DynamicFunction::new(self.function(name)?, arguments, result))
    }
}

impl Library {
    /// The function `name` that takes `arguments` and returns `result`.
    ///
    /// # Errors
    /// As [`Library::function`].
    pub fn dynamic(
        &self,
        name: &str,
        arguments: &[Type],
        result: Type,
    ) -> Result<DynamicFunction<'_>, Error> {
        Ok(DynamicFunction::new(self.function(name)?, arguments, result))
    }
}

impl DynamicFunction<'_> {
    fn new(address: u64, arguments: &[Type], result: Type) -> Self {
        Self {
            code: CodePtr::from_ptr(core::ptr::with_exposed_provenance(address as usize)),
            cif: Cif::new(arguments.iter().map(|&argument| ffi(argument)), ffi(result)),
            arguments: arguments.to_vec(),
            result,
            module: core::marker::PhantomData,
        }
    }
}

impl DynamicFunction<'_> {
    /// Calls the function. `None` if it returns nothing.
    ///
    /// # Errors
    /// [`Error::Arguments`] if number or types are not those that the function was asked for with.
    ///
    /// # Safety
    /// The function has the type it was asked for with; pointers are good for what it does with them; whatever it does is sound.
    pub unsafe fn call(&self, arguments: &[Scalar]) -> Result<Option<Scalar>, Error> {
        if !arguments.iter().map(Scalar::r#type).eq(self.arguments.iter().copied()) {
            return Err(Error::Arguments {
                expected: self.arguments.len(),
                found: arguments.len(),
            });
        }
        let arguments: Vec<Arg<'_>> = arguments.iter().map(argument).collect();
        macro_rules! arms {
            ($($variant:ident $type:ident),*) => {
                // SAFETY: types and number fit what the caller guarantees; the result's type is the one of `cif`.
                unsafe {
                    match self.result {
                        Type::Void => {
                            self.cif.call::<()>(self.code, &arguments);
                            None
                        }
                        $(Type::$variant => Some(Scalar::$variant(self.cif.call::<$type>(self.code, &arguments))),)*
                        Type::Pointer => Some(Scalar::Pointer(self.cif.call::<*mut c_void>(self.code, &arguments))),
                    }
                }
            };
        }
        Ok(each_type!(arms))
    }
}
