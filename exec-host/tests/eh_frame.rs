//! Damaged unwinding tables: every bit of real ones turned, and what is taken shown to the unwinder of this process.
//!
//! The unwinder reads the rules of a loaded frame here and does not follow them: who calls a function relies on its rules as on its code.
#![cfg(all(test, not(target_arch = "arm")))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use core::ffi::{c_int, c_void};
use elf_core::File;
use exec_host::{Error, Loader, Module, Process};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::ops::Range;
use std::panic::{catch_unwind, resume_unwind};
use system::{compile, extent};

/// Calls back from a frame of its own, with something to clean up: there are a personality routine and a table of exceptions.
const CPLUSPLUS: &str = "\
struct Guard { int &count; ~Guard() { count += 1; } };
extern \"C\" int through(int x, int (*back)(int)) { int count = 0; { Guard guard{count}; x = back(x); } return x + count; }
extern \"C\" int catches(int x, int (*back)(int)) { try { return back(x); } catch (int) { return 0; } }
";

/// Frames by hand: instructions and expressions that compilers seldom write.
const ASSEMBLY: &str = "\
__asm__(\".globl through\\n.type through, @function\\nthrough: .cfi_startproc\\n.cfi_signal_frame\\n\"
\"push %rbp\\n.cfi_adjust_cfa_offset 8\\n.cfi_rel_offset %rbp, 0\\n\"
\"mov %rsp, %rbp\\n.cfi_remember_state\\n.cfi_def_cfa_register %rbp\\n.cfi_escape 0x2e, 0x10\\n\"
\"sub $16, %rsp\\n.cfi_restore_state\\n.cfi_escape 0x0f, 2, 0x76, 16\\n.cfi_undefined %rdi\\n.cfi_same_value %rbx\\n\"
\".cfi_escape 0x16, 3, 11, 0x76, 0, 0x06, 0x12, 0x13, 0x31, 0x28, 1, 0, 0x96, 0x96\\n.cfi_register %r11, %r12\\n\"
\"call *%rsi\\nadd $16, %rsp\\npop %rbp\\n.cfi_def_cfa %rsp, 8\\n.cfi_restore %rbp\\nret\\n.cfi_endproc\\n\");
";

type Through = unsafe extern "C-unwind" fn(i32, extern "C-unwind" fn(i32) -> i32) -> i32;

/// The objects whose tables are turned, by name.
fn objects() -> Vec<(&'static str, Vec<u8>)> {
    let mut objects = Vec::new();
    let mut add = |name, compiler, options: &[&str], source| {
        objects.extend(compile(compiler, options, source).map(|object| (name, object.bytes)));
    };
    add("g++", "c++", &["-O2", "-fPIC", "-fno-asynchronous-unwind-tables"], CPLUSPLUS);
    add("clang++", "clang++-19", &["-O0", "-fPIC"], CPLUSPLUS);
    if cfg!(target_arch = "x86_64") {
        add("g++ without -fPIC", "c++", &["-O2", "-fno-pic", "-mno-red-zone"], CPLUSPLUS);
        add("assembly", "cc", &["-O1", "-fno-asynchronous-unwind-tables"], ASSEMBLY);
    }
    objects
}

/// Where an object has its unwinding table and the relocations of it.
fn tables(object: &[u8]) -> Vec<Range<usize>> {
    let file = File::parse(object).unwrap();
    let is_table = |name: &str| matches!(name, ".eh_frame" | ".rela.eh_frame");
    let sections = file.sections().iter().filter(|header| {
        file.section_name(header).is_ok_and(|name| name.to_str().is_some_and(is_table))
    });
    sections.map(|header| header.offset as usize..(header.offset + header.size) as usize).collect()
}

fn load(object: &[u8], process: &mut Process) -> Result<Module<Vec<u8>>, Error> {
    Loader::new().load([object.to_vec()], process)
}

extern "C-unwind" fn panics(x: i32) -> i32 {
    // no message: this one is expected
    resume_unwind(Box::new(x))
}

unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(
        trace: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_Find_FDE(address: *const u8, bases: *mut [usize; 3]) -> *const u8;
}

/// `_URC_NO_REASON`, and `_URC_NORMAL_STOP`.
const GO_ON: c_int = 0;
const STOP: c_int = 4;

/// Stops at the first frame of the range: the unwinder has read its rules then, and not yet followed them.
extern "C" fn up_to(context: *mut c_void, range: *mut c_void) -> c_int {
    // SAFETY: the unwinder's context, and the range that `looks` gives.
    let (address, range) = unsafe { (_Unwind_GetIP(context) as u64, &*range.cast::<Range<u64>>()) };
    if range.contains(&address) { STOP } else { GO_ON }
}

std::thread_local! {
    static LOAD: std::cell::Cell<(u64, u64)> = const { std::cell::Cell::new((0, 0)) };
}

