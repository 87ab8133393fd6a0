//! Objects relocated for another address than the one they are written to: elsewhere in this process, and in another one.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::image::{LinkedImage, SegmentFlags};
use exec_host::symbols::from_fn;
use exec_host::{Error, External, Loader, Process};
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};
use system::{ARCH, compile, fixture, is_emulated, objects};

const SOURCE: &str = "\
typedef unsigned long size_t;
size_t strlen(const char *);
static const char *words[] = { \"to\", \"another\", \"place\" };
static int offset;
int counter = 4;
__attribute__((constructor)) static void prepare(void) { offset = 1000; }
int measure(int which) { return offset + ++counter * 100 + (int)strlen(words[which]); }
";

/// Memory for an image: its address.
fn reserve(size: u64) -> u64 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: without a wish for an address no existing mapping is touched.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), size as usize, protection, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    start.expose_provenance() as u64
}

/// Lets instructions be fetched that were written as data.
fn synchronize(start: u64, size: u64) {
    #[cfg(not(target_arch = "x86_64"))]
    {
        unsafe extern "C" {
            fn __clear_cache(start: *mut u8, end: *mut u8);
        }
        let at = |address: u64| std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the memory is mapped.
        unsafe { __clear_cache(at(start), at(start + size)) };
    }
    let _ = (start, size);
}

/// Gives pages their permissions.
fn protect(start: u64, size: u64, flags: SegmentFlags) {
    let mut protection = libc::PROT_READ;
    if flags.contains(SegmentFlags::WRITE) {
        protection |= libc::PROT_WRITE;
    }
    if flags.contains(SegmentFlags::EXECUTE) {
        protection |= libc::PROT_EXEC;
        synchronize(start, size);
    }
    let pointer = std::ptr::with_exposed_provenance_mut(start as usize);
    // SAFETY: the pages are ours, from `reserve`.
    assert_eq!(unsafe { libc::mprotect(pointer, size as usize, protection) }, 0);
}

/// Calls `int f(int)` at an address.
fn call(address: u64, argument: i32) -> i32 {
    let code = std::ptr::with_exposed_provenance::<()>(address as usize);
    // SAFETY: the functions that are called here have this type, or take no arguments.
    let function = unsafe { std::mem::transmute::<*const (), extern "C" fn(i32) -> i32>(code) };
    function(argument)
}

fn image(strlen: Option<u64>, mut place: impl FnMut(u64) -> u64) -> Option<LinkedImage> {
    let compiled = compile("cc", &["-O1", "-fPIC"], SOURCE)?;
    let mut process = Process::new();
    let symbols = from_fn(move |name| match (name.to_str(), strlen) {
        (Some("strlen"), Some(address)) => Some(External::function(address)),
        _ => process.find(name),
    });
    Some(Loader::new().link([compiled.bytes], symbols, |room| place(room.size)).unwrap())
}

#[test]
fn copied_to_its_place() {
    let Some(image) = image(None, reserve) else {
        println!("skipped: copied_to_its_place: needs cc");
        return;
    };
    let place = std::ptr::with_exposed_provenance_mut::<u8>(image.base() as usize);
    // SAFETY: there is so much room.
    unsafe { place.copy_from_nonoverlapping(image.bytes().as_ptr(), image.bytes().len()) };
    for segment in image.segments() {
        protect(image.base() + segment.offset, segment.size, segment.flags);
    }
    assert_eq!(image.constructors().len(), 1);
    call(image.constructors()[0], 0);
    let measure = image.address("measure").unwrap();
    assert_eq!([0, 1].map(|which| call(measure, which)), [1502, 1607]);
}

/// The other process: reserves, waits, protects and calls what it is told.
#[test]
fn other_process() {
    if std::env::var_os("HOIST_TEST_OTHER_PROCESS").is_none() {
        return;
    }
    let mut lines = std::io::stdin().lock().lines().map(|line| line.unwrap());
    let mut numbers = || -> Vec<u64> {
        lines.next().unwrap().split(' ').map(|word| word.parse().unwrap()).collect()
    };
    let strlen = libc::strlen as *const () as u64;
    println!("\nstrlen {strlen}");
    let size = numbers()[0];
    println!("place {}", reserve(size));
    let segments = numbers();
    for segment in segments.chunks(3) {
        protect(segment[0], segment[1], SegmentFlags::from_bits_retain(segment[2] as u32));
    }
    let calls = numbers();
    call(calls[0], 0);
    println!("result {}", call(calls[1], 1));
}

