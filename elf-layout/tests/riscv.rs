//! RISC-V code that became shorter does what it did: both are run, as a processor runs them, and what they reach, store and call is compared.
#![cfg(test)]
#![cfg(all(feature = "alloc", feature = "edits", feature = "relax", feature = "thread-local"))]
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test")]

use elf_core::names::{EF_RISCV_RVC, EM_RISCV, STT_FUNC};
use elf_core::{File, Name, SymbolTable};
use elf_layout::{ExternalSymbol, HeapStorage, Layout, Options};
use reloc_riscv::Rv64;
use reloc_riscv::riscv::*;
use std::collections::BTreeMap;

#[path = "riscv/processor.rs"]
mod processor;
mod support;
use processor::Does;
use support::{CODE, Object};

const BASE: u64 = 0x40_0000;
const TP: u64 = 0x5000_0000;

/// What code does that others can tell. Addresses are a symbol and the distance from it, or numbers of what is none of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Call(u32, Address),
    Load(Address),
    Store(Address, u64),
    GoOn(Address),
    /// What is no instruction.
    Trap,
    /// With these in `a0` to `a7`; nothing of what is the upper part of an address, which may not be needed any more.
    Return(Vec<Option<Address>>),
}

type Address = (String, u64);

/// A layout with its image.
struct Program<'l> {
    image: Vec<u8>,
    /// Symbols that have a size, by their addresses.
    names: BTreeMap<u64, String>,
    global_pointer: u64,
    layout: &'l Layout<'l, 'l, Rv64>,
}

impl Program<'_> {
    fn read(&self, address: u64, size: usize) -> u64 {
        let at = (address - BASE) as usize;
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&self.image[at..at + size]);
        u64::from_le_bytes(bytes)
    }

    fn is_got(&self, address: u64) -> bool {
        let (start, size) = self.layout.got();
        (BASE + start..BASE + start + size).contains(&address)
    }

    /// The symbol at an address or before it.
    fn name(&self, address: u64) -> Address {
        let is_inside = (BASE..BASE + self.layout.size()).contains(&address);
        let last = self.names.range(..=address).next_back().filter(|_| is_inside);
        last.map_or((String::new(), address), |(at, name)| (name.clone(), address - at))
    }

    /// Runs the function from `start` to `end`, with this in `a1`. What is called, or loaded, gives nothing new.
    fn run(&self, start: u64, end: u64, a1: u64) -> Vec<Event> {
        let mut x: [u64; 32] = std::array::from_fn(|number| 3 + number as u64 % 7);
        (x[2], x[3], x[4]) = (0x6000_0000, self.global_pointer, TP);
        x[11] = a1;
        let (mut pc, mut events, mut is_upper) = (start, Vec::new(), [false; 32]);
        while (start..end).contains(&pc) {
            x[0] = 0;
            let code = self.read(pc, 2) as u32;
            assert!(events.len() < 1000, "{start:x} does not end");
            let size = processor::size(code);
            let code = self.read(pc, size as usize) as u32;
            let mut next = pc + size;
            match processor::of(code, pc, &x) {
                Does::Sets(register, value) => {
                    x[register as usize] = value;
                    is_upper[register as usize] = processor::is_upper(code);
                }
                // shorter code may do without the entry
                Does::Loads(register, address) if self.is_got(address) => {
                    x[register as usize] = self.read(address, 8);
                    is_upper[register as usize] = false;
                }
                Does::Loads(register, address) => {
                    events.push(Event::Load(self.name(address)));
                    x[register as usize] = 7;
                    is_upper[register as usize] = false;
                }
                Does::Stores(address, value) => {
                    events.push(Event::Store(self.name(address), value))
                }
                Does::Traps => {
                    events.push(Event::Trap);
                    return events;
                }
                Does::Branches(is_taken, to) => next = if is_taken { to } else { next },
                Does::Returns => {
                    let value = |at: usize| (!is_upper[at]).then(|| self.name(x[at]));
                    events.push(Event::Return((10..18).map(value).collect()));
                    return events;
                }
                Does::Jumps(0, to) if (start + 1..end).contains(&to) => next = to,
                Does::Jumps(0, to) => {
                    events.push(Event::GoOn(self.name(to)));
                    return events;
                }
                Does::Jumps(link, to) => events.push(Event::Call(link, self.name(to))),
            }
            pc = next;
        }
        events
    }
}

/// Where others are.
fn outside(name: Name<'_>) -> Option<ExternalSymbol> {
    Some(ExternalSymbol::new(match name.to_str()? {
        "outside" => BASE + 0x8000,
        "zero" => 0x400,
        "minus" => (-0x400_i64).cast_unsigned(),
        "page" => 0x1_2345,
        "last_page" => 0x2_0000,
        "at_4ffffe" => 0x4f_fffe,
        "at_500004" => 0x50_0004,
        "at_50000a" => 0x50_000a,
        _ => return None,
    }))
}

