//! Tables by hand: what is taken, and each refusal with its words.

extern crate std;
use super::*;
use std::format;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

/// Code at 0x1000, tables of exceptions at 0x2000, a word at 0x3000 that leads to a personality routine at 0x4000.
struct Around;

impl Places for Around {
    fn is_code(&self, address: u64, size: u64) -> bool {
        (0x1000..=0x1100).contains(&address) && size <= 0x1100 - address
    }
    fn is_data(&self, address: u64) -> bool {
        address == 0x2000
    }
    fn is_personality(&self, address: u64) -> bool {
        address == 0x4000
    }
    fn word(&self, address: u64) -> Option<u64> {
        (address == 0x3000).then_some(0x4000)
    }
}

/// An entry: its id, and what follows.
fn entry(id: u32, content: &[u8]) -> Vec<u8> {
    let size = content.len() as u32 + 4;
    [&size.to_le_bytes()[..], &id.to_le_bytes(), content].concat()
}

/// A CIE of version 1 with absolute addresses of 4 bytes.
fn cie(letters: &str, augmentation: &[u8], program: &[u8]) -> Vec<u8> {
    let size = [augmentation.len() as u8];
    let zero = [0];
    let parts = [&[1][..], letters.as_bytes(), &zero, &[1, 0x78, 16], &size, augmentation, program];
    entry(0, &parts.concat())
}

const DEFINED: &[u8] = &[0x0c, 7, 8, 0x90, 1];

/// An FDE behind a CIE.
fn fde(cie: &[u8], address: u32, size: u32, rest: &[u8]) -> Vec<u8> {
    let content = [&address.to_le_bytes()[..], &size.to_le_bytes(), rest].concat();
    [cie.to_vec(), entry(cie.len() as u32 + 4, &content)].concat()
}

fn check(bytes: &[u8]) -> Result<Summary, Error> {
    EhFrame { bytes, address: 0x8000, machine: Machine::X86_64 }.check(&Around)
}

fn words(bytes: &[u8]) -> std::string::String {
    check(bytes).unwrap_err().to_string()
}

/// A table of one function with these instructions, which start at 0x27.
fn program(instructions: &[u8]) -> Vec<u8> {
    fde(&cie("zR", &[3], DEFINED), 0x1000, 0x10, &[&[0], instructions].concat())
}

#[test]
fn what_a_table_describes() {
    let mut table = fde(&cie("zR", &[3], DEFINED), 0x1000, 0x10, &[0]);
    let second = table.len() as u64;
    let back = second as u32 + 4;
    let content = |address: u32| [&address.to_le_bytes()[..], &8u32.to_le_bytes(), &[0]].concat();
    table.extend(entry(back, &content(0x1020)));
    table.extend(entry(table.len() as u32 + 4, &content(0)));
    let frames = EhFrame { bytes: &table, address: 0x8000, machine: Machine::X86_64 };
    let mut found = Vec::new();
    let summary = frames.check_each(&Around, |described| found.push(described)).unwrap();
    assert_eq!((summary.fdes, summary.absent), (3, 1));
    let first = cie("zR", &[3], DEFINED).len() as u64;
    let expected = [(first, 0x1000, 0x10), (second, 0x1020, 8)];
    assert_eq!(found, expected.map(|(at, address, size)| Described { at, address, size }));
}

#[test]
fn pointers_of_all_forms() {
    let personality = 0x4000u64.to_le_bytes();
    let relative = 0x4000u32.wrapping_sub(0x8000 + 0x13).to_le_bytes();
    let indirect = 0x3000u32.to_le_bytes();
    for (encoding, bytes) in [(0, &personality[..]), (0x1b, &relative), (0x83, &indirect)] {
        let augmentation = [&[encoding][..], bytes, &[3, 3]].concat();
        let table = fde(&cie("zPLR", &augmentation, DEFINED), 0x1000, 0x100, &[4, 0, 0x20, 0, 0]);
        assert_eq!(check(&table).unwrap().fdes, 1, "{encoding:#x}");
        let table = fde(&cie("zPLR", &augmentation, DEFINED), 0x1000, 0x100, &[4, 1, 0x20, 0, 0]);
        let at = table.len() - 4;
        assert_eq!(
            words(&table),
            format!("no table of exceptions is at 0x2001, at offset {at:#x}")
        );
    }
    // aligned to 8 bytes by its address: six of padding
    let augmentation = [&[0x50, 0, 0, 0, 0, 0, 0][..], &personality, &[3]].concat();
    assert!(check(&cie("zPR", &augmentation, DEFINED)).is_ok());
    let none = [&[0x9b, 0, 0, 0, 0][..], &[3]].concat();
    assert!(check(&cie("zPR", &none, DEFINED)).is_ok());
    let bad = [&[0x9b, 1, 0, 0, 0][..], &[3]].concat();
    assert_eq!(
        words(&cie("zPR", &bad, DEFINED)),
        "no personality routine is at 0x8013, at offset 0x12"
    );
    for encoding in [0xff, 0x08, 0x05, 0x21, 0x30, 0x40, 0x51, 0xd0] {
        let table = cie("zPR", &[encoding, 0, 0x40, 0, 0, 3], DEFINED);
        let wanted = format!(
            "encoding {encoding:#x} of the personality routine is unknown here, at offset 0x11"
        );
        assert_eq!(words(&table), wanted);
    }
    for encoding in [0xff, 0x01, 0x09, 0x50, 0x83, 0x33] {
        let table = cie("zR", &[encoding], DEFINED);
        let wanted = format!(
            "encoding {encoding:#x} of the address of code is unknown here, at offset 0x10"
        );
        assert_eq!(words(&table), wanted);
    }
}

