//! What profilers are told, read by readers of our own and by `perf` itself.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::library::LibraryLoader;
use exec_host::observer::{JitDump, PerfMap};
use exec_host::{Loader, Module, Process};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use system::{ARCH, Compiled, compile, fixture};

const SOURCE: &str = "\
double sqrt(double);
static __attribute__((noinline)) double hot(double x) {
  double sum = 0;
  for (int i = 1; i < 3000; i++)
    sum += x / i;
  return sum;
}
double spin(int n) {
  double total = 0;
  for (int i = 0; i < n; i++)
    total += hot(i);
  return sqrt(total);
}
";

fn source() -> Option<Compiled> {
    // without -fPIC calls of the library go through stubs
    let compiled = compile("cc", &["-g", "-O1", "-fno-inline", "-fno-builtin"], SOURCE);
    if compiled.is_none() {
        println!("skipped: profilers: needs cc");
    }
    compiled
}

/// Address and size of the functions of a map, by name.
fn functions(map: &str) -> Vec<(u64, u64, String)> {
    let line = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let mut number = || u64::from_str_radix(words.next().unwrap(), 16).unwrap();
        (number(), number(), words.next().unwrap().to_owned())
    };
    map.lines().map(line).collect()
}

#[test]
fn map_names_every_function() {
    let Some(compiled) = source() else { return };
    let path = compiled.folder.path().join("perf.map");
    let loader = Loader::new().observer(PerfMap::create_at(&path).unwrap());
    let module = loader.load([&compiled.bytes], Process::new()).unwrap();
    let lines = functions(&std::fs::read_to_string(&path).unwrap());
    let named = |wanted: &str| lines.iter().find(|(_, _, name)| name == wanted);
    let (spin, size, _) = named("spin").unwrap();
    assert_eq!(*spin, module.function("spin").unwrap());
    assert!(*size > 16 && named("hot").is_some(), "local functions too: {lines:?}");
    assert!(named("sqrt@plt").is_some(), "and stubs: {lines:?}");
    let (start, extent) = module.extent();
    for ((address, size, name), next) in lines.iter().zip(lines.iter().skip(1)) {
        assert!(*size > 0 && address + size <= next.0, "{name} is before {}", next.2);
        assert!((start..start + extent).contains(address));
    }
    // a second load is appended
    let second = loader.load([&compiled.bytes], Process::new()).unwrap();
    let both = functions(&std::fs::read_to_string(&path).unwrap());
    assert_eq!(both.len(), 2 * lines.len());
    assert!(both.iter().any(|(address, _, _)| *address == second.function("spin").unwrap()));
}

/// A library out of bytes is told as an object is: functions in the map, code and lines in the dump.
#[test]
fn libraries() {
    let Some(compiled) =
        compile("cc", &["-g", "-O1", "-fno-inline", "-fno-builtin", "-fPIC"], SOURCE)
    else {
        println!("skipped: profilers: needs cc");
        return;
    };
    let folder = compiled.folder.path();
    let path = folder.join("libsource.so");
    let mut linker = Command::new("cc");
    linker.args(["-shared", "-o"]).arg(&path).arg(&compiled.object).arg("-lm");
    assert!(linker.status().unwrap().success());
    let dump = Arc::new(JitDump::create(folder).unwrap());
    let map = PerfMap::create_at(folder.join("perf.map")).unwrap();
    let loader = LibraryLoader::new().observer(map).observer(Arc::clone(&dump));
    // SAFETY: the library has no constructors that matter.
    let library = unsafe { loader.open(std::fs::read(path).unwrap()) }.unwrap();
    let spin = library.function("spin").unwrap();
    let lines = functions(&std::fs::read_to_string(folder.join("perf.map")).unwrap());
    let named = |wanted: &str| lines.iter().find(|(_, _, name)| name == wanted);
    let &(address, size, _) = named("spin").unwrap();
    assert!(address == spin && size > 16 && named("hot").is_some(), "{lines:?}");
    let path = dump.path().to_owned();
    drop(dump);
    let dump = std::fs::read(&path).unwrap();
    let records = records(&dump);
    let is_spin = |(number, load): &Record<'_>| *number == 0 && text(&load[40..]) == "spin";
    let at = records.iter().position(is_spin).unwrap();
    let load = records[at].1;
    assert_eq!((long(load, 8), long(load, 24)), (spin, size));
    // SAFETY: the library is loaded, and its code readable.
    let code = unsafe { std::slice::from_raw_parts(spin as *const u8, size as usize) };
    assert_eq!(&load[45..], code);
    let (number, lines) = records[at - 1];
    assert_eq!((number, long(lines, 0)), (2, spin));
    assert!(long(lines, 16) >= spin && long(lines, 16) < spin + size, "lines where it is loaded");
}

#[test]
fn map_is_where_perf_looks() {
    let path = format!("/tmp/perf-{}.map", std::process::id());
    // of an earlier process
    std::fs::write(&path, "0 1 stale\n").unwrap();
    let maps = [PerfMap::create().unwrap(), PerfMap::create().unwrap()];
    let elftest = fixture(&format!("{ARCH}/elftest.o"));
    for map in maps {
        Loader::new().observer(map).load([&elftest], Process::new()).unwrap();
    }
    let lines = functions(&std::fs::read_to_string(&path).unwrap());
    assert_eq!(lines.iter().filter(|(_, _, name)| name == "foo").count(), 2, "{lines:?}");
    assert!(lines.iter().all(|(_, _, name)| name != "stale"));
    std::fs::remove_file(path).unwrap();
}

