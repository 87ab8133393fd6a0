//! What `hoist show` and `hoist cubin show` say beside cuobjdump 13.5, for every cubin of the fixtures: header, sections, symbols,
//! relocations, resources. Differences are counted by kind.
//!
//! Of another folder: `HOIST_CUBINS=FOLDER cargo test -p hoist-tool --test cuobjdump -- --nocapture`

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use archs::relocation_name;
use elf_core::{File, names};
use hoist_tool::cmd::cubin;
use hoist_tool::cmd::show::Dump;
use nvinfo::{Cubin, TargetSuffix};

/// Rows that must be compared of the fixtures, at the least.
const EXPECTED: [(&str, usize); 5] = [
    ("header", 54),
    ("relocations", 1075),
    ("resources", 112),
    ("sections", 1803),
    ("symbols", 1540),
];

/// Fixtures of which cuobjdump 13.5 says nothing (of an architecture that it gave up), and those whose resources it does not tell: it
/// misses a section where there are named textures ("Internal error: elf section not found").
const UNANSWERED: [&str; 9] = [
    "calls_a-11.8-sm_35.cubin",
    "calls_b-11.8-sm_35.cubin",
    "kernel32-11.8-sm_35.cubin",
    "kernels-11.8-sm_35.cubin",
    "places-13.5-sm_80.cubin: resources",
    "shapes-13.5-sm_80.cubin: resources",
    "shapes-13.5-sm_90.cubin: resources",
    "textures-11.8-sm_61.cubin: resources",
    "textures-13.5-sm_80.cubin: resources",
];

#[derive(Default)]
struct Counts {
    cubins: usize,
    /// Cubins of which the tool says nothing, or nothing of their resources.
    unanswered: Vec<String>,
    rows: BTreeMap<&'static str, usize>,
    differences: BTreeMap<String, usize>,
}

impl Counts {
    fn row(&mut self, what: &'static str, path: &Path, found: &str, expected: &str) {
        *self.rows.entry(what).or_default() += 1;
        if found != expected {
            let count = self.differences.entry(what.to_owned()).or_default();
            *count += 1;
            if *count <= 5 {
                println!("{}: {what}: {found}, cuobjdump says {expected}", path.display());
            }
        }
    }

    fn lists(&mut self, what: &'static str, path: &Path, found: &[String], expected: &[String]) {
        let longest = found.len().max(expected.len());
        for index in 0..longest {
            let at = |list: &[String]| list.get(index).cloned().unwrap_or_default();
            self.row(what, path, &at(found), &at(expected));
        }
    }
}

#[test]
fn cuobjdump_says_the_same() {
    if Command::new("cuobjdump").arg("--version").output().is_err() {
        println!("skipped: cuobjdump_says_the_same: needs cuobjdump");
        return;
    }
    let other = std::env::var_os("HOIST_CUBINS").map(PathBuf::from);
    let folder = other
        .clone()
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda"));
    let mut counts = Counts::default();
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        let bytes = std::fs::read(&path).expect("a file");
        let Ok(file) = File::parse(&bytes) else { continue };
        if file.header().machine != names::EM_CUDA {
            continue;
        }
        let run = |option: &str| {
            let output =
                Command::new("cuobjdump").arg(option).arg(&path).output().expect("cuobjdump runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Some(text).filter(|text| output.status.success() && !text.is_empty())
        };
        counts.cubins += 1;
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let Some(shown) = run("-elf") else {
            counts.unanswered.push(name);
            continue;
        };
        compare_elf(&path, file, &shown, &mut counts);
        match run("-res-usage") {
            Some(usage) => compare_resources(&path, &bytes, &usage, &mut counts),
            None => counts.unanswered.push(format!("{name}: resources")),
        }
    }
    println!(
        "{} cubins, unanswered {:?}, rows {:?}, differences {:?}",
        counts.cubins, counts.unanswered, counts.rows, counts.differences
    );
    assert!(counts.differences.is_empty(), "{:?}", counts.differences);
    if other.is_some() {
        return assert!(counts.cubins > 0);
    }
    assert_eq!(counts.unanswered, UNANSWERED);
    for (what, expected) in EXPECTED {
        let found = counts.rows.get(what).copied().unwrap_or_default();
        assert!(found >= expected, "{what}: {found} rows, expected {expected}");
    }
}

fn compare_elf(path: &Path, file: File<'_>, text: &str, counts: &mut Counts) {
    let cubin = Cubin::of(file).expect("a cubin");
    let target = cubin.target();
    let header = text.lines().find(|line| line.to_lowercase().contains("bit elf: "));
    let header = header.unwrap_or_default();
    let bits = if target.is_64 { 64 } else { 32 };
    let (head, sm) = (file.header(), target.sm.unwrap_or_default());
    let suffix = if target.suffix == TargetSuffix::Accelerated { "a" } else { "" };
    let toolkit = target.toolkit.map(|toolkit| match head.abi_version {
        7 => format!(" toolkit={},", toolkit.0),
        _ => format!(" toolkit={toolkit},"),
    });
    let (toolkit, flags) = (toolkit.unwrap_or_default(), head.flags);
    let ours = match head.abi_version {
        7 => format!(
            "{bits}bit elf: type={}, abi=7, sm={sm}{suffix},{toolkit} flags = {flags:#x}",
            head.r#type
        ),
        abi => {
            let r#type = names::file_type(head.r#type).unwrap_or_default();
            format!(
                "{bits}-bit ELF: type={type}, ABI={abi}, sm={sm}{suffix},{toolkit} flags={flags:#x}"
            )
        }
    };
    counts.row("header", path, &ours, header);
    let dump = Dump::new(file);
    counts.lists("sections", path, &our_sections(&dump), &their_sections(text));
    let (symbols, numbers) = their_symbols(text);
    counts.lists("symbols", path, &our_symbols(&dump, &file, numbers), &symbols);
    counts.lists("relocations", path, &our_relocations(&file), &their_relocations(text));
}