#[test]
fn code_that_is_there_or_not() {
    let table = |address, size| fde(&cie("zR", &[3], DEFINED), address, size, &[0]);
    assert_eq!(check(&table(0x1000, 0x100)).unwrap().absent, 0);
    assert_eq!(check(&table(0x1100, 0)).unwrap().absent, 0);
    assert_eq!(check(&table(0, 0x100)).unwrap().absent, 1, "a function that was dropped");
    for (address, size) in [(0xfff, 1), (0x1000, 0x101), (0x1100, 1), (0x1000, u32::MAX)] {
        let wanted =
            format!("code at {address:#x}, {size:#x} bytes, is not of this load, at offset 0x1e");
        assert_eq!(words(&table(address, size)), wanted);
    }
    let signed = fde(&cie("zR", &[0x0b], DEFINED), 0x1000, u32::MAX, &[0]);
    assert!(words(&signed).starts_with("code at 0x1000, 0xffffffffffffffff bytes"));
}

#[test]
fn entries_and_their_ends() {
    assert_eq!(check(&[]).unwrap(), Summary::default());
    assert_eq!(check(&[0, 0, 0, 0, 1]).unwrap(), Summary::default(), "nobody reads on");
    assert_eq!(check(&[0, 0]).unwrap(), Summary::default());
    assert_eq!(words(&[0, 1]), "length is cut short, at offset 0x0");
    assert_eq!(
        words(&[3, 0, 0, 0, 0, 0, 0]),
        "an entry of 0x3 bytes where 0x3 are left, at offset 0x0"
    );
    assert_eq!(
        words(&[9, 0, 0, 0, 0, 0, 0]),
        "an entry of 0x9 bytes where 0x3 are left, at offset 0x0"
    );
    let long = [&[0xff; 4][..], &[8, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert!(words(&long).starts_with("length 0xffffffff stands for one of 64 bits"));
    let whole = fde(&cie("zR", &[3], DEFINED), 0x1000, 0x10, &[0]);
    assert_eq!(check(&whole).unwrap().size, whole.len() as u64);
    for distance in [1u32, 0x10, 0x19, 0x1b, 0x8000_0000, u32::MAX] {
        let mut table = whole.clone();
        table[0x1a..0x1e].copy_from_slice(&distance.to_le_bytes());
        let found = words(&table);
        assert!(found.starts_with("no CIE is") && found.ends_with("at offset 0x1a"), "{found}");
    }
    // behind its FDE: unwinders read that, too
    let mut table = entry((-0x0di32).cast_unsigned(), &[0, 0x10, 0, 0, 0x10, 0, 0, 0, 0]);
    table.extend(cie("zR", &[3], DEFINED));
    assert_eq!(check(&table).map(|summary| summary.fdes), Ok(1));
}

#[test]
fn augmentations() {
    for (letters, augmentation) in
        [("zR", &[3][..]), ("zRS", &[3]), ("zLR", &[0xff, 3]), ("z", &[]), ("zR", &[3, 0, 0])]
    {
        assert!(check(&cie(letters, augmentation, DEFINED)).is_ok(), "{letters}");
    }
    for (letters, letter, at) in [
        ("zSR", 'R', 0xb),
        ("zRR", 'R', 0xb),
        ("zRB", 'B', 0xb),
        ("zX", 'X', 0xa),
        ("R", 'R', 9),
        ("eh2", 'e', 9),
    ] {
        let wanted = format!("augmentation letter '{letter}' is unknown here, at offset {at:#x}");
        assert_eq!(words(&cie(letters, &[3, 3], DEFINED)), wanted);
    }
    let signed = cie("zRBG", &[3], &[0x0c, 31, 0, 0x2d]);
    let frames = EhFrame { bytes: &signed, address: 0x8000, machine: Machine::AARCH64 };
    assert!(frames.check(&Around).is_ok());
    assert!(words(&cie("zR", &[3], &[0x2d])).starts_with("unknown call frame instruction 0x2d"));
    // version 3 has no byte for the return address, 4 sizes
    let with = |bytes: &[u8]| check(&entry(0, &[bytes, DEFINED].concat()));
    assert!(with(&[3, b'z', 0, 1, 0x78, 0x90, 0, 0]).is_ok());
    assert!(with(&[4, b'z', 0, 8, 0, 1, 0x78, 16, 0]).is_ok());
    assert!(with(&[4, b'z', 0, 4, 0, 1, 0x78, 16, 0]).is_err());
    assert!(with(&[3, 0, 1, 0x78, 17]).unwrap_err().to_string().starts_with("register 17 of 17"));
    assert!(with(&[1, b'e', b'h', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x78, 16]).is_ok());
    for version in [0, 2, 5, 255] {
        let wanted = format!("a CIE of unknown version {version}, at offset 0x8");
        assert_eq!(with(&[version, 0, 1, 0x78, 16]).unwrap_err().to_string(), wanted);
    }
}

#[test]
fn instructions() {
    for good in [
        &[0x44, 0x0e, 16, 0x86, 2, 0x0a, 0x0d, 6, 0x0b, 0xc6][..],
        &[0x02, 4, 0x03, 4, 0, 0x04, 4, 0, 0, 0, 0x01, 1, 0x10, 0, 0],
        &[0x05, 129, 1, 1, 0x06, 20, 0x07, 16, 0x08, 3, 0x09, 3, 16],
        &[0x11, 3, 0x7f, 0x12, 7, 0x7f, 0x13, 0x7f, 0x14, 3, 1, 0x15, 3, 0x7f, 0x2e, 8, 0x2f, 3, 1],
        &[0x0f, 2, 0x77, 8, 0x10, 6, 2, 0x76, 0, 0x16, 16, 3, 0x77, 0x78, 0x06],
        &[0x0a, 0x0a, 0x0b],
    ] {
        assert_eq!(check(&program(good)).map(|it| it.fdes), Ok(1), "{good:x?}");
    }
    for (bad, wanted) in [
        (&[0x0b][..], "restores a state that was not remembered, at offset 0x27"),
        (&[0x0a, 0x0b, 0x0b], "restores a state that was not remembered, at offset 0x29"),
        (&[0x17], "unknown call frame instruction 0x17, at offset 0x27"),
        (&[0x1d, 0, 0, 0, 0, 0, 0, 0, 0], "unknown call frame instruction 0x1d, at offset 0x27"),
        (&[0x2c], "unknown call frame instruction 0x2c, at offset 0x27"),
        (&[0x3f], "unknown call frame instruction 0x3f, at offset 0x27"),
        (&[0x0c, 17, 0], "register 17 of 17, at offset 0x28"),
        (&[0x0d, 0x91, 1], "register 145 of 17, at offset 0x28"),
        (&[0x09, 3, 17], "register 17 of 17, at offset 0x29"),
        (&[0x05, 0x82, 1, 1], "register 130 of 130, at offset 0x28"),
        (&[0x0e], "operand is cut short, at offset 0x28"),
        (&[0x0e, 0x80], "operand is cut short, at offset 0x28"),
        (&[0x03, 1], "operand is cut short, at offset 0x28"),
        (&[0x0f, 3, 0x77, 8], "expression is cut short, at offset 0x29"),
        (&[0x0a; 65], "more than 64 states remembered, at offset 0x67"),
    ] {
        assert_eq!(words(&program(bad)), wanted, "{bad:x?}");
    }
    // no rule for the frame before the first call
    let none = |rest: &[u8]| fde(&cie("zR", &[3], &[]), 0x1000, 0x10, &[&[0], rest].concat());
    assert!(check(&none(&[0x0c, 7, 8, 0x44])).is_ok());
    assert!(words(&none(&[0x44, 0x0c, 7, 8])).starts_with("nothing says where the frame is"));
    let restored = none(&[0x0a, 0x0c, 7, 8, 0x44, 0x0a, 0x0b, 0x44, 0x0b, 0x44]);
    assert!(words(&restored).starts_with("nothing says where the frame is, at offset 0x2b"));
}

/// What is passed over quickly is judged as all else: operands of one byte, and the same ones in two.
#[test]
fn operands_of_one_byte_and_of_two() {
    let judge = |before: &[u8], opcode: u8, operands: &[u8], is_long: bool| {
        let write = |operand: &u8| if is_long { vec![operand | 0x80, 0] } else { vec![*operand] };
        let operands = operands.iter().flat_map(write);
        let instructions: Vec<u8> =
            before.iter().copied().chain([opcode]).chain(operands).chain([0x41, 0x2d]).collect();
        let table = fde(&cie("zR", &[3], &[]), 0x1000, 0x10, &[&[0], &instructions[..]].concat());
        [Machine::X86_64, Machine::AARCH64].map(|machine| {
            let frames = EhFrame { bytes: &table, address: 0x8000, machine };
            frames.check(&Around).map(|it| it.fdes).map_err(|error| error.kind)
        })
    };
    let mut kinds = [0; 2];
    for before in [&[][..], &[0x0c, 7, 8], &[0x0a, 0x0c, 7, 8, 0x0b]] {
        for operand in [0, 16, 17, 34, 95, 96, 127] {
            for (opcode, operands) in [
                (0x0c, &[operand, 3][..]),
                (0x0d, &[operand]),
                (0x0e, &[operand]),
                (0x80, &[operand]),
                (0xa2, &[operand]),
            ] {
                let short = judge(before, opcode, operands, false);
                assert_eq!(
                    short,
                    judge(before, opcode, operands, true),
                    "{opcode:x} {operands:x?}"
                );
                for found in short {
                    kinds[usize::from(found.is_ok())] += 1;
                }
            }
        }
    }
    assert!(kinds.iter().all(|count| *count > 20), "{kinds:?}");
}

#[test]
fn expressions() {
    let rule = |block: &[u8]| {
        check(&program(&[&[0x16, 16, block.len() as u8], block].concat())).map(|_| ())
    };
    for good in [
        &[][..],
        // lazy binding's frames on x86-64
        &[0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22],
        &[0x12, 0x31, 0x1b, 0x06, 0x94, 4, 0x23, 8],
        &[0x31, 0x28, 1, 0, 0x96, 0x96],
        &[0x2f, 1, 0, 0x22, 0x96],
        // one way or the other
        &[0x31, 0x28, 4, 0, 0x32, 0x2f, 1, 0, 0x33],
        &[0x31, 0x32, 0x15, 0, 0x17, 0x16, 0x14, 0x13],
        &[0x03, 1, 2, 3, 4, 5, 6, 7, 8, 0xf1, 0x1b, 1, 2, 3, 4, 0x90, 16, 0x92, 3, 0],
    ] {
        assert_eq!(rule(good), Ok(()), "{good:x?}");
    }
    for (bad, wanted) in [
        (&[0x22][..], "an expression cannot go on with 1 values on its stack"),
        (&[0x13], "an expression cannot go on with 0 values on its stack"),
        (&[0x13, 0x06], "an expression cannot go on with 0 values on its stack"),
        (&[0x15, 0], "an expression cannot go on with 1 values on its stack"),
        (&[0x30; 64], "an expression cannot go on with 64 values on its stack"),
        (&[0x2f, 0xfd, 0xff], "an expression jumps by -3"),
        (&[0x2f, 1, 0], "an expression jumps by 1"),
        (&[0x2f, 1, 0, 0x0a, 1, 2], "an expression jumps by 0"),
        (&[0x31, 0x1a, 0x30, 0x1b], "an expression may divide by 0"),
        (&[0x9c], "unknown operation 0x9c"),
        (&[0x94, 3], "unknown operation 0x94"),
        (&[0x61], "register 17 of 17"),
        (&[0x90, 0x40], "register 64 of 17"),
        (&[0xf1, 0x9b, 0, 0, 0, 0], "encoding 0x9b of the address is unknown here"),
        (&[0x0a, 1], "operand is cut short"),
    ] {
        let found = rule(bad).unwrap_err().to_string();
        assert!(found.starts_with(wanted), "{bad:x?}: {found}");
    }
    assert!(check(&program(&[0x0f, 0])).is_err(), "nothing is left on the stack");
}

/// CIEs that take turns are read again and again: up to a limit.
#[test]
fn work_is_bounded() {
    let mut table = Vec::new();
    let big = cie("zR", &[3], &[DEFINED, &[0; 0x1000]].concat());
    let mut cies = Vec::new();
    for _ in 0..9 {
        cies.push(table.len());
        table.extend(&big);
    }
    for round in 0..20_000 {
        let distance = table.len() + 4 - cies[round % 9];
        table.extend(entry(distance as u32, &[0, 0x10, 0, 0, 0, 0, 0, 0, 0]));
    }
    assert!(words(&table).starts_with("too many CIEs take turns"));
}

/// Every truncation, and every bit turned, is an answer.
#[test]
fn damage_is_no_panic() {
    let table = fde(&cie("zR", &[3], DEFINED), 0x1000, 0x10, &[0, 0x44, 0x0f, 2, 0x77, 8]);
    for end in 0..table.len() {
        let _ = check(&table[..end]);
    }
    for bit in 0..table.len() * 8 {
        let mut table = table.clone();
        table[bit / 8] ^= 1 << (bit % 8);
        let _ = check(&table);
    }
}
