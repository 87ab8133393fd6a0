//! Images that are written in parts.
#![cfg(test)]
#![cfg(feature = "parts")]

mod support;

use elf_core::Arch;
use elf_layout::{ErrorKind, Layout, Options};
use reloc_x86::x86_64::*;
use support::{BASE, CODE, Object, READ, WRITE, laid_out, plan, process};

/// Functions that call the next one and read a datum, in a section each, behind constants; data that point to functions.
fn functions(count: u32) -> Object {
    let mut object = Object::new();
    let far = object.undefined("far");
    let code: Vec<_> = (0..count)
        .map(|number| object.section(".text", CODE, 16, &vec![0x90; 16 + number as usize % 40]))
        .collect();
    let constants = object.section(".rodata", READ, 64, &[3; 1000]);
    let data = object.section(".data", WRITE, 8, &[1; 4000]);
    let symbols: Vec<_> =
        code.iter().zip(0u32..).map(|(at, n)| object.global(&format!("f{n}"), *at, 4)).collect();
    for (number, (section, _)) in code.iter().zip(&symbols).enumerate() {
        let next = symbols[(number + 1) % symbols.len()];
        object.relocation(*section, 4, R_X86_64_PLT32, next, -4);
        object.relocation(*section, 8, R_X86_64_GOTPCREL, far, -4);
        if number < 100 {
            object.relocation(data, number as u64 * 8, R_X86_64_64, next, 2);
            object.relocation(constants, number as u64 * 8, R_X86_64_PC32, next, 0);
        }
    }
    object.zeros(".bss", WRITE, 32, 0x3000);
    object
}

/// Where the parts of an image start, and the image that they make, the last one first.
fn in_parts<A: Arch>(layout: &Layout<'_, '_, A>, count: usize) -> (Vec<u64>, Vec<u8>) {
    let mut image = vec![0; layout.size() as usize];
    let parts: Vec<_> = layout.parts(&mut image, BASE, count).unwrap().collect();
    let starts = parts.iter().map(|part| part.offset()).collect();
    for part in parts.into_iter().rev() {
        layout.write_part(part).unwrap();
    }
    (starts, image)
}

#[test]
fn parts_are_the_image_and_about_as_large() {
    laid_out(&[&functions(300)], |layout| {
        let mut whole = vec![0; layout.size() as usize];
        layout.write_zeroed(&mut whole, BASE).unwrap();
        // code is 10,700 bytes with its padding, all that is not zero 15,700
        for count in 1..9 {
            let (starts, image) = in_parts(layout, count);
            assert_eq!(starts.len(), count);
            assert!(image == whole, "{count}");
        }
        let (starts, _) = in_parts(layout, 2);
        assert!((7_000..9_000).contains(&starts[1]), "{starts:?}");
        assert_eq!(in_parts(layout, 0).0, [0], "there is always one");
    });
}

/// A share that is as large as a segment ends with it, a larger one goes on in the next.
#[test]
fn shares_end_with_a_segment_or_in_the_next() {
    let object = |code: usize, data: usize| {
        let mut object = Object::new();
        object.section(".text", CODE, 64, &vec![0x90; code]);
        for _ in 0..data / 64 {
            object.section(".data", WRITE, 64, &[1; 64]);
        }
        object
    };
    laid_out(&[&object(256, 256)], |layout| assert_eq!(in_parts(layout, 2).0, [0, 256]));
    laid_out(&[&object(64, 448)], |layout| {
        let (starts, _) = in_parts(layout, 2);
        let data = layout.segments().map(|one| one.offset).max().unwrap();
        assert_eq!(starts, [0, data + 192]);
    });
}

#[test]
fn objects_have_sections_in_several_parts() {
    let objects = [functions(40).build(), {
        let mut object = Object::new();
        let text = object.section(".text", CODE, 16, &[0x90; 3000]);
        let f0 = object.undefined("f0");
        object.relocation(text, 100, R_X86_64_PC32, f0, -4);
        object.build()
    }];
    plan(&objects, Options::default(), &mut process, |layout| {
        let layout = layout.unwrap();
        let mut whole = vec![0; layout.size() as usize];
        layout.write_zeroed(&mut whole, BASE).unwrap();
        for count in 2..6 {
            let (starts, image) = in_parts(&layout, count);
            let first = image.iter().zip(&whole).position(|(one, other)| one != other);
            assert_eq!(first, None, "{count}: {starts:?}");
        }
    });
}

/// Segments that somebody has moved may stand in any order: then there is one part.
#[test]
fn segments_in_another_order_are_one_part() {
    let options = Options { spread: 0x20_0000, ..Options::default() };
    plan(&[functions(300).build()], options, &mut process, |layout| {
        let mut layout = layout.unwrap();
        let mut place = 0x10_0000;
        let down = |_| {
            place -= 0x1_0000;
            Some(place)
        };
        layout.place_segments(down).unwrap();
        let mut whole = vec![0; layout.size() as usize];
        layout.write_zeroed(&mut whole, BASE).unwrap();
        let (starts, image) = in_parts(&layout, 4);
        assert_eq!(starts, [0]);
        assert!(image == whole);
    });
}

/// What is wrong with the image as a whole is said before there are parts; a relocation fails in the part that it is in.
#[test]
fn errors() {
    laid_out(&[&functions(300)], |layout| {
        let mut short = vec![0; layout.size() as usize - 1];
        let error = layout.parts(&mut short, BASE, 2).err().unwrap();
        assert!(matches!(error.kind, ErrorKind::Image { .. }));
        let mut image = vec![0; layout.size() as usize];
        let error = layout.parts(&mut image, BASE + 1, 2).err().unwrap();
        assert!(matches!(error.kind, ErrorKind::Base { .. }));
    });
    let mut object = functions(300);
    let text = object.section(".text", CODE, 16, &[0x90; 64]);
    let far = object.undefined("far_data");
    object.relocation(text, 8, R_X86_64_PC32, far, 0);
    laid_out(&[&object], |layout| {
        let mut image = vec![0; layout.size() as usize];
        let whole = layout.write_zeroed(&mut image.clone(), BASE).unwrap_err();
        let parts = layout.parts(&mut image, BASE, 3).unwrap();
        let results: Vec<_> = parts.map(|part| layout.write_part(part)).collect();
        let failed: Vec<_> = results.iter().filter(|one| one.is_err()).collect();
        assert_eq!(failed, [&Err(whole)]);
    });
}