/// Types that cuobjdump 13.5 shows as numbers.
const NAMELESS: &[u32] = &[
    names::SHT_CUDA_CAPMERC,
    names::SHT_CUDA_MERCURY_ENTRY_IMAGE_HEADER_INDICES,
    names::SHT_CUDA_MERCURY_CONSTANT_USER,
    names::SHT_CUDA_MERCURY_CONSTANT_PIC,
    names::SHT_CUDA_MERCURY_RELA,
    names::SHT_CUDA_MERCURY_INFO,
    names::SHT_CUDA_MERCURY_CONSTANT_OPT,
    names::SHT_CUDA_MERCURY_SYMTAB,
    names::SHT_CUDA_MERCURY_RESOLVED_RELA,
    names::SHT_CUDA_MERCURY_CALLGRAPH,
    names::SHT_CUDA_MERCURY_PROTOTYPE,
];

fn our_sections(dump: &Dump<'_>) -> Vec<String> {
    let rows = dump.sections().map(|row| row.expect("a section")).skip(1);
    rows.map(|row| {
        let name = row.type_name.map_or_else(String::new, |name| name.replacen("SHT_", "", 1));
        // cuobjdump has no names for those of Mercury
        let name = if NAMELESS.contains(&row.r#type) {
            format!("UNKNOWN: {}", row.r#type & 0xffff)
        } else {
            name
        };
        format!(
            "{:x} {:x} {:x} {:x} {:x} {name} {:x} {:x} {:x} {}",
            row.index,
            row.offset,
            row.size,
            row.entry_size,
            row.alignment,
            row.flags,
            row.link,
            row.info,
            row.name
        )
    })
    .collect()
}

/// Index, offset, size, entry size, alignment, type, flags, link, info, name. cuobjdump swaps link and info of no section.
fn their_sections(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| !line.starts_with("Index Offset")).skip(1);
    lines
        .take_while(|line| !line.trim().is_empty())
        .map(|line| {
            let mut words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            if words.len() == 9 {
                words.push(String::new());
            }
            words.join(" ")
        })
        .collect()
}

fn our_symbols(dump: &Dump<'_>, file: &File<'_>, numbers: bool) -> Vec<String> {
    let Ok(Some(_)) = file.symbol_table() else { return Vec::new() };
    let table = dump.symbol_tables().map(|table| table.expect("a table")).next().expect("a table");
    let short = |name: Option<&'static str>| {
        name.map_or("", |name| name.split_once('_').map_or(name, |(_, name)| name))
    };
    dump.symbols(&table)
        .map(|row| {
            let row = row.expect("a symbol");
            let bits = if numbers {
                format!("{:x} {:x}", row.binding << 4 | row.r#type, row.other)
            } else {
                let other = row.other_names.iter().map(|name| name.replacen("STO_CUDA_", "", 1));
                let other = other.collect::<Vec<_>>().join("|");
                format!(
                    "{} {} {} {}",
                    short(row.type_name),
                    short(row.binding_name),
                    short(row.visibility_name),
                    if other.is_empty() { "-" } else { &other }
                )
            };
            let name = row.name.to_string();
            let name = if name.is_empty() { "(null)" } else { &name };
            format!(
                "{:x} {:x} {:x} {bits} {:x} {name}",
                row.index, row.value, row.size, row.section
            )
        })
        .collect()
}

/// Number, value, size, type, binding, visibility, other bits, section, name. Before 13.0 `st_info` and `st_other` are numbers.
fn their_symbols(text: &str) -> (Vec<String>, bool) {
    let mut lines = text.lines().skip_while(|line| *line != ".section .symtab").skip(1);
    let numbers = lines.next().is_some_and(|line| line.contains("info"));
    let rows = lines.take_while(|line| !line.trim().is_empty()).map(|line| {
        line.split_whitespace()
            .map(|word| word.strip_prefix("0x").unwrap_or(word))
            .collect::<Vec<_>>()
            .join(" ")
    });
    (rows.collect(), numbers)
}

