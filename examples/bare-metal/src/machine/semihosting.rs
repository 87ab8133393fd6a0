//! Text to whoever emulates or debugs this machine, and the end of the program (Arm, "Semihosting for AArch32 and AArch64"; RISC-V has
//! the same calls).

use super::own::call;

const SYS_WRITE0: usize = 0x04;
const SYS_EXIT_EXTENDED: usize = 0x20;
const ADP_STOPPED_APPLICATION_EXIT: usize = 0x20026;

/// Writes to the console of the host.
pub fn print(text: &str) {
    for part in text.as_bytes().chunks(63) {
        let mut line = [0; 64];
        line.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
        // SAFETY: the text ends with a zero.
        unsafe { call(SYS_WRITE0, line.as_ptr().addr()) };
    }
}

/// Ends the program, as one that went well or not.
pub fn exit(is_good: bool) -> ! {
    let block = [ADP_STOPPED_APPLICATION_EXIT, usize::from(!is_good)];
    loop {
        // SAFETY: the block holds a reason and a status.
        unsafe { call(SYS_EXIT_EXTENDED, block.as_ptr().addr()) };
    }
}
