//! Bytes to callable and back: hoist, elf_loader, and the same work in straight-line code without checks.

use criterion::{Criterion, criterion_group, criterion_main};
use elf_core::{Name, raw64};
use exec_host::External;
use exec_host::symbols::from_fn;
use exec_host::{Loader, Module};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use zerocopy::{FromBytes, LE};

type Shdr = raw64::Shdr<LE>;
type Sym = raw64::Sym<LE>;
type Rela = raw64::Rela<LE>;

fn rows<'a, T: FromBytes + zerocopy::Immutable + zerocopy::KnownLayout>(
    bytes: &'a [u8],
    section: &Shdr,
) -> &'a [T] {
    let data = &bytes[section.sh_offset.get() as usize..][..section.sh_size.get() as usize];
    <[T]>::ref_from_bytes(data).expect("a table")
}

/// The definitions that are not local by their names, each once: who calls a function asks for it by name, and two of a name are an
/// error.
fn by_name(symbols: &[Sym], first: usize, strings: &[u8]) -> Vec<u64> {
    let mut table = vec![0u64; (symbols.len() * 2).next_power_of_two()];
    let last = table.len() - 1;
    let name = |index: usize| {
        let start = &strings[symbols[index].st_name.get() as usize..];
        &start[..start.iter().position(|byte| *byte == 0).expect("an end")]
    };
    for (index, symbol) in symbols.iter().enumerate().skip(first) {
        if symbol.st_shndx.get() == 0 {
            continue;
        }
        let own = name(index);
        let (words, tail) = own.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        let all = words.chain(tail.iter().map(|byte| u64::from(*byte)));
        let hash = all.fold(own.len() as u64, |hash, word| {
            (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
        });
        // half of it tells most other names apart, so that they are not read
        let (mut at, tag) = ((hash >> 40) as usize & last, hash << 32);
        while table[at] != 0 {
            let is_alike = table[at] >> 32 == tag >> 32;
            assert!(!is_alike || name(table[at] as u32 as usize) != own, "two definitions");
            at = (at + 1) & last;
        }
        table[at] = tag | index as u64;
    }
    table
}

/// Parse, one map, copy, patch, protect: for objects that need nothing but PC32, PLT32, GOTPCREL and 64.
///
/// # Safety
/// The object is one of those.
unsafe fn floor(bytes: &[u8]) -> u64 {
    const PAGE: u64 = 4096;
    let (header, _) = raw64::Ehdr::<LE>::ref_from_prefix(bytes).expect("a file");
    let table = &bytes[header.e_shoff.get() as usize..];
    let (first, _) = Shdr::ref_from_prefix(table).expect("sections");
    let count = if header.e_shnum.get() == 0 {
        first.sh_size.get() as usize
    } else {
        header.e_shnum.get().into()
    };
    let (sections, _) = <[Shdr]>::ref_from_prefix_with_elems(table, count).expect("sections");

    // code, read-only, writable, zero
    let mut sizes = [0u64; 4];
    let mut places = vec![(usize::MAX, 0u64); count];
    let (mut symbols, mut got): (&[Sym], Vec<u32>) = (&[], Vec::new());
    let mut names = Vec::new();
    for (section, place) in sections.iter().zip(&mut places) {
        let flags = section.sh_flags.get();
        if section.sh_type.get() == 2 {
            symbols = rows(bytes, section);
            let strings = rows(bytes, &sections[section.sh_link.get() as usize]);
            names = by_name(symbols, section.sh_info.get() as usize, strings);
        }
        if flags & 2 != 0 {
            let group = match (flags & 4 != 0, flags & 1 != 0, section.sh_type.get() == 8) {
                (true, ..) => 0,
                (_, false, _) => 1,
                (_, _, false) => 2,
                _ => 3,
            };
            *place = (group, sizes[group].next_multiple_of(section.sh_addralign.get().max(1)));
            sizes[group] = place.1 + section.sh_size.get();
        }
    }
    // GOT entries: behind the read-only data
    let mut entries = vec![0u32; symbols.len()];
    for section in sections {
        if section.sh_type.get() == 4 && places[section.sh_info.get() as usize].0 < 4 {
            for record in rows::<Rela>(bytes, section) {
                let info = record.r_info.get();
                if matches!(info as u32, 9 | 41 | 42) && entries[(info >> 32) as usize] == 0 {
                    got.push((info >> 32) as u32);
                    entries[(info >> 32) as usize] = got.len() as u32;
                }
            }
        }
    }
    let got_offset = sizes[1].next_multiple_of(8);
    sizes[1] = got_offset + 8 * got.len() as u64;
    let mut starts = [0u64; 4];
    let mut end = 0u64;
    for group in 0..4 {
        starts[group] =
            if group == 3 { end.next_multiple_of(64) } else { end.next_multiple_of(PAGE) };
        end = starts[group] + sizes[group];
    }
    // SAFETY: fresh memory, used below within its bounds.
    unsafe {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        let memory = mmap_anonymous(core::ptr::null_mut(), end as usize, flags, MapFlags::PRIVATE)
            .expect("memory");
        let memory = memory.cast::<u8>();
        let base = memory as u64;
        let address = |section: usize| starts[places[section].0] + places[section].1 + base;
        for (index, section) in sections.iter().enumerate() {
            if places[index].0 < 3 {
                let from = bytes.as_ptr().add(section.sh_offset.get() as usize);
                from.copy_to_nonoverlapping(
                    address(index) as *mut u8,
                    section.sh_size.get() as usize,
                );
            }
        }
        let values: Vec<u64> = symbols
            .iter()
            .map(|symbol| match symbol.st_shndx.get() {
                0 | 0xff00.. => 0,
                section if places[usize::from(section)].0 < 4 => {
                    address(section.into()) + symbol.st_value.get()
                }
                _ => 0,
            })
            .collect();
        for (index, &symbol) in got.iter().enumerate() {
            ((base + starts[1] + got_offset + 8 * index as u64) as *mut u64)
                .write_unaligned(values[symbol as usize]);
        }
        for section in sections {
            if section.sh_type.get() != 4 || places[section.sh_info.get() as usize].0 >= 4 {
                continue;
            }
            let start = address(section.sh_info.get() as usize);
            for record in rows::<Rela>(bytes, section) {
                let place = start + record.r_offset.get();
                let (symbol, addend) =
                    ((record.r_info.get() >> 32) as usize, record.r_addend.get() as u64);
                match record.r_info.get() as u32 {
                    1 => (place as *mut u64).write_unaligned(values[symbol].wrapping_add(addend)),
                    2 | 4 => {
                        let value = values[symbol].wrapping_add(addend).wrapping_sub(place);
                        (place as *mut u32).write_unaligned(value as u32);
                    }
                    9 | 41 | 42 => {
                        let entry =
                            base + starts[1] + got_offset + 8 * u64::from(entries[symbol] - 1);
                        (place as *mut u32)
                            .write_unaligned(entry.wrapping_add(addend).wrapping_sub(place) as u32);
                    }
                    other => panic!("no floor for type {other}"),
                }
            }
        }
        let protect = |group: usize, flags| {
            if sizes[group] > 0 {
                mprotect(memory.add(starts[group] as usize).cast(), sizes[group] as usize, flags)
                    .expect("permissions");
            }
        };
        protect(0, MprotectFlags::READ | MprotectFlags::EXEC);
        protect(1, MprotectFlags::READ);
        black_box((base, names));
        munmap(memory.cast(), end as usize).expect("our memory");
    }
    end
}

fn hoist(bytes: &[u8]) -> u64 {
    Module::load([bytes], &mut nobody).expect("a module").extent().1
}

/// No symbols but the object's own.
fn nobody(_: Name<'_>) -> Option<External> {
    None
}

fn elf_loader(bytes: &[u8]) -> Result<(), elf_loader::Error> {
    use elf_loader::{AddressSpaceId, Domain, Loader, Relocator};
    let raw = Loader::new().run(Domain::native(AddressSpaceId::PROCESS)).load_object(bytes)?;
    black_box(&Relocator::new().run(raw).relocate()?);
    Ok(())
}

/// The least of what `llvm-jitlink` says it took to add and link an object, in five runs; `None` where there is none.
fn jitlink(object: &Path, entry: &str) -> Option<f64> {
    let seconds = |line: &str| line.split("(100.0%)").nth(3)?.trim().parse::<f64>().ok();
    let measure = |_| {
        let mut command = Command::new("llvm-jitlink-19");
        command.args(["-noexec", "-show-times", "-entry", entry]).arg(object);
        let output = command.output().ok()?;
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        text.lines().find(|line| line.ends_with(" Total")).and_then(seconds)
    };
    (0..5).filter_map(measure).min_by(f64::total_cmp)
}

fn load(criterion: &mut Criterion) {
    let made = |what, count| {
        let path = benches::generated(what, count).expect("an object");
        (format!("{what}-{count}"), std::fs::read(&path).expect("an object"), Some(path))
    };
    let files = [
        (String::from("small"), benches::SMALL.to_vec(), None),
        made("functions", 20_000),
        made("sections", 40_000),
        made("got", 200_000),
    ];
    for (name, bytes, path) in files {
        let bytes = bytes.as_slice();
        let mut group = criterion.benchmark_group(format!("load/{name}"));
        if path.is_some() {
            group.sample_size(20);
        }
        // SAFETY: the objects hold only what the floor knows.
        group
            .bench_function("floor", |bencher| bencher.iter(|| unsafe { floor(black_box(bytes)) }));
        group.bench_function("hoist", |bencher| bencher.iter(|| hoist(black_box(bytes))));
        let loader = Loader::new().relax(false);
        group.bench_function("hoist-no-relax", |bencher| {
            bencher.iter(|| {
                loader.load([black_box(bytes)], from_fn(nobody)).expect("a module").extent()
            })
        });
        match elf_loader(bytes) {
            Ok(()) => {
                group.bench_function("elf_loader", |bencher| {
                    bencher.iter(|| elf_loader(black_box(bytes)))
                });
            }
            Err(error) => println!("skipped: load/{name}/elf_loader: {error}"),
        }
        let entry = if name.starts_with("functions") { "function_0" } else { "f0" };
        let entry = if name.starts_with("got") { "v0" } else { entry };
        match path.and_then(|path| jitlink(&path, entry)) {
            Some(seconds) => println!("load/{name}/llvm-jitlink: {:.1} ms", seconds * 1e3),
            None => println!("skipped: load/{name}/llvm-jitlink"),
        }
    }
    let mut group = criterion.benchmark_group("load/small-10000-in-turn");
    group.sample_size(10);
    group.bench_function("hoist", |bencher| {
        bencher.iter(|| {
            for _ in 0..10_000 {
                black_box(hoist(black_box(benches::SMALL)));
            }
        })
    });
}

criterion_group!(benches, load);
criterion_main!(benches);
