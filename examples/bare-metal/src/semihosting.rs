//! Text to whoever emulates or debugs this machine, and the end of the program (ARM, "Semihosting for AArch32 and AArch64").

use core::fmt;

use crate::machine::call;

const SYS_WRITE0: usize = 0x04;
const SYS_EXIT_EXTENDED: usize = 0x20;
const ADP_STOPPED_APPLICATION_EXIT: usize = 0x20026;

/// The console of the host.
pub struct Host;

impl fmt::Write for Host {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.as_bytes().chunks(63) {
            let mut line = [0; 64];
            line.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            // SAFETY: the text ends with a zero.
            unsafe { call(SYS_WRITE0, line.as_ptr().addr()) };
        }
        Ok(())
    }
}

/// Ends the program with `status`.
pub fn exit(status: usize) -> ! {
    let block = [ADP_STOPPED_APPLICATION_EXIT, status];
    loop {
        // SAFETY: the block holds a reason and a status.
        unsafe { call(SYS_EXIT_EXTENDED, block.as_ptr().addr()) };
    }
}
