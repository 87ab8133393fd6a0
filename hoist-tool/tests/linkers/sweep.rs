//! Objects of whoever made them, alone, each by hoist and by every linker for its machine.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use elf_core::archive::Archive;
use elf_core::names::{
    EM_386, EM_AARCH64, EM_ARM, EM_LOONGARCH, EM_RISCV, EM_X86_64, ET_REL, STT_TLS,
};
use elf_core::{File, SymbolTable};

use crate::compare::{Outcome, compare};
use crate::linker::Linker;

const LLD: &[&str] = &["ld.lld-22", "ld.lld", "ld.lld-19"];

/// What became of the links.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<String, usize>,
    found: Vec<String>,
}

/// Compares every object, also those in archives, below the folders.
pub(crate) fn compare_folders(folders: &str) {
    let mut paths = Vec::new();
    folders.split(':').for_each(|folder| find(Path::new(folder), &mut paths));
    paths.sort();
    let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let scratch = tempfile::tempdir().expect("a folder");
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Ok(bytes) = fs::read(path) else { continue };
                    let label = path.display().to_string();
                    if let Ok(archive) = Archive::parse(&bytes) {
                        for member in archive.members().filter_map(Result::ok) {
                            let Some(data) = member.data else { continue };
                            let label = format!("{label}({})", member.name);
                            compare_object(data, &label, scratch.path(), &tally);
                        }
                    } else {
                        compare_object(&bytes, &label, scratch.path(), &tally);
                    }
                }
            });
        }
    });
    let tally = tally.into_inner().expect("a tally");
    tally.counts.iter().for_each(|(what, count)| println!("{count:8} {what}"));
    assert!(tally.found.is_empty(), "{} differences", tally.found.len());
}

/// The files below a folder, links left out.
fn find(path: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(path) else {
        paths.push(path.to_owned());
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => find(&entry.path(), paths),
            Ok(kind) if kind.is_file() => paths.push(entry.path()),
            _ => {}
        }
    }
}

fn compare_object(bytes: &[u8], label: &str, scratch: &Path, tally: &Mutex<Tally>) {
    let Ok(file) = File::parse(bytes) else { return };
    let header = file.header();
    if header.r#type != ET_REL {
        return;
    }
    let (gnu, base): (&[&str], u64) = match header.machine {
        EM_X86_64 => (&["x86_64-linux-gnu-ld"], 0x40_0000),
        EM_386 => (&["x86_64-linux-gnu-ld"], 0x804_8000),
        EM_AARCH64 => (&["aarch64-linux-gnu-ld"], 0x40_0000),
        EM_ARM => (&["arm-linux-gnueabihf-ld"], 0x40_0000),
        EM_RISCV => (&["riscv64-linux-gnu-ld"], 0x40_0000),
        EM_LOONGARCH => (&["loongarch64-linux-gnu-ld"], 0x40_0000),
        _ => return,
    };
    if let Some(why) = needs_others(&file) {
        *tally.lock().expect("a tally").counts.entry(why.to_owned()).or_default() += 1;
        return;
    }
    let path = scratch.join("swept.o");
    fs::write(&path, bytes).expect("a copy");
    for programs in [gnu, LLD] {
        let Some(linker) = Linker::find(programs) else { continue };
        // GNU ld makes x86 code shorter, lld that of all
        let is_x86 = matches!(header.machine, EM_X86_64 | EM_386);
        let ways: &[bool] = match (linker.is_lld(), is_x86) {
            (true, _) => &[true],
            (false, true) => &[true, false],
            (false, false) => &[false],
        };
        for &relax in ways {
            let paths = std::slice::from_ref(&path);
            let link = || compare(&linker, paths, base, relax, scratch);
            let outcome = catch_unwind(AssertUnwindSafe(link));
            let way = format!("{} {} {relax}", header.machine, linker.version);
            let (what, words) = match outcome {
                Err(_) => ("PANIC", "panicked".to_owned()),
                Ok(Outcome::Equal { bytes, got, reworded, .. }) => {
                    let mut tally = tally.lock().expect("a tally");
                    for (what, count) in
                        [("equal", 1), ("bytes", bytes), ("to the GOT", got), ("words", reworded)]
                    {
                        *tally.counts.entry(format!("{way}: {what}")).or_default() += count;
                    }
                    continue;
                }
                Ok(Outcome::Different(found)) => ("DIFFERENT", found.join("\n    ")),
                Ok(Outcome::Refused(why)) => ("REFUSED", why),
                Ok(Outcome::BothRefused(why)) => ("both refuse", why),
                Ok(Outcome::LinkerRefused(why)) => ("linker refuses", why),
            };
            let mut tally = tally.lock().expect("a tally");
            *tally.counts.entry(format!("{way}: {what}")).or_default() += 1;
            println!("{what}: {label}: {way}: {words}");
            if matches!(what, "PANIC" | "DIFFERENT" | "REFUSED") {
                tally.found.push(label.to_owned());
            }
        }
    }
}

/// Why an object says nothing alone: thread-local variables of others have no address that could be given, and linkers know sections
/// by the names that these lose here.
fn needs_others(file: &File<'_>) -> Option<&'static str> {
    let table = file.symbol_table().ok()??;
    let why = |table: &SymbolTable<'_>, symbol: &_| {
        let name = table.name_of(symbol).ok()?.to_string();
        let bounds = name.starts_with("__start_") || name.starts_with("__stop_");
        let arrays = name.ends_with("_array_start") || name.ends_with("_array_end");
        (bounds || arrays).then_some("ask where sections are")
    };
    table.symbols().iter().filter(|symbol| symbol.is_undefined()).find_map(|symbol| {
        match symbol.r#type() == STT_TLS {
            true => Some("need thread-local variables of others"),
            false => why(&table, &symbol),
        }
    })
}