/// A record of a dump: its number and content.
type Record<'d> = (u32, &'d [u8]);

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes.split(|byte| *byte == 0).next().unwrap()).unwrap()
}

/// The records of a dump, whose times do not fall.
fn records(dump: &[u8]) -> Vec<Record<'_>> {
    assert_eq!((word(dump, 0), word(dump, 4), word(dump, 8)), (0x4a69_5444, 1, 40));
    assert_eq!(word(dump, 20), std::process::id());
    let (mut rest, mut records, mut time) = (&dump[40..], Vec::new(), long(dump, 24));
    while !rest.is_empty() {
        let (record, behind) = rest.split_at(word(rest, 4) as usize);
        assert!(long(record, 8) >= time);
        time = long(record, 8);
        records.push((word(record, 0), &record[16..]));
        rest = behind;
    }
    records
}

#[test]
fn dump_has_code_and_lines() {
    let Some(compiled) = source() else { return };
    let dump = Arc::new(JitDump::create(compiled.folder.path()).unwrap());
    let path = dump.path().to_owned();
    let name = format!("jit-{}.dump", std::process::id());
    assert_eq!(path.file_name().unwrap().to_str().unwrap(), name);
    let marked = |path: &Path| {
        let maps = system::maps();
        maps.iter().any(|map| map.path == path.to_str().unwrap() && map.permissions == "r-xp")
    };
    assert!(marked(&path), "perf record notes executable mappings only");
    let loader = Loader::new().observer(Arc::clone(&dump));
    let module = loader.load([&compiled.bytes], Process::new()).unwrap();
    let spin = module.function("spin").unwrap();
    drop((loader, dump));
    assert!(!marked(&path));
    let dump = std::fs::read(&path).unwrap();
    let records = records(&dump);
    let loads: Vec<_> = records.iter().filter(|(number, _)| *number == 0).collect();
    let names: Vec<&str> = loads.iter().map(|(_, load)| text(&load[40..])).collect();
    assert!(names.contains(&"hot") && names.contains(&"sqrt@plt"), "{names:?}");
    let at = records
        .iter()
        .position(|(_, load)| load.len() > 40 && text(&load[40..]) == "spin")
        .unwrap();
    let load = records[at].1;
    assert_eq!((word(load, 0), long(load, 8), long(load, 16)), (std::process::id(), spin, spin));
    let size = long(load, 24) as usize;
    assert_eq!(load.len(), 40 + "spin\0".len() + size);
    // SAFETY: the module is loaded, and its code readable.
    let code = unsafe { std::slice::from_raw_parts(spin as *const u8, size) };
    assert_eq!(&load[45..], code);
    // the lines come before the function
    let (number, lines) = records[at - 1];
    assert_eq!((number, long(lines, 0)), (2, spin));
    let (mut rest, mut found) = (&lines[16..], Vec::new());
    for _ in 0..long(lines, 8) {
        let file = text(&rest[16..]);
        assert!(file.ends_with("/source.c"), "{file}");
        assert!((spin..spin + size as u64).contains(&long(rest, 0)));
        found.push(word(rest, 8));
        rest = &rest[16 + file.len() + 1..];
    }
    assert!(rest.is_empty());
    assert!(found.contains(&8) && found.contains(&11) && found.contains(&12), "{found:?}");
    assert_eq!(records.last().unwrap().0, 3, "it is closed");
}

/// The program that is profiled.
#[test]
fn profiled() {
    let Ok(folder) = std::env::var("HOIST_PROFILED_FOLDER") else { return };
    let object = std::fs::read(Path::new(&folder).join("source.o")).unwrap();
    let loader = Loader::new().observer(JitDump::create(&folder).unwrap());
    let module: Module<Vec<u8>> = loader.load([object], Process::new()).unwrap();
    // SAFETY: `double spin(int)`.
    let spin = unsafe { module.get::<unsafe extern "C" fn(i32) -> f64>("spin").unwrap() };
    // SAFETY: as above.
    assert!(unsafe { spin(30_000) } > 0.0);
}

#[test]
fn perf_reads_the_dump() {
    let Some(compiled) = source() else { return };
    let folder = compiled.folder.path();
    let perf = |arguments: &[&str]| {
        let mut perf = Command::new("perf");
        perf.current_dir(folder).env("HOME", folder).stdin(Stdio::null());
        perf.env("HOIST_PROFILED_FOLDER", folder).args(arguments).output()
    };
    let program = std::env::current_exe().unwrap();
    let mut record = vec!["record", "-q", "-N", "-e", "cpu-clock", "-k", "CLOCK_MONOTONIC"];
    record.extend(["-o", "recorded", program.to_str().unwrap(), "--exact", "profiled"]);
    if !perf(&record).is_ok_and(|output| output.status.success()) {
        println!("skipped: perf_reads_the_dump: needs perf, and leave to record");
        return;
    }
    let injected = perf(&["inject", "--jit", "-i", "recorded", "-o", "injected"]).unwrap();
    assert!(injected.status.success(), "{}", String::from_utf8_lossy(&injected.stderr));
    let report = perf(&["report", "--stdio", "-i", "injected", "--sort", "dso,sym"]).unwrap();
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    let hot =
        report.lines().find(|line| line.contains(" hot")).unwrap_or_else(|| panic!("{report}"));
    assert!(hot.contains("jitted-"), "{hot}");
    let share: f64 =
        hot.split_ascii_whitespace().next().unwrap().trim_end_matches('%').parse().unwrap();
    assert!(share > 20.0, "most of the time is spent there: {hot}");
}