fn our_relocations(file: &File<'_>) -> Vec<String> {
    let Ok(Some(table)) = file.symbol_table() else { return Vec::new() };
    let mut rows = Vec::new();
    for section in file.sections() {
        let Some(records) = file.relocations(&section).expect("relocations") else { continue };
        for record in records.iter() {
            let symbol = table.get(record.symbol).expect("a symbol");
            let name =
                hoist_tool::explain::name_in(file, &table, record.symbol, &symbol).expect("a name");
            let kind = relocation_name(file.header().machine, record.r#type).unwrap_or_default();
            let addend = record.addend.map_or(String::new(), |addend| format!(" {addend:#x}"));
            // YIELD_* name no symbol
            let name = if name.is_empty() { String::new() } else { format!("{name} ") };
            rows.push(format!("{:#x} {name}{kind}{addend}", record.offset));
        }
    }
    rows.sort();
    rows
}

/// Sorted: cuobjdump prints sections in an order of its own.
fn their_relocations(text: &str) -> Vec<String> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with(".section ") {
            inside = line.ends_with("\tREL") || line.ends_with("\tRELA");
        } else if inside && line.starts_with("0x") {
            rows.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
        } else if line.is_empty() {
            inside = false;
        }
    }
    rows.sort();
    rows
}

fn compare_resources(path: &Path, bytes: &[u8], text: &str, counts: &mut Counts) {
    let cubin = Cubin::parse(bytes).expect("a cubin");
    let shown = cubin::report(&cubin, &[], None).expect("kernels").expect("all of it");
    let mut lines = text.lines();
    let mut theirs = BTreeMap::new();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix(" Function ") {
            theirs.insert(name.trim_end_matches(':').to_owned(), lines.next().unwrap_or_default());
        }
    }
    for kernel in &shown.kernels {
        let Some(line) = theirs.get(&*kernel.name) else {
            counts.row("resources", path, &kernel.name, "nothing");
            continue;
        };
        let find = |key: &str| {
            let word = line.split_whitespace().find_map(|word| word.strip_prefix(key));
            word.map_or_else(String::new, str::to_owned)
        };
        let ours = format!(
            "{} {} {} {}",
            kernel.registers.unwrap_or_default(),
            // cuobjdump counts what the system has
            kernel.shared + kernel.reserved_shared,
            kernel.local,
            kernel.constant_banks.iter().find(|bank| bank.bank == 0).map_or(0, |bank| bank.size)
        );
        let expected = ["REG:", "SHARED:", "LOCAL:", "CONSTANT[0]:"].map(find).join(" ");
        counts.row("resources", path, &ours, &expected);
    }
}

/// What `hoist cuobjdump -res-usage` says of bytes.
fn usage(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, bytes).expect("a file");
    let mut hoist = Command::new(env!("CARGO_BIN_EXE_hoist"));
    let output = hoist.args(["cuobjdump", "-res-usage"]).arg(file).output().expect("hoist runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// cuobjdump prints the stack that the linker has counted, and 0 for kernels that are not linked, whatever their own frame.
#[test]
fn kernels_that_are_not_linked_have_no_stack() {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda/calls-13.5-sm_90.cubin");
    let mut bytes = std::fs::read(root).expect("a fixture");
    let stacks = |text: &str| -> Vec<String> {
        let words = text.split_whitespace().filter_map(|word| word.strip_prefix("STACK:"));
        words.map(str::to_owned).collect()
    };
    assert!(stacks(&usage(&bytes)).iter().any(|stack| stack != "0"), "{}", usage(&bytes));
    // MIN_STACK_SIZE becomes MAX_STACK_SIZE, as objects have it
    for at in 0..bytes.len() - 4 {
        if bytes[at..at + 4] == [4, 0x12, 8, 0] {
            bytes[at + 1] = 0x23;
        }
    }
    assert!(stacks(&usage(&bytes)).iter().all(|stack| stack == "0"), "{}", usage(&bytes));
}

/// CUDA 11 leaves room for options without any; cuobjdump has a line for those that are there, be they empty.
#[test]
fn room_for_options_is_none() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/fatbin/lz4.fatbin");
    let mut bytes = std::fs::read(root).expect("a fixture");
    assert!(usage(&bytes).contains("\nptxasOptions = "), "{}", usage(&bytes));
    let elf = u32::from_le_bytes(*bytes[0x14..].first_chunk().expect("a size"));
    let stored = u64::from_le_bytes(*bytes[0x18..].first_chunk().expect("a size"));
    let ptx = 16 + elf as usize + stored as usize;
    let block =
        ptx + u32::from_le_bytes(*bytes[ptx + 0x14..].first_chunk().expect("an offset")) as usize;
    bytes[block..block + 4].fill(0);
    assert!(!usage(&bytes).contains("Options"), "{}", usage(&bytes));
}

/// Scripts ask by the status whether a file has device code: cuobjdump ends with 255.
#[test]
fn a_file_without_device_code_has_its_status() {
    for (file, status, start) in [
        ("lz4.fatbin", 0, ""),
        ("k.ptx", 255, "cuobjdump info    : File '"),
        ("absent", 1, "hoist: "),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/fatbin").join(file);
        let mut hoist = Command::new(env!("CARGO_BIN_EXE_hoist"));
        let output = hoist.args(["cuobjdump", "-lelf"]).arg(path).output().expect("hoist runs");
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(said.starts_with(start) && said.lines().count() <= 1, "{said}");
    }
}
