//! Dynamic relocations of each architecture: a library is relocated for where another copy of it was linked to be, and is that one.
#![cfg(test)]

use core::cell::RefCell;
use core::ops::Range;
use elf_core::names::{PT_DYNAMIC, SHN_ABS};
use elf_core::{
    Arch, File, Query, Resolve, Role, SegmentFlags, SymbolAttributes, Value, find, relative_type,
};
use elf_image::{AddressKind, Error, ErrorKind, Image, ImageSymbols, OwnSymbols};
use reloc_aarch64::Aarch64;
use reloc_arm::Arm;
use reloc_loongarch::LoongArch64;
use reloc_riscv::{Rv32, Rv64};
use reloc_x86::{I386, X86_64};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const ARM: &[u8] = include_bytes!("../../fixtures/arm/libdynamic.so");
const ARM_PLACED: &[u8] = include_bytes!("../../fixtures/arm/libdynamic-placed.so");
/// The library of a machine, and its copy that was linked for [`BASE`].
macro_rules! pair {
    ($machine:literal) => {
        [
            include_bytes!(concat!("../../fixtures/", $machine, "/libdynamic.so")).as_slice(),
            include_bytes!(concat!("../../fixtures/", $machine, "/libdynamic-placed.so")),
        ]
    };
}
const LOONGARCH: &[u8] = include_bytes!("../../fixtures/loongarch64/libdynamic.so");
const LOONGARCH_PLACED: &[u8] = include_bytes!("../../fixtures/loongarch64/libdynamic-placed.so");

/// Where the copies are that were linked for an address.
const BASE: u64 = 0x7000_0000;
/// What others define: Thumb code, on Arm.
const IMPORTED: u64 = 0x1234_5679;
const MODULE: u64 = 7;
const BLOCK: u64 = 0x40;
const DESCRIPTOR: u64 = 0x0765_4320;

fn parse(bytes: &[u8]) -> Result<Image<'_>, Error> {
    Image::parse(File::parse(bytes)?, AddressKind::Virtual)
}

/// What the library defines itself, one address for all else, a block for its variables; resolvers answer with their own address, which
/// is noted.
struct All<'s, A> {
    own: OwnSymbols<'s, A>,
    bias: u64,
    resolvers: RefCell<Vec<u64>>,
}

impl<A: Arch> Resolve for All<'_, A> {
    fn resolve(&self, query: &Query) -> Option<u64> {
        match query.role {
            Role::TlsModule => Some(MODULE),
            Role::TpOffset => Some(BLOCK),
            Role::TlsDescFunction => Some(DESCRIPTOR),
            Role::TlsDescArgument => Some(BLOCK.wrapping_add_signed(query.addend)),
            Role::Indirect => {
                let resolver = self.bias.wrapping_add_signed(query.addend);
                self.resolvers.borrow_mut().push(resolver);
                Some(resolver)
            }
            // weak ones, too
            Role::Address => self.own.resolve(query).filter(|it| *it != 0).or(Some(IMPORTED)),
            _ => self.own.resolve(query),
        }
    }

    fn attributes(&self, query: &Query) -> SymbolAttributes {
        self.own.attributes(query)
    }
}

impl<A: Arch> ImageSymbols for All<'_, A> {}

/// The image at an address, and the resolvers that were asked.
fn load<A: Arch>(bytes: &[u8], base: u64) -> Result<(Vec<u8>, Vec<u64>), Error> {
    let image = parse(bytes)?;
    let mut memory = vec![0xcc; usize::try_from(image.size()).unwrap().min(1 << 24)];
    image.write(&mut memory)?;
    let (own, bias) = (image.own_symbols::<A>(base)?, image.bias(base)?);
    let symbols = All { own, bias, resolvers: RefCell::default() };
    image.relocate::<A>(&mut memory, base, &symbols)?;
    Ok((memory, symbols.resolvers.into_inner()))
}

