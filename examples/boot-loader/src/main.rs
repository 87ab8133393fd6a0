//! A boot loader: two programs lie in it as files, one that may stand anywhere and one that may not. It checks them, loads them, relocates
//! them, gives their pages the permissions that these want, sees that who offends against those is stopped, and calls them.
#![no_std]
#![no_main]

mod load;
mod machine;
mod protection;

use core::fmt::Write as _;

use load::Region;
use machine::{Console, exit};

const STATIC_PIE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/static-pie"));
const FIXED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fixed"));

/// Bytes that do not hold the headers of programs.
const HEADERS: usize = 0x80;

/// What the start code calls, with a stack and zeroed memory.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let memory = protection::MEMORY;
    if !machine::reserve(memory.clone()) {
        let _ = writeln!(Console, "failed: memory at {memory:#x?} is somebody else's");
        exit(false);
    }
    protection::prepare();
    // SAFETY: memory of the machine that is nobody else's, asked for once.
    let mut region = unsafe { Region::new(memory.start, memory.end) };
    let mut wrong = 0;
    for (name, file) in [("static PIE", STATIC_PIE), ("fixed", FIXED)] {
        match run(name, file, &mut region) {
            Ok(true) => {}
            Ok(false) => wrong += 1,
            Err(error) => {
                let _ = writeln!(Console, "{name}: failed: {error}");
                wrong += 1;
            }
        }
        // what is damaged is refused, and nothing is loaded
        let damaged = file.get(..HEADERS).unwrap_or_default();
        match load::load(damaged, &mut region) {
            Ok(_) => wrong += 1,
            Err(error) => {
                let _ = writeln!(Console, "{name}, a part of it: refused: {error}");
            }
        }
    }
    exit(wrong == 0)
}

/// Loads a program and calls it; whether it gave what it should, and its pages are protected.
fn run(name: &str, file: &'static [u8], region: &mut Region) -> Result<bool, load::Error> {
    let loaded = load::load(file, region)?;
    let _ = writeln!(Console, "{name}: {} bytes at {:#x}", loaded.size, loaded.base);
    // SAFETY: the program does not run.
    let mut right = unsafe { protection::check(name, &loaded) };
    for (calls, value) in (0..).zip([10, 100]) {
        // SAFETY: the program is in memory, relocated, and its entry is a function of this type.
        let found = unsafe { machine::enter(loaded.entry, value) };
        let expected = ((value + 5) * 2 + 7) * ((value + 5) * 2 + 7) + calls;
        let _ = writeln!(Console, "{name}: gave {found}, expected {expected}");
        right &= found == expected;
    }
    Ok(right)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(Console, "{info}");
    exit(false)
}