#[test]
fn written_to_another_process() {
    if is_emulated() {
        println!("skipped: written_to_another_process: needs the machine itself");
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "other_process", "--nocapture"])
        .env("HOIST_TEST_OTHER_PROCESS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answer = |what: &str| -> u64 {
        let line = from.find(|line| line.as_ref().unwrap().starts_with(what)).unwrap().unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let strlen = answer("strlen ");
    let Some(image) = image(Some(strlen), |size| {
        writeln!(to, "{size}").unwrap();
        answer("place ")
    }) else {
        println!("skipped: written_to_another_process: needs cc");
        drop(to);
        let _ = child.wait();
        return;
    };
    let memory = OpenOptions::new().write(true).open(format!("/proc/{}/mem", child.id()));
    if memory.and_then(|memory| memory.write_all_at(image.bytes(), image.base())).is_err() {
        println!("skipped: written_to_another_process: needs leave to write to it");
        drop(to);
        let _ = child.wait();
        return;
    }
    let segments: Vec<String> = image
        .segments()
        .map(|part| {
            let flags = part.flags.bits();
            format!("{} {} {flags}", image.base() + part.offset, part.size)
        })
        .collect();
    writeln!(to, "{}", segments.join(" ")).unwrap();
    let calls = (image.constructors()[0], image.address("measure").unwrap());
    writeln!(to, "{} {}", calls.0, calls.1).unwrap();
    assert_eq!(answer("result "), 1507);
    assert!(child.wait().unwrap().success());
}

#[test]
fn places_that_cannot_be() {
    let elftest = fixture(&format!("{ARCH}/elftest.o"));
    let link = |base: u64| Loader::new().link([&elftest], (), |_| base).map(|_| ());
    assert!(link(0x1000_0000).is_ok());
    assert!(matches!(link(0x1000_0001), Err(Error::Layout(_))));
    if cfg!(target_arch = "x86_64") {
        let low = fixture("x86_64/models-gcc12-O2-nopic-small.o");
        let link = |base: u64| Loader::new().link([&low], Process::new(), |_| base).map(|_| ());
        assert!(matches!(link(1 << 32), Err(Error::NoLowMemory { limit: 0x8000_0000, .. })));
        assert!(link(1 << 24).is_ok());
        assert!(matches!(link(u64::MAX - 0xfff), Err(Error::NoLowMemory { .. })));
    }
}

/// The bytes of an image of these objects, or why there is none.
fn linked(objects: &[&[u8]]) -> Result<Vec<u8>, String> {
    let near = |_: elf_core::Name<'_>| Some(External::function(0x1004_5670));
    let image = Loader::new().link(objects, from_fn(near), |_| 0x1000_0000);
    image.map(|image| image.bytes().to_vec()).map_err(|error| format!("{error:?}"))
}

/// Images of large objects are written by as many threads as there are processors: bytes and errors are those of one thread. What stands
/// behind all that an object has makes it large.
#[test]
fn whatever_writes_them() {
    let (mut written, mut refused) = (0, 0);
    let mut room = vec![0; 17 << 20];
    for (name, bytes) in objects() {
        let small = linked(&[&bytes]);
        room[..bytes.len()].copy_from_slice(&bytes);
        assert!(linked(&[&room]) == small, "{name}");
        if small.is_ok() { written += 1 } else { refused += 1 }
    }
    assert!(written >= 20 && refused >= 1, "{written} {refused}");
}

/// The same of two objects, each of which a thread scans.
#[test]
fn whatever_scans_them() {
    let (mut scanned, mut refused) = (0, 0);
    let mut rooms = [vec![0; 9 << 20], vec![0; 9 << 20]];
    for [first, second] in objects().array_windows() {
        let small = linked(&[&first.1, &second.1]);
        for (room, (_, bytes)) in rooms.iter_mut().zip([first, second]) {
            room[..bytes.len()].copy_from_slice(bytes);
        }
        assert!(linked(&rooms.each_ref().map(Vec::as_slice)) == small, "{} {}", first.0, second.0);
        if small.is_ok() { scanned += 1 } else { refused += 1 }
    }
    assert!(scanned >= 5 && refused >= 1, "{scanned} {refused}");
}
