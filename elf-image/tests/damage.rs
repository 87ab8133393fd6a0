//! Damaged files: every truncation of each linked fixture, and ten thousand changes of each. A loader says what is wrong, or has an image
//! of the size that it said.
#![cfg(test)]

use elf_core::names::{EM_386, EM_AARCH64, EM_ARM, EM_LOONGARCH, EM_RISCV, EM_X86_64};
use elf_core::{Arch, File, Query, Resolve};
use elf_image::{AddressKind, Error, Image, ImageSymbols, OwnSymbols};
use reloc_aarch64::Aarch64;
use reloc_arm::Arm;
use reloc_loongarch::LoongArch64;
use reloc_riscv::{Rv32, Rv64};
use reloc_x86::{I386, X86_64};
use std::path::Path;

const BASE: u64 = 0x7000_0000;
const IMPORTED: u64 = 0x1234_5678;
/// Large images are written in part, which is an error of its own.
const MOST: usize = 1 << 20;

/// The executables and shared objects of `fixtures/`, by name.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let is_linked = |name: &str| {
        (name.starts_with("lib") && name.ends_with(".so"))
            || ["copied", "exit"].contains(&name)
            || (name.starts_with("static-pie") && !name.contains('.'))
    };
    let entries = |folder: &Path| {
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path())
    };
    let files = entries(&root).flat_map(|folder| entries(&folder));
    let files = files.filter(|path| is_linked(&path.file_name().unwrap().to_string_lossy()));
    let mut files: Vec<_> = files
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    assert!(files.len() >= 35, "{} files", files.len());
    files
}

/// What an image defines itself, and one address for all else; copies of variables are as they are.
struct All<'s, A>(OwnSymbols<'s, A>);

impl<A: Arch> Resolve for All<'_, A> {
    fn resolve(&self, query: &Query) -> Option<u64> {
        self.0.resolve(query).or(Some(IMPORTED))
    }
}

impl<A: Arch> ImageSymbols for All<'_, A> {
    fn copy(&self, _symbol: u32, _to: &mut [u8]) -> bool {
        true
    }
}

fn relocate<A: Arch>(image: &Image<'_>, memory: &mut [u8], base: u64) -> Result<(), Error> {
    image.relocate::<A>(memory, base, &All(image.own_symbols::<A>(base)?))
}

/// Asks for all that a file says, and makes an image of it.
fn load(bytes: &[u8], memory: &mut [u8]) -> Result<(), Error> {
    let image = Image::parse(File::parse(bytes)?, AddressKind::Virtual)?;
    if let Ok(Some(exports)) = image.exports() {
        for reference in (0..8).filter_map(|index| exports.reference(index).ok()) {
            let _ = exports.find(reference);
        }
    }
    let _ = (image.facts(), image.tls(), image.feature_bits(), image.eh_frame_hdr());
    let _ = image.pages(0x1000).map(Iterator::count);
    let size = image.size().min(memory.len() as u64);
    let memory = &mut memory[..usize::try_from(size).unwrap()];
    image.write(memory)?;
    let base = if image.is_fixed() { image.start() } else { BASE.wrapping_add(image.start()) };
    match (image.file().header().machine, image.file().encoding().is_64()) {
        (EM_X86_64, true) => relocate::<X86_64>(&image, memory, base),
        (EM_386, _) => relocate::<I386>(&image, memory, base),
        (EM_AARCH64, _) => relocate::<Aarch64>(&image, memory, base),
        (EM_ARM, _) => relocate::<Arm>(&image, memory, base),
        (EM_RISCV, true) => relocate::<Rv64>(&image, memory, base),
        (EM_RISCV, false) => relocate::<Rv32>(&image, memory, base),
        (EM_LOONGARCH, _) => relocate::<LoongArch64>(&image, memory, base),
        // machines of which the tables alone are read
        _ => Ok(()),
    }
}

/// Does `work` with each fixture, on several processors.
fn each<T: Send>(work: impl Fn(&str, &[u8]) -> T + Sync) -> Vec<T> {
    let files = fixtures();
    let work = |files: &[(String, Vec<u8>)]| -> Vec<T> {
        files.iter().map(|(name, bytes)| work(name, bytes)).collect()
    };
    std::thread::scope(|scope| {
        let parts = files.chunks(files.len().div_ceil(4));
        let threads: Vec<_> = parts.map(|part| scope.spawn(|| work(part))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn every_truncation() {
    each(|name, bytes| {
        let mut memory = vec![0; MOST];
        for end in 0..bytes.len() {
            let _ = load(&bytes[..end], &mut memory);
        }
        load(bytes, &mut memory).unwrap_or_else(|error| panic!("{name}: {error}"));
    });
}

#[test]
fn ten_thousand_changes() {
    // emulators know the name under which programs usually ask for themselves
    let emulator = std::fs::read_link("/proc/thread-self/exe");
    let is_emulated = emulator.is_ok_and(|path| path.to_string_lossy().contains("qemu"));
    let changes = if is_emulated { 1000 } else { 10_000 };
    let counts = each(|name, bytes| {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let (mut memory, mut loaded) = (vec![0; MOST], 0);
        for _ in 0..changes {
            let mut changed = bytes.to_vec();
            for _ in 0..1 + next() % 3 {
                let at = (next() % changed.len() as u64) as usize;
                changed[at] = next() as u8;
            }
            match load(&changed, &mut memory) {
                Ok(()) => loaded += 1,
                Err(error) => assert!(!error.to_string().is_empty(), "{name}"),
            }
        }
        (name.to_owned(), loaded)
    });
    for (name, loaded) in counts {
        let some = changes / 10..changes;
        assert!(some.contains(&loaded), "{name}: {loaded} of {changes} loaded");
    }
}
