//! Calls whose types are known only at run time, through libffi.

use crate::error::Error;
use crate::module::Module;
use core::ffi::c_void;
use core::fmt;
use libffi::middle::{Arg, Cif, CodePtr, Type as FfiType};

/// An argument or result of the C calling convention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// `int8_t`.
    I8(i8),
    /// `int16_t`.
    I16(i16),
    /// `int32_t`.
    I32(i32),
    /// `int64_t`.
    I64(i64),
    /// `uint8_t`.
    U8(u8),
    /// `uint16_t`.
    U16(u16),
    /// `uint32_t`.
    U32(u32),
    /// `uint64_t`.
    U64(u64),
    /// `float`.
    F32(f32),
    /// `double`.
    F64(f64),
    /// A pointer.
    Pointer(*mut c_void),
}

/// The type of a [`Value`], or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// No result.
    Void,
    /// `int8_t`.
    I8,
    /// `int16_t`.
    I16,
    /// `int32_t`.
    I32,
    /// `int64_t`.
    I64,
    /// `uint8_t`.
    U8,
    /// `uint16_t`.
    U16,
    /// `uint32_t`.
    U32,
    /// `uint64_t`.
    U64,
    /// `float`.
    F32,
    /// `double`.
    F64,
    /// A pointer.
    Pointer,
}

/// Runs `$do!` with every scalar type: variant, Rust type, libffi's constructor.
macro_rules! each_type {
    ($do:ident) => {
        $do! {
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64
        }
    };
}

impl Value {
    /// The value's type.
    #[must_use]
    pub const fn r#type(&self) -> Type {
        macro_rules! arms {
            ($($variant:ident $type:ident),*) => {
                match self {
                    $(Self::$variant(_) => Type::$variant,)*
                    Self::Pointer(_) => Type::Pointer,
                }
            };
        }
        each_type!(arms)
    }

    fn argument(&self) -> Arg<'_> {
        macro_rules! arms {
            ($($variant:ident $type:ident),*) => {
                match self {
                    $(Self::$variant(value) => Arg::new(value),)*
                    Self::Pointer(value) => Arg::new(value),
                }
            };
        }
        each_type!(arms)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        macro_rules! arms {
            ($($variant:ident $type:ident),*) => {
                match self {
                    $(Self::$variant(value) => value.fmt(f),)*
                    Self::Pointer(value) => write!(f, "{value:p}"),
                }
            };
        }
        each_type!(arms)
    }
}

impl Type {
    fn ffi(self) -> FfiType {
        macro_rules! arms {
            ($($variant:ident $type:ident),*) => {
                match self {
                    Self::Void => FfiType::void(),
                    $(Self::$variant => FfiType::$type(),)*
                    Self::Pointer => FfiType::pointer(),
                }
            };
        }
        each_type!(arms)
    }
}

/// A function of a module together with its type.
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
        let address = self.function(name)?;
        Ok(DynamicFunction {
            code: CodePtr::from_ptr(core::ptr::with_exposed_provenance(address as usize)),
            cif: Cif::new(arguments.iter().map(|argument| argument.ffi()), result.ffi()),
            arguments: arguments.to_vec(),
            result,
            module: core::marker::PhantomData,
        })
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
    pub unsafe fn call(&self, arguments: &[Value]) -> Result<Option<Value>, Error> {
        if !arguments.iter().map(Value::r#type).eq(self.arguments.iter().copied()) {
            return Err(Error::Arguments {
                expected: self.arguments.len(),
                found: arguments.len(),
            });
        }
        let arguments: Vec<Arg<'_>> = arguments.iter().map(Value::argument).collect();
        macro_rules! arms {
            ($($variant:ident $type:ident),*) => {
                // SAFETY: types and number fit what the caller vouches for; the result's type is the one of `cif`.
                unsafe {
                    match self.result {
                        Type::Void => {
                            self.cif.call::<()>(self.code, &arguments);
                            None
                        }
                        $(Type::$variant => Some(Value::$variant(self.cif.call::<$type>(self.code, &arguments))),)*
                        Type::Pointer => Some(Value::Pointer(self.cif.call::<*mut c_void>(self.code, &arguments))),
                    }
                }
            };
        }
        Ok(each_type!(arms))
    }
}
