//! Memory as the system sees it. One test, so that no other one maps anything meanwhile.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

#[cfg(target_arch = "x86_64")]
use exec_host::Error;
use exec_host::observer::{GdbInterface, PerfMap};
use exec_host::{Loader, Process};
use system::{ARCH, OTHER, compile, extent, fixture, load, mapped, maps, objects, pages};

#[test]
fn memory_is_protected_and_given_back() {
    permissions();
    nothing_stays_after_an_error();
    // machines of other architectures are emulated here, by a program whose own memory grows with what it translates
    if cfg!(target_arch = "x86_64") {
        ten_thousand_times();
        with_every_option();
        reused();
    }
    #[cfg(target_arch = "x86_64")]
    low_addresses();
}

/// Every page of every object that loads is readable; none is writable and executable at once; all go with the module.
fn permissions() {
    let (mut loaded, mut kinds) = (0, [0; 3]);
    for (name, bytes) in objects() {
        let Ok(module) = load(&[&bytes]) else { continue };
        let range = extent(&module);
        let parts = mapped(&range);
        let mut end = range.start;
        for part in &parts {
            assert!(part.range.start <= end, "{name}: a hole at {end:#x}");
            end = part.range.end;
            // neighbours of equal permission are shown as one
            let kind = ["r--p", "rw-p", "r-xp"].iter().position(|kind| *kind == part.permissions);
            kinds[kind.unwrap_or_else(|| panic!("{name}: {}", part.permissions))] += 1;
            assert_eq!(part.path, "", "{name}: it is nobody's file");
        }
        assert!(end >= range.end, "{name}: {end:#x} of {range:#x?}");
        drop(module);
        assert_eq!(mapped(&range), [], "{name}: given back");
        loaded += 1;
    }
    assert!(loaded > 10 && kinds.iter().all(|count| *count > 0), "{loaded} {kinds:?}");
}

/// Files that cannot be loaded: of another machine, cut off, with symbols that nobody has, with values that do not fit.
fn nothing_stays_after_an_error() {
    let own = fixture(&format!("{ARCH}/elftest.o"));
    let mut bad = vec![
        fixture(&format!("{OTHER}/elftest.o")),
        fixture("i386/absolute.o"),
        fixture(&format!("{ARCH}/libshared.so")),
        b"#!/bin/sh\n".to_vec(),
        Vec::new(),
    ];
    bad.extend((0..own.len()).step_by(101).map(|end| own[..end].to_vec()));
    if cfg!(target_arch = "x86_64") {
        let names = ["missing.o", "overflow.o", "thread-local-pic.o"];
        bad.extend(names.iter().map(|name| fixture(&format!("x86_64/{name}"))));
    }
    let all = || {
        for (at, bytes) in bad.iter().enumerate() {
            let error = load(&[bytes]).map(|_| ()).expect_err(&format!("bad file {at}"));
            assert!(!error.to_string().is_empty());
            // nor does it help to have a good one beside it
            assert!(load(&[&own, bytes]).is_err() && load(&[bytes, &own]).is_err(), "{at}");
        }
    };
    all();
    let code =
        || maps().into_iter().filter(|map| map.permissions.contains('x')).collect::<Vec<_>>();
    let (before, executable) = (pages().0, code());
    for _ in 0..20 {
        all();
    }
    assert_eq!(code(), executable, "no code is left");
    let grown = pages().0.saturating_sub(before);
    assert!(grown <= 64, "{grown} pages of address space are left");
}

/// Loading and dropping leaves no memory behind.
fn ten_thousand_times() {
    let bytes = fixture(&format!("{ARCH}/elftest.o"));
    let run = |times: u32| {
        for _ in 0..times {
            let module = load(&[&bytes]).unwrap();
            // SAFETY: `float foo(int x) { return x + 12345678.f; }`
            let foo = unsafe { module.get::<unsafe extern "C" fn(i32) -> f32>("foo") }.unwrap();
            // SAFETY: as above.
            assert_eq!(unsafe { foo(321) }, 12_345_999.0);
        }
    };
    run(500);
    let (space, memory) = pages();
    let count = maps().len();
    run(10_000);
    let after = pages();
    assert!(after.0 <= space + 64, "{space} pages of address space became {}", after.0);
    assert!(after.1 <= memory + 64, "{memory} pages of memory became {}", after.1);
    assert!(maps().len() <= count + 2);
}

