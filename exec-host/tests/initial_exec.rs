//! Code of initial exec whose variables find no room near the thread pointer, on x86-64: it asks descriptors, and keeps all else.
#![cfg(test)]
#![cfg(target_arch = "x86_64")]

mod system;

use exec_host::{Loader, Module, Process};
use std::fmt::Write as _;
use std::thread;
use system::compile;

const REGISTERS: [&str; 15] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];
const KEPT: [&str; 6] = ["rbx", "rbp", "r12", "r13", "r14", "r15"];

/// Functions `mov_REGISTER` and `add_REGISTER` that give the variable, or trap if anything else has changed.
fn source() -> String {
    let mut text = String::new();
    let mut line = |line: &str| {
        let _ = writeln!(text, "\"{line}\\n\"");
    };
    for register in REGISTERS {
        for form in ["mov", "add"] {
            line(&format!(".globl {form}_{register}"));
            line(&format!("{form}_{register}:"));
            KEPT.iter().for_each(|kept| line(&format!("push %{kept}")));
            line("movl $77, -16(%rsp)");
            line("movl $78, -128(%rsp)");
            let others = || REGISTERS.iter().zip(1..).filter(|(other, _)| **other != register);
            others().for_each(|(other, value)| line(&format!("mov ${value}, %{other}")));
            if form == "mov" {
                line("stc");
                line(&format!("mov number@gottpoff(%rip), %{register}"));
                line("jnc 9f");
                line(&format!("mov %fs:(%{register}), %{register}"));
            } else {
                line(&format!("mov %fs:0, %{register}"));
                line(&format!("add number@gottpoff(%rip), %{register}"));
                // what an address is not
                line("jz 9f");
                line("js 9f");
                line(&format!("mov (%{register}), %{register}"));
            }
            for (other, value) in others() {
                line(&format!("cmp ${value}, %{other}"));
                line("jne 9f");
            }
            line("cmpl $77, -16(%rsp)");
            line("jne 9f");
            line("cmpl $78, -128(%rsp)");
            line("jne 9f");
            line(&format!("mov %{register}, %rax"));
            KEPT.iter().rev().for_each(|kept| line(&format!("pop %{kept}")));
            line("ret");
            line("9: ud2");
        }
    }
    format!(
        "_Thread_local long number = 42; _Thread_local char rest[1 << 20];
         static _Thread_local int own = 3;
         int *__errno_location(void); extern _Thread_local int errno;
         int count(int by) {{ own += by; rest[sizeof rest - 1] += by; number += by; return own * 1000 + rest[sizeof rest - 1]; }}
         int of_library(int x) {{ errno = x; return *__errno_location(); }}
         __asm__(\n{text});\n"
    )
}

fn call(module: &Module<Vec<u8>>, name: &str, x: i32) -> i32 {
    // SAFETY: `int name(int)`, or one that takes nothing.
    unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>(name).unwrap()(x) }
}

#[test]
fn descriptors_stand_in() {
    let options = ["-O1", "-fPIC", "-ftls-model=initial-exec"];
    let Some(object) = compile("cc", &options, &source()) else {
        println!("skipped: descriptors_stand_in: needs cc");
        return;
    };
    let load = || Loader::new().load([object.bytes.clone()], Process::new()).unwrap();
    let (module, second) = (load(), load());
    let check = |module: &Module<Vec<u8>>| {
        for register in REGISTERS {
            assert_eq!(call(module, &format!("mov_{register}"), 0), 42, "{register}");
            assert_eq!(call(module, &format!("add_{register}"), 0), 42, "{register}");
        }
        assert_eq!(call(module, "of_library", 5), 5, "a variable of the C library");
        assert_eq!([call(module, "count", 1), call(module, "count", 1)], [4001, 5002]);
        assert_eq!(call(module, "mov_rcx", 0), 44);
    };
    check(&module);
    check(&second);
    thread::scope(|scope| {
        scope.spawn(|| check(&module));
    });
    assert_eq!(call(&module, "count", 0), 5002, "each thread has its own");
}
