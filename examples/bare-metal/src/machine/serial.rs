//! Text to the serial port of a PC, and the end of the program in the emulator.

use core::arch::asm;

const SERIAL: u16 = 0x3f8;
/// QEMU's isa-debug-exit.
const EXIT: u16 = 0xf4;

/// Writes to the serial port.
pub fn print(text: &str) {
    for byte in text.bytes() {
        // SAFETY: the emulated port always has room.
        unsafe { asm!("out dx, al", in("dx") SERIAL, in("al") byte, options(nomem, nostack)) };
    }
}

/// Ends the program, as one that went well or not. The emulator's status is twice the number here, and 1.
pub fn exit(is_good: bool) -> ! {
    let status = if is_good { 16u32 } else { 17 };
    loop {
        // SAFETY: the emulator ends.
        unsafe { asm!("out dx, eax", in("dx") EXIT, in("eax") status, options(nomem, nostack)) };
    }
}