/// Nor do modules that a debugger is told of, or that are mapped in another way.
fn with_every_option() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fixture(&format!("{ARCH}/elftest.o"));
    let loaders = [
        Loader::new().observer(GdbInterface),
        Loader::new().dual_mapping(true),
        Loader::new().observer(PerfMap::create_at(folder.path().join("perf.map")).unwrap()),
    ];
    let run = |times: usize| {
        for loader in loaders.iter().cycle().take(times) {
            let module = loader.load([&bytes], Process::new()).unwrap();
            assert!(module.function("foo").is_ok());
        }
    };
    run(100);
    let (before, count) = (pages(), maps().len());
    run(600);
    let after = pages();
    assert!(after.0 <= before.0 + 64, "{} pages of address space became {}", before.0, after.0);
    assert!(after.1 <= before.1 + 64, "{} pages of memory became {}", before.1, after.1);
    assert!(maps().len() <= count + 2);
}

/// With `reuse_memory`, what is gone makes room for what comes: zeros again, and not executable in between.
fn reused() {
    let source = "static long count; static char room[9000]; char *all(void) { return room; }
        long next(void) { return room[8999] + ++count + room[count = 1 + count]++; }";
    let Some(compiled) = compile("cc", &["-O2", "-fPIC"], source) else {
        return println!("skipped: reused: needs cc");
    };
    let loader = Loader::new().reuse_memory(true);
    let load = |bytes: &[u8]| loader.load([bytes.to_vec()], Process::new());
    let is_code = |range| mapped(range).iter().any(|map| map.permissions.contains('x'));
    let first = load(&compiled.bytes).unwrap();
    let range = extent(&first);
    for module in [Some(first), None, None] {
        let module = module.unwrap_or_else(|| load(&compiled.bytes).unwrap());
        assert_eq!(extent(&module), range);
        assert!(is_code(&range));
        // SAFETY: `long next(void)`, as above.
        let next = unsafe { module.get::<unsafe extern "C" fn() -> i64>("next") }.unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { [next(), next()] }, [1, 3]);
        // two at once are apart
        assert_ne!(extent(&load(&compiled.bytes).unwrap()).start, range.start);
        drop(module);
        assert!(!is_code(&range) && !mapped(&range).is_empty());
    }
    // not more than so much stays
    let before = pages().0;
    let all: Vec<_> = objects().iter().filter_map(|(_, bytes)| load(bytes).ok()).collect();
    assert!(all.len() > 20);
    drop(all);
    assert!(pages().0 <= before + 16 * 16, "{before} pages became {}", pages().0);
    drop(loader);
    assert!(mapped(&range).is_empty());
}

/// Code that is compiled without `-fPIC` is below 2 GiB, several times at once.
#[cfg(target_arch = "x86_64")]
fn low_addresses() {
    let mut modules = Vec::new();
    for (name, bytes) in objects() {
        let narrow = name.contains("nopic-small") || name.contains("sections-nopic");
        if !narrow {
            continue;
        }
        let module = load(&[&bytes]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(extent(&module).end <= 1 << 31, "{name}: {:#x?}", extent(&module));
        modules.push(module);
    }
    assert!(modules.len() > 5);
    let ranges: Vec<_> = modules.iter().map(extent).collect();
    for (at, one) in ranges.iter().enumerate() {
        let apart = |other: &std::ops::Range<u64>| other.end <= one.start || one.end <= other.start;
        assert!(ranges.iter().enumerate().all(|(number, other)| number == at || apart(other)));
    }
    drop(modules);
    assert!(ranges.iter().all(|range| mapped(range).is_empty()), "given back");
    // a section larger than all of it
    let error = load(&[&too_large()]).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::NoLowMemory { .. } | Error::Layout(_)), "{error}");
}

/// An object that needs low memory, more than there is.
#[cfg(target_arch = "x86_64")]
fn too_large() -> Vec<u8> {
    let mut bytes = fixture("x86_64/models-gcc12-O2-nopic-small.o");
    let file = elf_core::File::parse(&bytes).unwrap();
    let is_zeros =
        |section: &elf_core::SectionHeader| section.r#type == elf_core::names::SHT_NOBITS;
    let index = file.sections().iter().position(|section| is_zeros(&section)).unwrap();
    let at = file.header().section_headers as usize + index * 64 + 32; // sh_size
    bytes[at..at + 8].copy_from_slice(&(1u64 << 31).to_le_bytes());
    bytes
}