/// The kinds of relocations that a file has.
fn kinds<A: Arch>(image: &Image<'_>) -> BTreeSet<&'static str> {
    let records = image.relocations().flat_map(|table| table.unwrap());
    records.map(|record| find(A::KINDS, record.r#type).unwrap().name).collect()
}

/// Offsets of writable bytes in the image.
fn writable(image: &Image<'_>) -> Vec<Range<usize>> {
    let writable = image.segments().filter(|segment| segment.flags.contains(SegmentFlags::WRITE));
    writable.map(|it| it.offset as usize..(it.offset + it.size) as usize).collect()
}

/// Relocates `free` for where `placed` was linked to be: the same data, as the linker has it. The dynamic section and the first word of
/// the GOT, which says where that is, hold addresses that no relocation speaks of.
fn is_as_linked<A: Arch>(free: &[u8], placed: &[u8], wanted: &[&str]) {
    let (one, other) = (parse(free).unwrap(), parse(placed).unwrap());
    assert_eq!((one.start(), other.start(), one.size()), (0, BASE, other.size()));
    let found = kinds::<A>(&one);
    assert_eq!(found, wanted.iter().copied().collect());
    assert_eq!(kinds::<A>(&other), found);

    let (ours, resolvers) = load::<A>(free, BASE).unwrap();
    let (linked, same) = load::<A>(placed, BASE).unwrap();
    assert_eq!(resolvers, same);
    assert_eq!(resolvers.len(), 1);

    let dynamic = one.file().segments().iter().find(|it| it.r#type == PT_DYNAMIC).unwrap();
    let dynamic = dynamic.address as usize..(dynamic.address + dynamic.memory_size) as usize;
    let size = A::ADDRESS_SIZE as usize;
    let (mut compared, mut first_words, mut changed) = (0, 0, 0);
    let before = {
        let mut memory = vec![0; ours.len()];
        one.write(&mut memory).unwrap();
        memory
    };
    for range in writable(&one) {
        for at in (range.start.next_multiple_of(size)..range.end).step_by(size) {
            let Some(word) = ours.get(at..at + size) else { continue };
            compared += 1;
            changed += usize::from(word != &before[at..at + size]);
            if word == &linked[at..at + size] || dynamic.contains(&at) {
                continue;
            }
            let mut address = [0; 8];
            address[..size].copy_from_slice(word);
            let held = u64::from_le_bytes(address);
            if held == dynamic.start as u64 {
                first_words += 1;
                continue;
            }
            panic!("at {at:#x}: {held:#x}");
        }
    }
    assert!(
        compared > 20 && changed >= 10 && first_words <= 1,
        "{compared} {changed} {first_words}"
    );
}

#[test]
fn arm() {
    let kinds = [
        "R_ARM_ABS32",
        "R_ARM_GLOB_DAT",
        "R_ARM_IRELATIVE",
        "R_ARM_JUMP_SLOT",
        "R_ARM_RELATIVE",
        "R_ARM_TLS_DTPMOD32",
        "R_ARM_TLS_DTPOFF32",
        "R_ARM_TLS_TPOFF32",
    ];
    is_as_linked::<Arm>(ARM, ARM_PLACED, &kinds);
}

#[test]
fn x86_64() {
    let kinds = [
        "R_X86_64_64",
        "R_X86_64_DTPMOD64",
        "R_X86_64_DTPOFF64",
        "R_X86_64_GLOB_DAT",
        "R_X86_64_IRELATIVE",
        "R_X86_64_JUMP_SLOT",
        "R_X86_64_RELATIVE",
        "R_X86_64_TPOFF64",
    ];
    let [free, placed] = pair!("x86_64");
    is_as_linked::<X86_64>(free, placed, &kinds);
}

#[test]
fn i386() {
    let kinds = [
        "R_386_32",
        "R_386_GLOB_DAT",
        "R_386_IRELATIVE",
        "R_386_JUMP_SLOT",
        "R_386_RELATIVE",
        "R_386_TLS_DTPMOD32",
        "R_386_TLS_DTPOFF32",
        "R_386_TLS_TPOFF",
    ];
    let [free, placed] = pair!("i386");
    is_as_linked::<I386>(free, placed, &kinds);
}

#[test]
fn aarch64() {
    let kinds = [
        "R_AARCH64_ABS64",
        "R_AARCH64_GLOB_DAT",
        "R_AARCH64_IRELATIVE",
        "R_AARCH64_JUMP_SLOT",
        "R_AARCH64_RELATIVE",
        "R_AARCH64_TLSDESC",
        "R_AARCH64_TLS_TPREL64",
    ];
    let [free, placed] = pair!("aarch64");
    is_as_linked::<Aarch64>(free, placed, &kinds);
}

#[test]
fn riscv64() {
    let kinds = [
        "R_RISCV_64",
        "R_RISCV_IRELATIVE",
        "R_RISCV_JUMP_SLOT",
        "R_RISCV_RELATIVE",
        "R_RISCV_TLS_DTPMOD64",
        "R_RISCV_TLS_DTPREL64",
        "R_RISCV_TLS_TPREL64",
    ];
    let [free, placed] = pair!("riscv64");
    is_as_linked::<Rv64>(free, placed, &kinds);
}

#[test]
fn riscv32() {
    let kinds = [
        "R_RISCV_32",
        "R_RISCV_IRELATIVE",
        "R_RISCV_JUMP_SLOT",
        "R_RISCV_RELATIVE",
        "R_RISCV_TLS_DTPMOD32",
        "R_RISCV_TLS_DTPREL32",
        "R_RISCV_TLS_TPREL32",
    ];
    let [free, placed] = pair!("riscv32");
    is_as_linked::<Rv32>(free, placed, &kinds);
}

#[test]
fn loongarch() {
    let kinds = [
        "R_LARCH_64",
        "R_LARCH_IRELATIVE",
        "R_LARCH_JUMP_SLOT",
        "R_LARCH_RELATIVE",
        "R_LARCH_TLS_DTPMOD64",
        "R_LARCH_TLS_DTPREL64",
        "R_LARCH_TLS_TPREL64",
    ];
    is_as_linked::<LoongArch64>(LOONGARCH, LOONGARCH_PLACED, &kinds);
}

/// Words of each kind, by what `readelf -r` says is there.
#[test]
fn words_of_arm() {
    let image = parse(ARM).unwrap();
    let (memory, _) = load::<Arm>(ARM, BASE).unwrap();
    let table = image.dynamic().unwrap().unwrap().symbol_table().unwrap().unwrap();
    let before = {
        let mut memory = vec![0; memory.len()];
        image.write(&mut memory).unwrap();
        memory
    };
    let word = |memory: &[u8], at: u64| {
        u32::from_le_bytes(memory[at as usize..at as usize + 4].try_into().unwrap())
    };
    let mut thumb = 0;
    for record in image.relocations().flat_map(|table| table.unwrap()) {
        let symbol = table.get(record.symbol).unwrap();
        let (now, held) = (word(&memory, record.offset), word(&before, record.offset));
        let is_own = record.symbol != 0 && !symbol.is_undefined() && symbol.shndx != SHN_ABS;
        let address = if is_own { symbol.value + BASE } else { IMPORTED } as u32;
        let expected = match record.r#type {
            2 => address.wrapping_add(held),
            // what a slot of the PLT holds is no addend
            21 | 22 => address,
            17 => MODULE as u32,
            18 => held.wrapping_add(symbol.value as u32),
            19 => held.wrapping_add(BLOCK as u32),
            23 | 160 => held.wrapping_add(BASE as u32),
            other => panic!("type {other}"),
        };
        assert_eq!(now, expected, "{record:?}");
        thumb += usize::from(record.r#type == 23 && now & 1 == 1);
    }
    assert!(thumb >= 1, "a pointer to Thumb code");
}

/// TLS descriptors of Arm: the argument, then the function. What the linker left beside symbols is no addend.
#[test]
fn descriptors_of_arm() {
    const FUNCTION: u32 = 0x7654_3210;
    let bytes = include_bytes!("../../fixtures/arm/libdescriptors.so");
    let image = parse(bytes).unwrap();
    let mut memory = vec![0; usize::try_from(image.size()).unwrap()];
    image.write(&mut memory).unwrap();
    let before = memory.clone();
    let table = image.dynamic().unwrap().unwrap().symbol_table().unwrap().unwrap();
    let value = |symbol: u32| table.get(symbol).unwrap().value;
    let answers = |query: &Query| match query.role {
        Role::TlsDescFunction => Some(FUNCTION.into()),
        Role::TlsDescArgument => {
            Some((BLOCK + value(query.symbol)).wrapping_add_signed(query.addend))
        }
        Role::Address => Some(IMPORTED),
        _ => None,
    };
    image.relocate::<Arm>(&mut memory, 0, &answers).unwrap();
    let word = |memory: &[u8], at: u64| {
        u32::from_le_bytes(memory[at as usize..at as usize + 4].try_into().unwrap())
    };
    let mut found = [0, 0];
    for record in image.relocations().flat_map(|table| table.unwrap()) {
        if record.r#type != 13 {
            continue;
        }
        let at = record.offset - image.start();
        let held = if record.symbol == 0 { word(&before, at) } else { 0 };
        let argument = (BLOCK + value(record.symbol)) as u32 + held;
        assert_eq!((word(&memory, at), word(&memory, at + 4)), (argument, FUNCTION), "{record:?}");
        found[usize::from(record.symbol != 0)] += 1;
    }
    assert_eq!(found, [2, 3]);
}

/// What the library has of a variable that an executable has a copy of, and where that is copied to.
struct Copies<'s, A> {
    all: All<'s, A>,
    copied: RefCell<Vec<(u32, usize)>>,
}

impl<A: Arch> Resolve for Copies<'_, A> {
    fn resolve(&self, query: &Query) -> Option<u64> {
        self.all.resolve(query)
    }

    fn attributes(&self, query: &Query) -> SymbolAttributes {
        self.all.attributes(query)
    }
}

impl<A: Arch> ImageSymbols for Copies<'_, A> {
    fn copy(&self, symbol: u32, to: &mut [u8]) -> bool {
        self.copied.borrow_mut().push((symbol, to.len()));
        to.copy_from_slice(&[9, 8, 7, 6]);
        true
    }
}

