//! Firmware that carries two objects for its own machine, one of gcc and one of clang, links them into memory of its own without a heap,
//! and runs them.
#![no_std]
#![no_main]

mod load;
mod machine;

use core::fmt::Write as _;

use elf_core::{ApplyErrorKind, Name};
use elf_layout::{Error, ErrorKind};
use load::{Image, Memory};
use machine::{Console, exit};

/// The objects: each calls functions of the other and has pointers to them.
const OBJECTS: [&[u8]; 2] = [include_bytes!(env!("FIRST")), include_bytes!(env!("SECOND"))];

/// The first of them, with a relocation of a type that there is not.
const DAMAGED: &[u8] = include_bytes!(env!("DAMAGED"));

/// Room for the image: its bytes, and code that runs.
static MEMORY: Memory<0xa00> = Memory::new();

/// Calls: the function, what it is given, and what it returns.
type Calls = &'static [(&'static str, i32, i32)];

const CALLS: Calls = &[
    // as many constructors as there are, in the order of their priorities
    ("construct", 0, 2),
    ("constructed", 5, 26),
    // between the objects
    ("even", 10, 1),
    ("odd", 7, 1),
    // .data with a pointer into the other object, .bss
    ("data", 3, 45),
    ("data", 3, 46),
    ("zeroed", 5, 5),
    ("zeroed", 5, 21),
    // into the firmware and back
    ("back", 4, 4008),
    // pointers to functions of both
    ("pointers", 3, 461),
    ("ask", 1, 2),
    ("ask_pointer", 1, 2),
];
/// When `answer` is [`other`].
const REPLACED: Calls = &[("ask", 1, 101), ("ask_pointer", 1, 101), ("pointers", 3, 10361)];
/// When it is itself again.
const RESTORED: Calls = &[("ask", 1, 2), ("ask_pointer", 1, 2), ("answer", 41, 42)];

/// What the objects ask for and do not have.
extern "C" fn host(number: i32) -> i32 {
    1000 * number + 7
}

/// What takes the place of a function of theirs.
extern "C" fn other(number: i32) -> i32 {
    number + 100
}

fn address(function: extern "C" fn(i32) -> i32) -> usize {
    function as usize
}

fn outside(name: Name<'_>) -> Option<usize> {
    (name == "host").then_some(address(host))
}

/// What the start code calls, with a stack and zeroed memory.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let Some(memory) = MEMORY.take() else { exit(false) };
    match report(memory) {
        Ok(is_good) => exit(is_good),
        Err(error) => {
            let _ = writeln!(Console, "failed: {error}");
            exit(false)
        }
    }
}

/// Whether everything is as expected.
fn report(memory: &mut [u8]) -> Result<bool, Error> {
    let mut is_good = refusals(memory);
    let mut image = load::link(OBJECTS, memory, outside)?;
    let _ = writeln!(Console, "image: {} bytes of {}", image.size, memory.len());
    is_good &= calls(&image, CALLS);
    let Some(answer) = image.replace("answer", address(other)) else { return Ok(false) };
    is_good &= calls(&image, REPLACED);
    image.replace("answer", answer);
    is_good &= calls(&image, RESTORED);
    Ok(is_good)
}

fn calls(image: &Image, calls: Calls) -> bool {
    let mut is_good = true;
    for &(name, argument, expected) in calls {
        // SAFETY: they are all `int name(int)`, the constructors run first, and the image stays as it is.
        let value = unsafe { image.call(name, argument) };
        let _ = writeln!(Console, "{name}({argument}): {value:?}, expected {expected}");
        is_good &= value == Some(expected);
    }
    is_good
}

/// What must be refused, and whether it is, for that reason.
fn refusals(memory: &mut [u8]) -> bool {
    let [first, second] = OBJECTS;
    let mut refused = |what: &str, objects, outside: fn(Name<'_>) -> Option<usize>| {
        let error = load::link(objects, memory, outside).err();
        if let Some(error) = error {
            let _ = writeln!(Console, "refused: {what}: {error}");
        }
        error.map(|error| error.kind)
    };
    let cut = first.get(..first.len() - 1).unwrap_or_default();
    let cut = refused("cut off", [cut, second], outside);
    let damaged = refused("damaged", [DAMAGED, second], outside);
    let missing = refused("without the firmware's function", OBJECTS, |_| None);
    let text = refused("no object", [first, b"text"], outside);

    let unknown = |kind| match kind {
        Some(ErrorKind::Apply(error)) => error.kind == ApplyErrorKind::UnknownType,
        _ => false,
    };
    matches!(cut, Some(ErrorKind::Elf(_)))
        && unknown(damaged)
        && matches!(missing, Some(ErrorKind::Undefined { .. }))
        && matches!(text, Some(ErrorKind::Elf(_)))
        // wherever it is cut off
        && (0..first.len()).all(|end| load::link([&first[..end], second], memory, outside).is_err())
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(Console, "{info}");
    exit(false)
}
