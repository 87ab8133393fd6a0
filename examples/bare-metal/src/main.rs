//! Firmware that carries two AArch64 objects and links them into memory of its own, without a heap.
//!
//! On AArch64 it calls their functions. Other machines do all but that: they make the image for the address at which another
//! processor would run it. Every machine makes that image, and all must come to the same bytes.
#![no_std]
#![no_main]

mod load;
mod machine;
mod semihosting;

use core::fmt::Write as _;

use load::Memory;
use semihosting::{Host, exit};

/// The objects: each calls functions of the other and reads its data.
const OBJECTS: [&[u8]; 2] = [
    include_bytes!("../../../fixtures/aarch64/pair-a.o"),
    include_bytes!("../../../fixtures/aarch64/pair-b.o"),
];

/// Where the image would run on another processor.
const ELSEWHERE: u64 = 0x4010_0000;

/// Room for the image: its bytes, and code that runs.
static MEMORY: Memory<0x2000> = Memory::new();

/// What the start code calls, with a stack and zeroed memory.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let Some(memory) = MEMORY.take() else { exit(2) };
    match report(memory) {
        Ok(()) => exit(0),
        Err(error) => {
            let _ = writeln!(Host, "failed: {error}");
            exit(1)
        }
    }
}

fn report(memory: &mut [u8]) -> Result<(), elf_layout::Error> {
    let image = load::link(OBJECTS, memory, ELSEWHERE, |_| None)?;
    let sum = load::checksum(image.bytes);
    let _ = writeln!(
        Host,
        "image for {ELSEWHERE:#x}: {} bytes, checksum {sum:#018x}",
        image.bytes.len()
    );

    #[cfg(target_arch = "aarch64")]
    call(memory)?;
    Ok(())
}

/// Links again, for the memory where the image is, and calls.
#[cfg(target_arch = "aarch64")]
fn call(memory: &mut [u8]) -> Result<(), elf_layout::Error> {
    use core::mem::transmute;

    /// What the objects ask for and do not have.
    extern "C" fn absent() -> i32 {
        1234
    }

    let here = memory.as_ptr().addr() as u64;
    let image = load::link(OBJECTS, memory, here, |name| {
        (name == "absent").then_some(absent as extern "C" fn() -> i32 as usize as u64)
    })?;
    machine::code_has_changed(image.bytes);
    let mut wrong = 0;
    let mut check = |name: &str, expected: i32, call: &dyn Fn(u64) -> i32| {
        let value = image.find(name).map(call);
        let _ = writeln!(Host, "{name}: {value:?}, expected {expected}");
        wrong += u32::from(value != Some(expected));
    };
    // SAFETY: the functions have these types in the objects' source, and their code and data are in memory that nothing else
    // uses and that stays as it is until the last call.
    unsafe {
        check("is_even", 1, &|at| transmute::<usize, extern "C" fn(u32) -> i32>(at as usize)(10));
        check("picked", 2, &|at| transmute::<usize, extern "C" fn() -> i32>(at as usize)());
        check("through_pointers", 41, &|at| {
            transmute::<usize, extern "C" fn(u32) -> i32>(at as usize)(3)
        });
        check("total", 24, &|at| transmute::<usize, extern "C" fn(i32) -> i32>(at as usize)(2));
        check("sum_zeroes", 7, &|at| transmute::<usize, extern "C" fn(i32) -> i32>(at as usize)(7));
        check("call_absent", 1234, &|at| transmute::<usize, extern "C" fn() -> i32>(at as usize)());
    }
    if wrong > 0 { exit(1) } else { Ok(()) }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(Host, "{info}");
    exit(101)
}