/// An executable's copy of a variable, where its linker has put that: the executable's own pointers lead there, and nobody who has
/// none to copy is believed.
fn is_copied<A: Arch>(bytes: &[u8], kind: u32) {
    let image = parse(bytes).unwrap();
    assert!(image.is_fixed());
    let base = image.start();
    let mut memory = vec![0; usize::try_from(image.size()).unwrap()];
    image.write(&mut memory).unwrap();
    let before = memory.clone();
    let own = image.own_symbols::<A>(base).unwrap();
    let all = || All { own, bias: 0, resolvers: RefCell::default() };
    let symbols = Copies { all: all(), copied: RefCell::default() };
    image.relocate::<A>(&mut memory, base, &symbols).unwrap();

    let table = image.dynamic().unwrap().unwrap().symbol_table().unwrap().unwrap();
    let records = image.relocations().flat_map(|table| table.unwrap());
    let copies: Vec<_> = records.filter(|record| record.r#type == kind).collect();
    let [copy] = copies.as_slice() else { panic!("{copies:?}") };
    let symbol = table.get(copy.symbol).unwrap();
    assert_eq!(table.name_of(&symbol).unwrap(), "exported_data");
    assert_eq!((symbol.value, symbol.size), (copy.offset, 4));
    assert_eq!(symbols.copied.into_inner(), [(copy.symbol, 4)]);
    let at = usize::try_from(copy.offset - base).unwrap();
    assert_eq!(memory[at..at + 4], [9, 8, 7, 6]);
    let size = A::ADDRESS_SIZE as usize;
    let address = copy.offset.to_le_bytes();
    let mut words = writable(&image)
        .into_iter()
        .flat_map(|range| (range.start.next_multiple_of(size)..range.end - size + 1).step_by(size));
    assert!(words.any(|word| memory[word..word + size] == address[..size]), "a pointer to it");

    let mut memory = before.clone();
    let error = image.relocate::<A>(&mut memory, base, &all()).unwrap_err();
    let ErrorKind::Relocation(error) = error.kind else { panic!("{error}") };
    assert_eq!((error.offset, error.r#type, error.symbol), (copy.offset, kind, copy.symbol));
    assert_eq!(memory[at..at + 4], before[at..at + 4]);
}

#[test]
fn copies() {
    is_copied::<X86_64>(include_bytes!("../../fixtures/x86_64/copied"), 5);
    is_copied::<I386>(include_bytes!("../../fixtures/i386/copied"), 5);
    is_copied::<Aarch64>(include_bytes!("../../fixtures/aarch64/copied"), 1024);
    is_copied::<Arm>(include_bytes!("../../fixtures/arm/copied"), 20);
    is_copied::<Rv64>(include_bytes!("../../fixtures/riscv64/copied"), 4);
    is_copied::<Rv32>(include_bytes!("../../fixtures/riscv32/copied"), 4);
}

/// What nobody knows is named, with its place.
#[test]
fn what_is_missing_is_named() {
    let image = parse(ARM).unwrap();
    let mut memory = vec![0; usize::try_from(image.size()).unwrap()];
    image.write(&mut memory).unwrap();
    let error = image.relocate::<Arm>(&mut memory, BASE, &|_: &Query| None).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error.kind, ErrorKind::Relocation(_)) && text.contains("R_ARM_"), "{text}");
    let error = image.relocate_relative::<Arm>(&mut memory, BASE).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::NotRelative(_)), "{error}");
    let error = image.relocate::<LoongArch64>(&mut memory, BASE, &|_: &Query| None).unwrap_err();
    assert_eq!(error.to_string(), "a file for machine 40, not 258");
}

