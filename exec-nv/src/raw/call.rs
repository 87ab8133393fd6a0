//! The ioctls: their numbers, and which word the kernel knows them by.

/// An ioctl of one of the driver's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// NVIDIA's name without its prefix.
    pub name: &'static str,
    /// Its number.
    pub number: u32,
    /// Which of the two families it is of.
    pub family: Family,
}

/// Whose ioctls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// The resource manager's: direction, size and group are in the word.
    ResourceManager,
    /// Unified virtual memory's: the word is the number.
    Uvm,
}

impl Call {
    /// The word for an argument of `size` bytes.
    #[must_use]
    pub const fn word(self, size: usize) -> u32 {
        match self.family {
            Family::ResourceManager => 0xc000_4600 | (size as u32 & 0x3fff) << 16 | self.number,
            Family::Uvm => self.number,
        }
    }
}

macro_rules! calls {
    ($(#[$doc:meta])* $module:ident, $family:ident: $($name:ident = $number:literal,)*) => {
        $(#[$doc])*
        pub mod $module {
            use super::{Call, Family};

            $(
                #[doc = concat!("Number ", stringify!($number), ".")]
                pub const $name: Call =
                    Call { name: stringify!($name), number: $number, family: Family::$family };
            )*
        }
    };
}

calls! {
    /// Of the resource manager (`nv_escape.h`, `nv-ioctl-numbers.h`).
    resource_manager, ResourceManager:
    ALLOC_MEMORY = 0x27,
    FREE = 0x29,
    CONTROL = 0x2a,
    ALLOC = 0x2b,
    MAP_MEMORY = 0x4e,
    UNMAP_MEMORY = 0x4f,
    CARD_INFO = 200,
    REGISTER_FD = 201,
    CHECK_VERSION_STR = 210,
}

calls! {
    /// Of unified virtual memory (`uvm_ioctl.h`).
    uvm, Uvm:
    INITIALIZE = 0x3000_0001,
    REGISTER_GPU_VASPACE = 25,
    UNREGISTER_GPU_VASPACE = 26,
    REGISTER_CHANNEL = 27,
    UNREGISTER_CHANNEL = 28,
    MAP_EXTERNAL_ALLOCATION = 33,
    FREE = 34,
    REGISTER_GPU = 37,
    UNREGISTER_GPU = 38,
    CREATE_EXTERNAL_RANGE = 73,
    MM_INITIALIZE = 75,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        assert_eq!(resource_manager::ALLOC.word(48), 0xc030_462b);
        assert_eq!(resource_manager::CARD_INFO.word(64 * 72), 0xd200_46c8);
        assert_eq!(uvm::INITIALIZE.word(16), 0x3000_0001);
        assert_eq!(uvm::MAP_EXTERNAL_ALLOCATION.word(9264), 33);
    }
}