/// What each function does, and the size of all code.
fn all_does(bytes: &[u8], options: Options) -> (Vec<(String, Vec<Event>)>, u64) {
    let files = [File::parse(bytes).unwrap()];
    let table: SymbolTable<'_> = files[0].symbol_table().unwrap().unwrap();
    let mut room = HeapStorage::new();
    let mut layout = room.plan::<Rv64>(&files, options, &mut outside).unwrap();
    layout.set_static_tls_block(layout.executable_tls_block());
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, BASE).unwrap();
    let symbols: Vec<_> = (0u32..).zip(table.symbols()).skip(1).collect();
    let at = |index| layout.symbol(0, index).map(|it| it.at(BASE));
    let name = |symbol| table.name_of(symbol).unwrap().to_string();
    // functions and data: labels in the code are within them
    let named = symbols.iter().filter(|(_, it)| it.size > 0);
    let names = named.filter_map(|(index, it)| Some((at(*index)?, name(it)))).collect();
    let pointer = symbols.iter().find(|(_, it)| name(it) == "__global_pointer$");
    let global_pointer = pointer.map_or(0, |(index, _)| at(*index).unwrap());
    let program = Program { image, names, global_pointer, layout: &layout };
    let mut all = Vec::new();
    for (index, symbol) in symbols.iter().filter(|(_, it)| it.r#type() == STT_FUNC) {
        let start = at(*index).unwrap();
        let end = start + layout.symbol_size(0, *index).unwrap();
        for a1 in [0, 11] {
            all.push((name(symbol), program.run(start, end, a1)));
        }
    }
    check_data(&program, &files[0]);
    let sections = 0..files[0].sections().len() as u32;
    let code = sections.filter_map(|section| layout.section_size(0, section)).sum();
    (all, code)
}

/// Data hold addresses, and differences of addresses, as they are now.
fn check_data(program: &Program<'_>, file: &File<'_>) {
    let layout = program.layout;
    let at = |symbol: u32| layout.symbol(0, symbol).unwrap().at(BASE);
    for header in file.sections().iter() {
        let Some(records) = file.relocations(&header).unwrap() else { continue };
        let mut added = BTreeMap::new();
        for record in records.iter() {
            let Some(place) = layout.place(0, header.info, record.offset) else { continue };
            let value = || at(record.symbol).wrapping_add_signed(record.addend.unwrap());
            let (size, expected) = match record.r#type {
                R_RISCV_64 => (8, value()),
                R_RISCV_ADD8 | R_RISCV_ADD16 | R_RISCV_ADD32 => {
                    added.insert(record.offset, value());
                    continue;
                }
                R_RISCV_SUB8 => (1, added[&record.offset].wrapping_sub(value())),
                R_RISCV_SUB16 => (2, added[&record.offset].wrapping_sub(value())),
                R_RISCV_SUB32 => (4, added[&record.offset].wrapping_sub(value())),
                _ => continue,
            };
            let found = program.read(BASE + place, size);
            assert_eq!(found, expected & u64::MAX >> (64 - 8 * size), "{record:?}");
        }
    }
}

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../fixtures/riscv64/", $name, ".o")).as_slice()
    };
}

#[test]
fn shorter_code_does_the_same() {
    for (object, gone) in [
        (fixture!("relax"), 50),
        (fixture!("relax-gas"), 50),
        (fixture!("relax-gnu"), 10),
        (fixture!("relax-lld"), 10),
        (fixture!("relax-lld-gas"), 10),
        (fixture!("relax-lld-descriptors"), 10),
        (fixture!("unmarked"), 0),
    ] {
        let as_compiled = Options { relax: false, base: Some(BASE), ..Options::default() };
        let (long, size) = all_does(object, as_compiled);
        for (executable, global_pointer, base) in [
            (true, true, Some(BASE)),
            (false, false, Some(BASE)),
            (true, false, Some(BASE)),
            (false, false, None),
        ] {
            let options =
                Options { relax: true, executable, global_pointer, base, ..Options::default() };
            let (short, less) = all_does(object, options);
            assert_eq!(short.len(), long.len());
            for ((name, short), (_, long)) in short.iter().zip(&long) {
                let is_same = |(short, long): (&Event, &Event)| match (short, long) {
                    (Event::Return(short), Event::Return(long)) => {
                        long.iter().zip(short).all(|(long, short)| long.is_none() || long == short)
                    }
                    _ => short == long,
                };
                let is_same = short.iter().zip(long).all(is_same) && short.len() == long.len();
                assert!(is_same, "{name}: {short:?} instead of {long:?}");
            }
            assert!(
                base.is_none() || !executable || !global_pointer || less + gone <= size,
                "{less} of {size}"
            );
        }
    }
}

