//! Methods of channels, compute and copy engines that are used here (`clc86f.h`, `clcbc0.h`, `clc8b5.h`). Those of compute have
//! the same numbers from Ampere to Blackwell.

/// A method of the object on a subchannel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Method {
    /// Which object of the channel it is for.
    pub subchannel: u32,
    /// Byte offset, a multiple of 4.
    pub offset: u32,
}

impl Method {
    pub(super) const fn header(self, opcode: u32, count: u32) -> u32 {
        opcode << 29 | count << 16 | self.subchannel << 13 | self.offset >> 2
    }
}

macro_rules! methods {
    ($(#[$doc:meta])* $module:ident on $subchannel:literal: $($name:ident = $offset:literal,)*) => {
        $(#[$doc])*
        pub mod $module {
            use super::Method;

            $(
                #[doc = concat!("Method ", stringify!($offset), ".")]
                pub const $name: Method = Method { subchannel: $subchannel, offset: $offset };
            )*
            /// All of them, with their names.
            pub const ALL: &[(&str, Method)] = &[$((stringify!($name), $name),)*];
        }
    };
}

methods! {
    /// Methods of the channel itself.
    channel on 0:
    NON_STALL_INTERRUPT = 0x20,
    SEM_ADDR_LO = 0x5c,
    SEM_ADDR_HI = 0x60,
    SEM_PAYLOAD_LO = 0x64,
    SEM_PAYLOAD_HI = 0x68,
    SEM_EXECUTE = 0x6c,
}

methods! {
    /// Methods of the compute classes.
    compute on 1:
    SET_OBJECT = 0x0,
    NO_OPERATION = 0x100,
    WAIT_FOR_IDLE = 0x110,
    LINE_LENGTH_IN = 0x180,
    LINE_COUNT = 0x184,
    OFFSET_OUT_UPPER = 0x188,
    LAUNCH_DMA = 0x1b0,
    LOAD_INLINE_DATA = 0x1b4,
    INVALIDATE_SHADER_CACHES = 0x21c,
    INVALIDATE_SKED_CACHES = 0x298,
    SET_SHADER_SHARED_MEMORY_WINDOW_A = 0x2a0,
    SEND_PCAS_A = 0x2b4,
    SEND_SIGNALING_PCAS_B = 0x2bc,
    SEND_SIGNALING_PCAS2_B = 0x2c0,
    SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A = 0x2e4,
    SET_SPA_VERSION = 0x310,
    SET_SHADER_LOCAL_MEMORY_A = 0x790,
    SET_SHADER_LOCAL_MEMORY_WINDOW_A = 0x7b0,
    SET_SHADER_EXCEPTIONS = 0x1528,
    INVALIDATE_SHADER_CACHES_NO_WFI = 0x1698,
    SET_REPORT_SEMAPHORE_A = 0x1b00,
}

methods! {
    /// Methods of the copy classes.
    copy on 4:
    SET_OBJECT = 0x0,
    SET_SEMAPHORE_A = 0x240,
    SET_SEMAPHORE_PAYLOAD = 0x248,
    LAUNCH_DMA = 0x300,
    OFFSET_IN_UPPER = 0x400,
    OFFSET_OUT_UPPER = 0x408,
    PITCH_IN = 0x410,
    PITCH_OUT = 0x414,
    LINE_LENGTH_IN = 0x418,
    LINE_COUNT = 0x41c,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_rise_by_words() {
        for all in [channel::ALL, compute::ALL, copy::ALL] {
            assert!(all.is_sorted_by(|(_, a), (_, b)| a.offset < b.offset));
            assert!(all.iter().all(|(_, method)| method.offset % 4 == 0 && method.offset < 0x8000));
        }
    }
}
