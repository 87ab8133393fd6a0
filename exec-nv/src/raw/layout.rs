//! Structures of the kernel driver's ioctls, as its headers have them on 64-bit machines.
//!
//! Offsets and sizes were taken from the headers of 535, 550, 570, 580 and 595 and are asserted here. Where a version differs,
//! there is one type for each form. Padding has names, so that what the driver reads is never left to chance.

/// Asserts size and field offsets of a structure when it is compiled.
macro_rules! assert_layout {
    ($type:ty, $size:literal $(, $field:ident @ $offset:literal)* $(,)?) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(core::mem::offset_of!($type, $field) == $offset);)*
        };
    };
}
pub(super) use assert_layout;

/// A structure of native integers without hidden padding, any bytes of which are a value.
macro_rules! structure {
    (
        $(#[$doc:meta])*
        $name:ident, $size:literal {
            $($(#[$field_doc:meta])* $offset:literal $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_doc])* #[doc = concat!("At byte ", stringify!($offset), ".")] pub $field: $type,)*
        }
        $crate::raw::layout::assert_layout!($name, $size $(, $field @ $offset)*);

        impl Default for $name {
            fn default() -> Self {
                FromZeros::new_zeroed()
            }
        }
    };
}

pub mod control;
pub mod objects;
pub mod resource_manager;
pub mod uvm;