/// Two jumps and two paddings: each jump is near enough to be short where the other is long, and too far where it is short. That does not come to rest
/// by itself; what became longer again stays so, and both arrive.
#[test]
fn what_does_not_come_to_rest_stays_long() {
    const NOP: [u8; 2] = [0x01, 0x00];
    let nops = |bytes: usize| NOP.repeat(bytes / 2);
    // the first goes 2014 bytes, or 2078 if the padding takes 64 more; the second as far as JAL does, if it starts at 4
    let (before, near, far) = (72, 1950, 0xf_f800 - 2014);
    let first = before + 62 + near;
    let second = first + far + 4094 + 2;
    let code = [&TAIL[..], &TAIL, &nops(second - 16), &[0x82, 0x80]].concat();
    let mut object = Object::new();
    object.machine = EM_RISCV;
    let text = object.section(".text", CODE, 4096, &code);
    let [to_first, to_second] = [("first", first), ("second", second)]
        .map(|(name, at)| object.global(name, text, at as u64));
    for (place, kind, symbol, addend) in [
        (0, R_RISCV_CALL_PLT, to_first, 0),
        (0, R_RISCV_RELAX, to_first, 0),
        (8, R_RISCV_CALL_PLT, to_second, 0),
        (8, R_RISCV_RELAX, to_second, 0),
        (before, R_RISCV_ALIGN, to_first, 62),
        (first + far, R_RISCV_ALIGN, to_first, 4094),
    ] {
        object.relocation(text, place as u64, kind, symbol, addend);
    }
    let mut bytes = object.build();
    bytes[48] = EF_RISCV_RVC as u8;
    let files = [File::parse(&bytes).unwrap()];
    let mut room = HeapStorage::new();
    let layout = room.plan::<Rv64>(&files, Options::default(), &mut |_| None).unwrap();
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, BASE).unwrap();
    let program = Program { image, names: BTreeMap::new(), global_pointer: 0, layout: &layout };
    let at = |symbol| layout.symbol(0, object.index(symbol)).unwrap().at(BASE);
    let second_jump = BASE + layout.place(0, text, 8).unwrap();
    for (jump, symbol) in [(BASE, to_first), (second_jump, to_second)] {
        let events = program.run(jump, jump + 8, 0);
        assert_eq!(events, [Event::GoOn((String::new(), at(symbol)))]);
    }
    // only the one that became longer again is as long as it was
    let [first_end, second_end] = [8, 16].map(|it| layout.place(0, text, it).unwrap());
    assert_eq!((first_end, second_end - first_end), (8, 4));
    // paddings are right
    assert_eq!([at(to_first) - near as u64, at(to_second) - 2].map(|it| it & 63), [0; 2]);
    assert_eq!((at(to_second) - 2) & 4095, 0);
}

/// Lays out one section of code with these relocations, and hands over its layout, and its image that can be run.
fn with_code<R>(object: &Object, f: impl FnOnce(&Program<'_>) -> R) -> R {
    let mut bytes = object.build();
    bytes[48] = EF_RISCV_RVC as u8;
    let files = [File::parse(&bytes).unwrap()];
    let mut room = HeapStorage::new();
    let layout = room.plan::<Rv64>(&files, Options::default(), &mut outside).unwrap();
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, BASE).unwrap();
    f(&Program { image, names: BTreeMap::new(), global_pointer: 0, layout: &layout })
}

/// auipc t1, 0; jr t1
const TAIL: [u8; 8] = [0x17, 0x03, 0, 0, 0x67, 0x00, 0x03, 0x00];

/// Records are mostly in the order of their places. What stands before the place of an earlier one is linked as it is.
#[test]
fn what_stands_before_the_place_of_an_earlier_record_stays() {
    let mut object = Object::new();
    object.machine = EM_RISCV;
    let text = object.section(".text", CODE, 4, &[&TAIL[..], &TAIL, &[0x82, 0x80]].concat());
    let end = object.global("end", text, 16);
    for place in [8, 0] {
        object.relocation(text, place, R_RISCV_CALL_PLT, end, 0);
        object.relocation(text, place, R_RISCV_RELAX, end, 0);
    }
    with_code(&object, |program| {
        let at = program.layout.symbol(0, object.index(end)).unwrap().at(BASE);
        assert_eq!(at, BASE + 10);
        for (start, end) in [(BASE, BASE + 8), (BASE + 8, at)] {
            assert_eq!(program.run(start, end, 0), [Event::GoOn((String::new(), at))]);
        }
    });
}

/// `jalr` ignores bit 0 of where it goes, which the shorter jumps cannot have: GNU ld leaves such a call as it is, too.
#[test]
fn calls_to_odd_addresses_stay() {
    let mut object = Object::new();
    object.machine = EM_RISCV;
    let text = object.section(".text", CODE, 4, &[&TAIL[..], &TAIL, &[0x82, 0x80]].concat());
    let odd = object.global("odd", text, 17);
    for place in [0, 8] {
        object.relocation(text, place, R_RISCV_CALL_PLT, odd, 0);
        object.relocation(text, place, R_RISCV_RELAX, odd, 0);
    }
    with_code(&object, |program| {
        assert_eq!(program.layout.section_size(0, text), Some(18));
        let expected = [Event::GoOn((String::new(), BASE + 16))];
        assert_eq!(program.run(BASE, BASE + 8, 0), expected);
    });
}
