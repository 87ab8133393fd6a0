//! How programs start: what constructors and `main` are given.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::symbols::{ArchiveSource, Symbols as _};
use exec_host::{Error, Loader, Process};
use std::ffi::{CStr, c_char, c_ulong};
use system::{ARCH, compile};

/// A constructor that keeps what it is given, and looks behind it as Go's runtime does.
const CONSTRUCTOR: &str = "
    #include <string.h>
    static int count; static char **words, **environment;
    __attribute__((constructor)) static void start(int argc, char **argv, char **envp) {
        count = argc; words = argv; environment = envp;
    }
    int given(void) { return count; }
    const char *word(int at) { return words[at]; }
    const char *variable(const char *name) {
        for (char **each = environment; *each; each++)
            if (!strncmp(*each, name, strlen(name)) && (*each)[strlen(name)] == '=') return *each + strlen(name) + 1;
        return 0;
    }
    unsigned long page_size(void) {
        char **at = words + count + 1;
        while (*at) at++;
        unsigned long *pair = (unsigned long *)(at + 1);
        while (pair[0] && pair[0] != 6) pair += 2; /* AT_PAGESZ */
        return pair[1];
    }";

#[test]
fn constructors_get_the_arguments_of_the_process() {
    let Some(compiled) = compile("cc", &["-O1", "-fPIC"], CONSTRUCTOR) else {
        println!("skipped: constructors_get_the_arguments_of_the_process: needs cc");
        return;
    };
    let load = || Loader::new().load([compiled.bytes.clone()], Process::new()).unwrap();
    let module = load();
    // SAFETY: these are the types of the functions above.
    unsafe {
        module.initialize();
        let given = module.get::<unsafe extern "C" fn() -> i32>("given").unwrap();
        let word = module.get::<unsafe extern "C" fn(i32) -> *const c_char>("word").unwrap();
        let own: Vec<String> = std::env::args().collect();
        assert_eq!(given() as usize, own.len());
        for (at, own) in own.iter().enumerate() {
            assert_eq!(CStr::from_ptr(word(at as i32)).to_str().unwrap(), own);
        }
        assert!(word(given()).is_null());
        let variable =
            module.get::<unsafe extern "C" fn(*const c_char) -> *const c_char>("variable");
        let path = variable.unwrap()(c"PATH".as_ptr());
        assert_eq!(CStr::from_ptr(path).to_str().unwrap(), std::env::var("PATH").unwrap());
        let page_size = module.get::<unsafe extern "C" fn() -> c_ulong>("page_size").unwrap();
        assert_eq!(page_size(), rustix_page_size(), "what stands behind the environment");
    }
    // those of a program that is no process
    let module = load();
    let words = [c"program".as_ptr(), c"one".as_ptr(), core::ptr::null()];
    // SAFETY: as above; the words live longer than the code.
    unsafe {
        module.initialize_as(2, words.as_ptr());
        assert_eq!(module.get::<unsafe extern "C" fn() -> i32>("given").unwrap()(), 2);
        let word = module.get::<unsafe extern "C" fn(i32) -> *const c_char>("word").unwrap();
        assert_eq!(CStr::from_ptr(word(1)), c"one");
    }
}

fn rustix_page_size() -> c_ulong {
    // SAFETY: it only asks.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.try_into().unwrap()
}

#[test]
fn rust_has_its_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let (source, archive) = (folder.path().join("words.rs"), folder.path().join("libwords.a"));
    let text =
        "#[unsafe(no_mangle)] pub extern \"C\" fn words() -> usize { std::env::args().count() }";
    std::fs::write(&source, text).unwrap();
    if system::is_emulated() {
        println!(
            "skipped: rust_has_its_arguments: an emulator has the compiler of another machine"
        );
        return;
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = std::process::Command::new(rustc);
    command.args(["--edition", "2024", "--crate-type", "staticlib", "-C", "panic=abort", "-o"]);
    if !command.arg(&archive).arg(&source).output().is_ok_and(|output| output.status.success()) {
        println!("skipped: rust_has_its_arguments: needs rustc");
        return;
    }
    let Some(compiled) =
        compile("cc", &["-O1", "-fPIC"], "long words(void); long ask(void) { return words(); }")
    else {
        println!("skipped: rust_has_its_arguments: needs cc");
        return;
    };
    let archive = ArchiveSource::open(&archive).unwrap();
    let module = Loader::new().load([compiled.bytes], archive.or(Process::new())).unwrap();
    // SAFETY: Rust's standard library and the functions above.
    unsafe {
        module.initialize();
        let ask = module.get::<unsafe extern "C" fn() -> c_ulong>("ask").unwrap();
        assert_eq!(ask() as usize, std::env::args().count());
    }
}

