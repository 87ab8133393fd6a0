//! Code in processes that may not make written memory executable, and on huge pages.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::{Error, Loader, Module, Process};
use std::process::Command;
use system::{ARCH, compile, extent, fixture, is_emulated, mapped, maps, objects};

fn call(loader: &Loader) -> Result<f32, Error> {
    let module = loader.load([fixture(&format!("{ARCH}/elftest.o"))], Process::new())?;
    // SAFETY: `float foo(int x) { return x + 12345678.f; }`
    let foo = unsafe { module.get::<unsafe extern "C" fn(i32) -> f32>("foo") }?;
    // SAFETY: as above.
    Ok(unsafe { foo(321) })
}

/// Every object that loads otherwise loads this way too, with the same permissions, and writable only where it wants to be.
#[test]
fn every_object() {
    let loader = Loader::new().dual_mapping(true);
    let mut loaded = 0;
    for (name, bytes) in objects() {
        let usual = Loader::new().load([&bytes], Process::new());
        let dual = loader.load([&bytes], Process::new());
        let is_of_other_order = matches!(usual, Err(Error::ByteOrder { object: 0 }));
        assert_eq!(is_of_other_order, name.contains("big-endian"), "{name}");
        match (usual, dual) {
            (Ok(_), Ok(module)) => {
                let range = extent(&module);
                for part in mapped(&range) {
                    let kinds = ["r--p", "rw-p", "r-xp", "---p"];
                    assert!(kinds.contains(&&*part.permissions), "{name}: {}", part.permissions);
                    assert!(part.permissions == "---p" || part.path == "/memfd:hoist", "{part:?}");
                }
                loaded += 1;
            }
            (Err(usual), Err(dual)) => assert_eq!(usual.to_string(), dual.to_string(), "{name}"),
            (usual, dual) => panic!("{name}: {usual:?} {dual:?}"),
        }
    }
    assert!(loaded > 10, "{loaded}");
    // those of other tests that load at the same time go by and by
    let is_alias = |map: &system::Map| map.path.contains("memfd") && map.permissions.ends_with('s');
    let start = std::time::Instant::now();
    while maps().iter().any(is_alias) {
        assert!(start.elapsed().as_secs() < 10, "where it was written is still mapped");
    }
}

/// What one process writes to variables, its child does not see: data are private.
#[test]
fn data_are_private() {
    let source = "int value = 1; int set(int to) { int old = value; value = to; return old; }";
    let Some(compiled) = compile("cc", &["-O1", "-fPIC"], source) else {
        println!("skipped: data_are_private: needs cc");
        return;
    };
    let loader = Loader::new().dual_mapping(true);
    let module = loader.load([compiled.bytes], Process::new()).unwrap();
    // SAFETY: `int set(int)`.
    let set = unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>("set").unwrap() };
    // SAFETY: the child calls nothing but loaded code and `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above; ends the child at once.
        unsafe { libc::_exit(set(2) + 10 * set(3)) };
    }
    let mut status = 0;
    // SAFETY: the result is written to a variable of ours.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), 21);
    // SAFETY: as above.
    assert_eq!(unsafe { set(7) }, 1, "the child's own");
}

/// A filter for the calling thread that refuses `mprotect` with `PROT_EXEC`. Whether there is one now.
fn forbid_protect() -> bool {
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        instruction(0x20, 0, 0, 0), // load the call's number
        instruction(0x15, 0, 3, libc::SYS_mprotect as u32), // mprotect?
        instruction(0x20, 0, 0, 32), // load the third argument
        instruction(0x45, 0, 1, libc::PROT_EXEC as u32), // with PROT_EXEC?
        instruction(0x06, 0, 0, 0x0005_0000 | libc::EACCES as u32),
        instruction(0x06, 0, 0, 0x7fff_0000),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program is whole, and read before the call returns.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, 2, &raw const program) == 0
    }
}

#[test]
fn under_a_filter_of_calls() {
    let thread = std::thread::spawn(|| {
        if !forbid_protect() {
            println!("skipped: under_a_filter_of_calls: needs seccomp");
            return;
        }
        let refused = call(&Loader::new()).unwrap_err();
        assert!(matches!(refused, Error::Map { .. }), "{refused}");
        assert_eq!(call(&Loader::new().dual_mapping(true)).unwrap(), 12_345_999.0);
    });
    thread.join().unwrap();
}