extern "C-unwind" fn looks(x: i32) -> i32 {
    let (start, end) = LOAD.get();
    let mut range = start..end;
    // SAFETY: the function takes what it is given.
    unsafe { _Unwind_Backtrace(up_to, (&raw mut range).cast()) };
    x
}

/// What the program does that has loaded something: panics and backtraces of its own, and one from a function of the load.
fn around(module: &Module<Vec<u8>>) {
    assert!(catch_unwind(|| panics(1)).is_err());
    LOAD.set((0, 0));
    looks(1);
    let range = extent(module);
    for address in range.clone().step_by(3).chain([looks as *const () as u64]) {
        // SAFETY: any address may be asked for.
        unsafe { _Unwind_Find_FDE(address as *const u8, &mut [0; 3]) };
    }
    LOAD.set((range.start, range.end));
    // SAFETY: `int through(int, int (*)(int))`.
    let result = unsafe { module.get::<Through>("through").unwrap()(1, looks) };
    assert!(matches!(result, 1 | 2), "{result}");
}

const CHILD: &str = "HOIST_TEST_TURNED";

/// Turns one bit after another, from the one it is told on, and says what came of it.
#[test]
#[ignore = "needs to be started by another test"]
fn turns_bits() {
    let Ok(order) = std::env::var(CHILD) else { return };
    let words: Vec<&str> = order.splitn(2, ' ').collect();
    let [first, path] = words[..] else { panic!("{order}") };
    let object = std::fs::read(path).unwrap();
    let mut process = Process::new();
    // SAFETY: the library of C++ may be opened by anybody.
    unsafe { process.open("libstdc++.so.6") }.unwrap();
    let bits =
        tables(&object).into_iter().flatten().flat_map(|at| (0..8).map(move |bit| (at, bit)));
    let mut told = std::fs::OpenOptions::new().append(true).open(format!("{path}.told")).unwrap();
    around(&load(&object, &mut process).unwrap());
    for (number, (at, bit)) in bits.enumerate().skip(first.parse().unwrap()) {
        let mut turned = object.clone();
        turned[at] ^= 1 << bit;
        match load(&turned, &mut process) {
            Ok(module) => {
                writeln!(told, "{number} crashed").unwrap();
                around(&module);
                drop(module);
                assert!(catch_unwind(|| panics(1)).is_err());
                writeln!(told, "{number} taken").unwrap();
            }
            Err(error) => {
                let is_of_table = matches!(error, Error::Unwinding { .. });
                let names_it = error.to_string().starts_with("object 0: section .eh_frame: ");
                let kind = if is_of_table && names_it { "refused" } else { "other" };
                writeln!(told, "{number} {kind}").unwrap();
            }
        }
    }
}

/// What came of each bit, by what.
fn turn(object: &[u8]) -> BTreeMap<String, Vec<usize>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("object.o");
    std::fs::write(&path, object).unwrap();
    let told = folder.path().join("object.o.told");
    std::fs::write(&told, "").unwrap();
    let mut outcomes: BTreeMap<usize, String> = BTreeMap::new();
    loop {
        let next = outcomes.last_key_value().map_or(0, |(last, _)| last + 1);
        let mut command = system::itself();
        command.args(["--exact", "turns_bits", "--ignored"]);
        command.env(CHILD, format!("{next} {}", path.display()));
        let output = command.output().unwrap();
        for line in std::fs::read_to_string(&told).unwrap().lines() {
            let (number, outcome) = line.split_once(' ').unwrap();
            outcomes.insert(number.parse().unwrap(), outcome.to_owned());
        }
        if output.status.success() {
            break;
        }
        let is_new = outcomes.last_key_value().is_some_and(|(last, _)| *last >= next);
        assert!(is_new, "{}", String::from_utf8_lossy(&output.stdout));
    }
    let mut by_outcome: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, outcome) in outcomes {
        by_outcome.entry(outcome).or_default().push(number);
    }
    by_outcome
}

#[test]
fn what_is_taken_does_no_harm() {
    let objects = objects();
    if objects.is_empty() {
        println!("skipped: what_is_taken_does_no_harm: needs c++");
        return;
    }
    if system::is_emulated() {
        println!("skipped: what_is_taken_does_no_harm: needs the machine itself");
        return;
    }
    for (name, object) in objects {
        let outcomes = turn(&object);
        let count = |kind: &str| outcomes.get(kind).map_or(0, Vec::len);
        let bits = 8 * tables(&object).into_iter().map(|range| range.len()).sum::<usize>();
        let [taken, refused, other, crashed] = ["taken", "refused", "other", "crashed"].map(count);
        println!(
            "{name}: {bits} bits: {refused} refused, {other} by their relocations, {taken} taken, {crashed} crashed"
        );
        assert_eq!(taken + refused + other + crashed, bits);
        assert!(refused > bits / 20, "{refused}");
        assert_eq!(crashed, 0, "{name}: {:?}", outcomes["crashed"]);
    }
}