/// Two objects with fragments, one of which has a constructor and a destructor, too.
#[test]
fn fragments_run_in_order() {
    let has_links = cfg!(any(target_arch = "aarch64", target_arch = "arm"));
    let call = if has_links { "bl" } else { "call" };
    let at = if cfg!(target_arch = "x86_64") { "@PLT" } else { "" };
    let source = |name: &str| {
        format!(
            "extern char log_[]; extern int at_;
             void {name}_first(int argc, char **argv) {{ log_[at_++] = '{name}'; if (((long)__builtin_dwarf_cfa() & (2 * sizeof(long) - 1)) || !argv) log_[at_++] = '?'; }}
             void {name}_last(void) {{ log_[at_++] = '{name}' - 32; }}
             __asm__(\".section .init,\\\"ax\\\",%progbits\\n {call} {name}_first{at}\\n .section .fini,\\\"ax\\\",%progbits\\n {call} {name}_last{at}\\n .text\");
             int {name}(void) {{ return at_; }}"
        )
    };
    let log = "char log_[64]; int at_; int *where(void) { return &at_; } char *text(void) { return log_; }";
    let constructor = "extern char log_[]; extern int at_;
        __attribute__((constructor)) static void start(void) { log_[at_++] = '<'; }
        __attribute__((destructor)) static void end(void) { log_[at_++] = '>'; }";
    let [Some(log), Some(one), Some(two), Some(constructor)] =
        [log, &source("a"), &source("b"), constructor].map(|source| {
            compile("cc", &[STATE, "-O1", "-fPIC", "-fno-omit-frame-pointer"], source)
        })
    else {
        println!("skipped: fragments_run_in_order: needs cc");
        return;
    };
    let log = std::sync::Arc::new(Loader::new().load([log.bytes], Process::new()).unwrap());
    let objects = [one.bytes, constructor.bytes, two.bytes];
    let module = Loader::new().load(objects, log.clone().or(Process::new())).unwrap();
    assert!(module.needs_initialization());
    // SAFETY: these are the types of the functions above.
    unsafe {
        module.initialize();
        drop(module);
        let text = log.get::<unsafe extern "C" fn() -> *const c_char>("text").unwrap()();
        assert_eq!(CStr::from_ptr(text).to_str().unwrap(), "ab<>AB");
    }
}

/// What comes before fragments, a list that is only read (as clang has it of constants, and rustc), and an entry of it that is
/// another's function.
#[test]
fn lists_of_constructors() {
    let has_links = cfg!(any(target_arch = "aarch64", target_arch = "arm"));
    let call = if has_links { "bl" } else { "call" };
    let at = if cfg!(target_arch = "x86_64") { "@PLT" } else { "" };
    let word = if cfg!(target_pointer_width = "64") { ".8byte" } else { ".4byte" };
    let log = "char log_[64]; int at_; void far(void) { log_[at_++] = 'f'; } char *text(void) { return log_; }";
    let lists = format!(
        "extern char log_[]; extern int at_; extern void far(void);
         static void early(void) {{ log_[at_++] = 'p'; }}
         __attribute__((section(\".preinit_array\"), used)) static void (*first)(void) = early;
         void fragment(void) {{ log_[at_++] = 'i'; }}
         __asm__(\".section .init,\\\"ax\\\",%progbits\\n {call} fragment{at}\\n .text\");
         void constant(void) {{ log_[at_++] = 'c'; }}
         __asm__(\".section .init_array,\\\"a\\\",%init_array\\n .balign 8\\n {word} constant\\n {word} far\\n .text\");
         void last(void) {{ log_[at_++] = 'l'; }}
         __asm__(\".section .fini_array,\\\"a\\\",%fini_array\\n .balign 8\\n {word} last\\n .text\");"
    );
    let compiled = [log, &lists].map(|source| compile("cc", &[STATE, "-O1", "-fPIC"], source));
    let [Some(log), Some(lists)] = compiled else {
        println!("skipped: lists_of_constructors: needs cc");
        return;
    };
    let log = std::sync::Arc::new(Loader::new().load([log.bytes], Process::new()).unwrap());
    let module = Loader::new().load([lists.bytes], log.clone().or(Process::new())).unwrap();
    assert!(module.needs_initialization());
    // SAFETY: these are the types of the functions above.
    unsafe {
        module.initialize();
        drop(module);
        let text = log.get::<unsafe extern "C" fn() -> *const c_char>("text").unwrap()();
        assert_eq!(CStr::from_ptr(text).to_str().unwrap(), "picfl");
    }
}

/// Fragments are A32 code, of which their end is known.
const STATE: &str = if cfg!(target_arch = "arm") { "-marm" } else { "-g0" };

/// Of Thumb code it is not.
#[cfg(target_arch = "arm")]
#[test]
fn fragments_of_thumb_code_are_refused() {
    let source = "__asm__(\".section .init,\\\"ax\\\",%progbits\\n .thumb\\n nop\\n .text\");";
    let Some(compiled) = compile("cc", &["-mthumb", "-O1", "-fPIC"], source) else {
        println!("skipped: fragments_of_thumb_code_are_refused: needs cc");
        return;
    };
    let error = Loader::new().load([compiled.bytes], Process::new()).unwrap_err();
    assert!(matches!(error, Error::Fragment { object: 0, .. }), "{error}");
}

#[test]
fn start_files_are_refused_by_name() {
    let instruction = match ARCH {
        "x86_64" => "ret",
        "arm" => "bx lr",
        _ => "nop\\n ret",
    };
    let begins = "__asm__(\".section .init,\\\"ax\\\",%progbits\\n .globl _init\\n_init: nop\\n nop\\n .text\");";
    let ends = format!(
        "__asm__(\".section .fini,\\\"ax\\\",%progbits\\n nop\\n {instruction}\\n .text\");"
    );
    for source in [begins, &ends] {
        let Some(compiled) = compile("cc", &[STATE, "-O1", "-fPIC"], source) else {
            println!("skipped: start_files_are_refused_by_name: needs cc");
            return;
        };
        let error = Loader::new().load([compiled.bytes], Process::new()).unwrap_err();
        assert!(matches!(error, Error::Fragment { object: 0, .. }), "{error}");
        let name = if source == begins { ".init" } else { ".fini" };
        assert!(error.to_string().starts_with(&format!("object 0: section {name}: ")), "{error}");
    }
}

/// Go's runtime looks for the auxiliary vector behind `argv`.
#[test]
fn go_starts_in_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("sum.go"),
        "package main
         import (\"C\"; \"os\"; \"runtime\")
         //export Sum
         func Sum(n C.int) C.int {
             c := make(chan int)
             for i := 1; i <= int(n); i++ { go func(i int) { c <- i }(i) }
             s := 0
             for i := 0; i < int(n); i++ { s += <-c }
             runtime.GC()
             return C.int(s*100 + len(os.Args))
         }
         func main() {}",
    )
    .unwrap();
    let mut go = std::process::Command::new("go");
    go.args(["build", "-buildmode=c-archive", "-o", "libsum.a", "sum.go"]);
    go.current_dir(&folder).env("GO111MODULE", "off").env("GOCACHE", folder.path().join("cache"));
    if cfg!(not(target_arch = "x86_64")) || !go.output().is_ok_and(|output| output.status.success())
    {
        println!("skipped: go_starts_in_an_archive: needs go");
        return;
    }
    let asks = "int Sum(int); int ask(int n) { return Sum(n); }";
    let Some(compiled) = compile("cc", &["-O1", "-fPIC"], asks) else {
        println!("skipped: go_starts_in_an_archive: needs cc");
        return;
    };
    let archive = ArchiveSource::open(folder.path().join("libsum.a")).unwrap();
    let module = Loader::new().load([compiled.bytes], archive.or(Process::new())).unwrap();
    // SAFETY: Go's runtime, and the function above.
    let sum = unsafe {
        module.initialize();
        module.get::<unsafe extern "C" fn(i32) -> i32>("ask").unwrap()(10)
    };
    assert_eq!(sum as usize, 5500 + std::env::args().count());
    // its threads never end
    core::mem::forget(module);
}
