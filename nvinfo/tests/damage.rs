//! Damaged cubins: every truncation of every fixture, and changes of bytes. Whatever comes of it, no panic.
//!
//! `DAMAGE=10000 cargo test --release` makes so many changes of each fixture; else it is 1000.
#![cfg(test)]

mod cubins;

use nvinfo::{Cubin, CubinNote, Edge, Function, Node, Patch, eiattr, occupancy};
use std::fmt::Write;

/// Reads everything there is, and plans every change; the text makes sure that values are made.
fn everything(bytes: &[u8], out: &mut String) {
    out.clear();
    let cubin = match Cubin::parse(bytes) {
        Ok(cubin) => cubin,
        Err(error) => return write!(out, "{error}").unwrap(),
    };
    let _ = write!(out, "{} {:?}", cubin.target(), cubin.target());
    for row in cubin.attributes().into_iter().flatten().chain(cubin.compat().into_iter().flatten())
    {
        match row {
            Ok(row) => {
                let _ = write!(out, "{:?} {:?} {:?}", row.name(), row.payload(), row.patch(7));
                let _ = row.payload().code_offsets().count();
            }
            Err(error) => write!(out, "{error}").unwrap(),
        }
    }
    for note in cubin.notes() {
        match note {
            Ok(CubinNote::Tool(tool)) => write!(out, "{tool:?} {:?}", tool.architecture()).unwrap(),
            other => write!(out, "{other:?}").unwrap(),
        }
    }
    let _ = write!(out, "{} {}", cubin.undefined().count(), cubin.constant_banks().count());
    for function in cubin.functions() {
        one(&function, out);
    }
    let Ok((nodes, edges)) = cubin.call_tree_size() else { return };
    let (mut nodes, mut edges) = (vec![Node::EMPTY; nodes], vec![Edge::EMPTY; edges]);
    if let Ok(mut tree) = cubin.call_tree(&mut nodes, &mut edges) {
        for function in cubin.functions() {
            let stack = tree.stack(function.index());
            let mut reached = 0;
            tree.reach(function.index(), |_| reached += 1);
            let _ = write!(out, "{stack:?} {reached}");
        }
    }
}

fn one(function: &Function<'_>, out: &mut String) {
    let _ = write!(out, "{} {:?}", function.name(), function.resources());
    if let Ok(needs) = function.resources() {
        let demand = needs.demand(needs.threads().unwrap_or(256), 1024);
        let sm = function.cubin().target().sm.unwrap_or(0);
        let _ = write!(out, "{:?}", occupancy::limits(sm).map(|limits| limits.occupancy(&demand)));
    }
    let _ = write!(out, "{:?}", function.code().map(<[u8]>::len));
    if let Ok(code) = function.code() {
        let shifted = code.get(16..).unwrap_or_default();
        let _ = write!(out, "{:?}", function.check_code(shifted, |_| ()));
    }
    let _ = write!(
        out,
        "{}",
        function.parameters().into_iter().flatten().filter(Result::is_ok).count()
    );
    let _ = write!(out, "{} {}", function.subroutines().count(), function.constant_banks().count());
    let _ = write!(out, "{}", function.callees().into_iter().flatten().count());
    let patches: Vec<Patch> = function.patch_registers(99).into_iter().flatten().collect();
    let _ = write!(out, "{patches:?} {:?}", function.patch_max_threads([1, 2, 3]));
    let _ = write!(out, "{:?}", function.patch_symbol_attribute(eiattr::MIN_STACK_SIZE, 9));
}

/// How many times fewer cases there are on machines that are emulated.
const fn fewer() -> usize {
    if cfg!(target_arch = "x86_64") { 1 } else { 20 }
}

#[test]
fn every_truncation() {
    let mut out = String::new();
    for (number, (_, bytes)) in cubins::all().iter().enumerate() {
        for end in (number % fewer()..bytes.len()).step_by(fewer()) {
            everything(&bytes[..end], &mut out);
        }
    }
}

#[test]
fn changed_bytes() {
    let asked = std::env::var("DAMAGE").ok().and_then(|text| text.parse().ok());
    let changes = asked.unwrap_or(1000 / fewer());
    let mut out = String::new();
    let mut seed = 42u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize
    };
    for (_, bytes) in cubins::all() {
        // tables and attributes are hit as often as all the rest
        let info = info_places(&bytes);
        for _ in 0..changes {
            let mut damaged = bytes.clone();
            for _ in 0..random() % 4 + 1 {
                let at = if random() % 2 == 0 {
                    random() % bytes.len()
                } else {
                    info[random() % info.len()]
                };
                damaged[at] = match random() % 4 {
                    0 => 0,
                    1 => 0xff,
                    2 => damaged[at] ^ 1 << (random() % 8),
                    _ => random() as u8,
                };
            }
            everything(&damaged, &mut out);
        }
    }
}

/// Offsets of the bytes of headers, symbols and attributes.
fn info_places(bytes: &[u8]) -> Vec<usize> {
    let cubin = Cubin::parse(bytes).unwrap();
    let file = cubin.file();
    let mut places: Vec<usize> = (0..64).collect();
    let tables = file
        .sections()
        .iter()
        .filter(|section| section.r#type >= 0x7000_0000 || section.r#type == 2);
    for section in tables {
        let start = section.offset as usize;
        places.extend((start..start + section.file_size() as usize).filter(|at| *at < bytes.len()));
    }
    let start = file.header().section_headers as usize;
    places.extend(
        start..start + file.sections().len() * usize::from(file.header().section_header_size),
    );
    places
}