/// The type that is a relative one in each table.
#[test]
fn relative_types() {
    fn is_relative<A: Arch>() {
        let number = relative_type(A::MACHINE, A::ADDRESS_SIZE == 8);
        let kind = find(A::KINDS, number).unwrap();
        assert_eq!(kind.value, Value::of(Role::Base).plus_a(), "{}", kind.name);
    }
    is_relative::<X86_64>();
    is_relative::<I386>();
    is_relative::<Aarch64>();
    is_relative::<Arm>();
    is_relative::<Rv64>();
    is_relative::<Rv32>();
    is_relative::<LoongArch64>();
}

/// The C library of RISC-V adds 0x800 to offsets in blocks of variables, which relocations take off.
#[test]
fn offsets_of_riscv() {
    let image = parse(include_bytes!("../../fixtures/riscv64/libshared.so")).unwrap();
    let own = image.own_symbols::<Rv64>(0).unwrap();
    let kind = find(Rv64::KINDS, 9).unwrap();
    let query = Query { role: Role::DtpOffset, symbol: 0, place: 0, addend: 0, kind };
    assert_eq!(own.resolve(&query), Some((-0x800i64).cast_unsigned()));
}

/// The libraries of a folder that are files of their own.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.is_file() && path.to_string_lossy().contains(".so"));
    files.sort();
    files
}

/// All libraries of a cross compiler have kinds that are known, and are relocated.
#[test]
fn libraries_of_arm() {
    let (mut count, mut records) = (0, 0);
    for path in libraries(Path::new("/usr/arm-linux-gnueabihf/lib")) {
        let bytes = std::fs::read(&path).unwrap();
        let Ok(image) = parse(&bytes) else { continue };
        let (memory, _) = load::<Arm>(&bytes, 0x4000_0000 + image.start()).unwrap();
        assert_eq!(memory.len() as u64, image.size(), "{}", path.display());
        records += image.relocations().map(|table| table.unwrap().iter().count()).sum::<usize>();
        count += 1;
    }
    println!("{count} libraries, {records} relocations");
    if count == 0 {
        println!("skipped: libraries_of_arm: needs libc6-dev-armhf-cross");
    } else {
        assert!(count >= 5 && records > 1000, "{count} libraries, {records} relocations");
    }
}