/// Runs in a process of its own: the policy is for all of it, and for good.
#[test]
fn where_exec_gain_is_refused() {
    const CHILD: &str = "HOIST_TEST_REFUSE_EXEC_GAIN";
    const NONE: i32 = 77;
    if std::env::var_os(CHILD).is_some() {
        // SAFETY: `PR_SET_MDWE` with `PR_MDWE_REFUSE_EXEC_GAIN`.
        if unsafe { libc::prctl(65, 1, 0, 0, 0) } != 0 {
            std::process::exit(NONE);
        }
        assert!(matches!(call(&Loader::new()), Err(Error::Map { .. })));
        assert_eq!(call(&Loader::new().dual_mapping(true)).unwrap(), 12_345_999.0);
        return;
    }
    if is_emulated() {
        println!("skipped: where_exec_gain_is_refused: needs the machine itself");
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "where_exec_gain_is_refused", "--nocapture"]).env(CHILD, "1");
    let Ok(output) = child.output() else {
        println!("skipped: where_exec_gain_is_refused: needs processes");
        return;
    };
    match output.status.code() {
        Some(0) => {}
        Some(NONE) => println!("skipped: where_exec_gain_is_refused: needs PR_SET_MDWE"),
        _ => panic!("{}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Code of more than 5 MiB.
const LARGE: &str =
    "__asm__(\".section .text\\n .fill 5 << 20, 1, 0\"); int far(int x) { return x + 1; }";

/// Modules of some MiB begin with a huge page whether that was asked for or not, and take what is left of the last one if it is the smaller part.
#[test]
fn large_modules_begin_with_a_huge_page() {
    let Some(compiled) = compile("cc", &["-O1"], LARGE) else {
        println!("skipped: large_modules_begin_with_a_huge_page: needs cc");
        return;
    };
    let module = Module::load([&compiled.bytes], &mut |_| None).unwrap();
    // SAFETY: `int far(int)`.
    assert_eq!(unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>("far").unwrap()(1) }, 2);
    let (start, size) = module.extent();
    assert!(start.is_multiple_of(2 << 20), "{start:#x}");
    assert_eq!(size, 6 << 20);
}

/// Memory of images of many MiB is there before it is known how many, where there is a second processor: no more of it than usual is left.
#[test]
fn images_of_many_mib() {
    let source = |name: &str| {
        let fill = "__asm__(\".section .text\\n .fill 20 << 20, 1, 0x90\");";
        compile("cc", &["-O1"], &format!("{fill} int {name}(int x) {{ return x + 1; }}"))
    };
    let (Some(first), Some(second)) = (source("first"), source("second")) else {
        println!("skipped: images_of_many_mib: needs cc");
        return;
    };
    let sizes = [false, true].map(|is_dual| {
        let loader = Loader::new().dual_mapping(is_dual);
        let module = loader.load([&first.bytes, &second.bytes], Process::new()).unwrap();
        for name in ["first", "second"] {
            // SAFETY: `int first(int)`, and the other one.
            let function = unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>(name).unwrap() };
            // SAFETY: as above.
            assert_eq!(unsafe { function(1) }, 2);
        }
        module.extent().1
    });
    assert_eq!(sizes[0], sizes[1], "the other one is not brought in");
    let small = Loader::new().limit(1 << 20).load([&first.bytes, &second.bytes], Process::new());
    assert!(matches!(small, Err(Error::TooLarge { .. })));
}

/// Large code is on huge pages if the system gives any, and works in any case; small code takes no more room than usual.
#[test]
fn large_code_on_huge_pages() {
    let Some(compiled) = compile("cc", &["-O1"], LARGE) else {
        println!("skipped: large_code_on_huge_pages: needs cc");
        return;
    };
    for is_dual in [false, true] {
        let loader = Loader::new().huge_pages(true).dual_mapping(is_dual);
        let module = loader.load([&compiled.bytes], Process::new()).unwrap();
        // SAFETY: `int far(int)`.
        let far = unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>("far").unwrap() };
        // SAFETY: as above.
        assert_eq!(unsafe { far(1) }, 2);
        let (start, size) = module.extent();
        assert!(
            start.is_multiple_of(2 << 20) && size.is_multiple_of(2 << 20),
            "{start:#x} {size:#x}"
        );
        let huge = module.bytes_in_huge_pages().unwrap();
        let allowed = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        let allowed = allowed.is_ok_and(|text| !text.contains("[never]"));
        if is_dual || !allowed {
            continue;
        }
        if huge == 0 {
            println!("skipped: large_code_on_huge_pages: needs huge pages that are free");
        }
        assert!(huge <= size && huge.is_multiple_of(2 << 20));
    }
    let small = fixture(&format!("{ARCH}/elftest.o"));
    let module = Loader::new().huge_pages(true).load([small], Process::new()).unwrap();
    assert!(module.extent().1 < 1 << 20);
    assert_eq!(module.bytes_in_huge_pages().unwrap(), 0);
}
