//! A boot loader: two programs lie in it as files, one that may stand anywhere and one that may not. It checks them, loads them, relocates
//! them, says which permissions their pages want, and calls them.
#![no_std]
#![no_main]

mod load;
mod machine;
#[path = "../../bare-metal/src/machine/semihosting.rs"]
mod semihosting;

/// What calls the host, as the file that both examples have asks for it.
mod own {
    pub use crate::machine::call;
}

use core::fmt::Write as _;

use load::Region;
use semihosting::exit;

/// The console of the host.
struct Host;

impl core::fmt::Write for Host {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        semihosting::print(text);
        Ok(())
    }
}

const STATIC_PIE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/static-pie"));
const FIXED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fixed"));

/// Bytes that do not hold the headers of programs.
const HEADERS: usize = 0x100;

/// What the start code calls, with a stack and zeroed memory.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    // SAFETY: memory of the machine that the firmware was not linked to, and that is asked for once.
    let mut region = unsafe { Region::new(machine::MEMORY.start, machine::MEMORY.end) };
    let mut wrong = 0;
    for (name, file) in [("static PIE", STATIC_PIE), ("fixed", FIXED)] {
        match run(name, file, &mut region) {
            Ok(true) => {}
            Ok(false) => wrong += 1,
            Err(error) => {
                let _ = writeln!(Host, "{name}: failed: {error}");
                wrong += 1;
            }
        }
        // what is damaged is refused, and nothing is loaded
        let damaged = file.get(..HEADERS).unwrap_or_default();
        match load::load(damaged, &mut region) {
            Ok(_) => wrong += 1,
            Err(error) => {
                let _ = writeln!(Host, "{name}, a part of it: refused: {error}");
            }
        }
    }
    exit(wrong == 0)
}

/// Loads a program and calls it; whether it gave what it should.
fn run(name: &str, file: &'static [u8], region: &mut Region) -> Result<bool, load::Error> {
    let loaded = load::load(file, region)?;
    let _ = writeln!(Host, "{name}: {} bytes at {:#x}", loaded.size, loaded.base);
    for range in loaded.pages {
        let (start, size) = (loaded.base + range.offset, range.size);
        let _ = writeln!(Host, "{name}: {size:#x} bytes at {start:#x}: {:?}", range.final_flags());
    }
    let mut right = true;
    for (calls, value) in (0..).zip([10, 100]) {
        // SAFETY: the program is in memory, relocated, and its entry is a function of this type.
        let found = unsafe { machine::enter(loaded.entry, value) };
        let expected = ((value + 5) * 2 + 7) * ((value + 5) * 2 + 7) + calls;
        let _ = writeln!(Host, "{name}: gave {found}, expected {expected}");
        right &= found == expected;
    }
    Ok(right)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(Host, "{info}");
    exit(false)
}
