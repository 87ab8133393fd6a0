//! Two objects that call each other, in this process: on every architecture that there is an executor for.

use elf_core::Name;
use exec_host::{Module, Process};

#[cfg(target_arch = "aarch64")]
const OBJECTS: [&[u8]; 2] = [
    include_bytes!("../../fixtures/aarch64/pair-a.o"),
    include_bytes!("../../fixtures/aarch64/pair-b.o"),
];
#[cfg(target_arch = "arm")]
const OBJECTS: [&[u8]; 2] = [
    include_bytes!("../../fixtures/arm/pair-a-gcc12-thumb.o"),
    include_bytes!("../../fixtures/arm/pair-b-gcc12.o"),
];
#[cfg(target_arch = "riscv64")]
const OBJECTS: [&[u8]; 2] = [
    include_bytes!("../../fixtures/riscv64/pair-a.o"),
    include_bytes!("../../fixtures/riscv64/pair-b.o"),
];
#[cfg(target_arch = "x86_64")]
const OBJECTS: [&[u8]; 2] = [
    include_bytes!("../../fixtures/x86_64/pair-a-gcc12-pic.o"),
    include_bytes!("../../fixtures/x86_64/pair-b-gcc12-pic.o"),
];

/// As `fixtures/calls.toml` has it, and as the system's linker and the processor, or its emulator, say.
#[test]
fn functions_return_what_they_should() -> Result<(), exec_host::Error> {
    type Of<A> = unsafe extern "C" fn(A) -> i32;
    type Plain = unsafe extern "C" fn() -> i32;

    let mut process = Process::new();
    let module = Module::load(OBJECTS, &mut |name: Name<'_>| process.find(name))?;
    // SAFETY: these are the types of the functions in fixtures/source/pair-a.c.
    unsafe {
        assert_eq!(module.get::<Of<u32>>("is_even")?(10), 1);
        assert_eq!(module.get::<Of<u32>>("is_odd")?(10), 0);
        assert_eq!(module.get::<Plain>("picked")?(), 2);
        assert_eq!(module.get::<Plain>("call_absent")?(), -1);
        assert_eq!(module.get::<Plain>("read_fallback")?(), 77);
        assert_eq!(module.get::<Of<u32>>("through_pointers")?(3), 41);
        assert_eq!(module.get::<Of<i32>>("total")?(2), 24);
        assert_eq!(module.get::<Of<i32>>("sum_zeroes")?(7), 7);
    }
    Ok(())
}

/// Code that may become shorter does, and does the same; what holds addresses in 32 bits is below 2 GiB.
#[cfg(target_arch = "riscv64")]
#[test]
fn code_becomes_shorter() -> Result<(), exec_host::Error> {
    type Call = unsafe extern "C" fn(i32) -> i32;
    const OBJECT: &[u8] = include_bytes!("../../fixtures/riscv64/models-clang19-O0-medlow.o");

    let mut sizes = [0; 2];
    for (relax, size) in [false, true].into_iter().zip(&mut sizes) {
        let module = exec_host::Loader::new().relax(relax).load([OBJECT], Process::new())?;
        // SAFETY: these are the types of the functions in fixtures/source/models.c.
        unsafe {
            assert_eq!(module.get::<Call>("factorial")?(10), 3_628_800);
            assert_eq!(module.get::<Call>("bump")?(3), 117);
        }
        assert!(module.address("factorial").is_some_and(|address| address < 1 << 31));
        let code = module.sections().filter(|it| it.name == ".text");
        *size = code.map(|section| section.size).sum();
    }
    let [as_compiled, relaxed] = sizes;
    assert!(relaxed + 24 <= as_compiled, "six calls: {relaxed} bytes, not {as_compiled}");
    Ok(())
}
