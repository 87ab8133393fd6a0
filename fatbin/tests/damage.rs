//! Damaged files: no panic, no unbounded memory, whatever the bytes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use fatbin::{
    Container, Region, Search, descriptor, device_image, host_entries, module_ids, target_images,
    walk, wrappers,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is allocated, and the most that ever was.
struct Counting {
    now: AtomicUsize,
    most: AtomicUsize,
}

// SAFETY: every call goes on to `System` as it came; the counters touch no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = self.now.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        self.most.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller keeps the rules of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.now.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the rules of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting { now: AtomicUsize::new(0), most: AtomicUsize::new(0) };

/// What a caller allows an image to unpack to.
const LIMIT: usize = 1 << 20;

/// Reads everything that can be read. The number of errors.
fn everything(bytes: &[u8]) -> usize {
    let mut errors = 0;
    let mut count = |failed: bool| errors += usize::from(failed);
    for found in walk(bytes, Search::Always) {
        match found.map(|found| found.container) {
            Err(error) => count(!error.to_string().is_empty()),
            Ok(Container::Region(region)) => region.entries().for_each(|entry| match entry {
                Err(error) => count(!error.to_string().is_empty()),
                Ok(entry) => {
                    let unpacked = entry.unpack(LIMIT);
                    count(unpacked.is_err());
                    match entry.parts() {
                        Err(_) => count(true),
                        Ok(parts) => {
                            for part in parts.iter() {
                                count(
                                    unpacked
                                        .as_ref()
                                        .is_ok_and(|unpacked| part.of(unpacked).is_none()),
                                );
                            }
                        }
                    }
                    let again = fatbin::region(&[entry.into()]).unwrap();
                    assert!(Region::parse(&*again).unwrap().entries().next().unwrap().is_ok());
                }
            }),
            Ok(Container::Offload(binary)) => {
                for image in binary.images() {
                    count(image.map(|image| image.strings().count()).is_err());
                }
                if let Ok(Some(size)) = binary.inflate_size(LIMIT) {
                    count(binary.inflate_into(&mut vec![0; size]).is_err());
                }
            }
            Ok(Container::Bundle(bundle)) => count(bundle.entries().any(|entry| entry.is_err())),
            Ok(Container::CompressedBundle(bundle)) => match bundle.unpack_size(LIMIT) {
                Ok(size) => count(bundle.unpack_into(&mut vec![0; size]).is_err()),
                Err(_) => count(true),
            },
            Ok(Container::Cubin(span)) => count(fatbin::CubinHeader::parse(span.bytes()).is_err()),
            Ok(_) => {}
        }
    }
    if let Ok(file) = elf_core::File::parse(bytes) {
        for wrapper in wrappers(&file) {
            count(wrapper.is_err_and(|error| !error.to_string().is_empty()));
        }
        count(module_ids(&file).is_err());
        host_entries(&file).for_each(|entry| count(entry.is_err()));
        let images = target_images(&file).into_iter().flatten();
        images.for_each(|image| count(image.is_err()));
        let image = walk(bytes, Search::Never).find_map(|found| match found.ok()?.container {
            Container::Offload(binary) => binary.images().next()?.ok(),
            _ => None,
        });
        if let Some(Ok(Some(row))) = image.map(|image| device_image(&file, image.payload())) {
            count(descriptor(&file, &row).is_err());
        }
    }
    errors
}

fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = format!("{}/../fixtures/fatbin", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let names = entries.filter(|path| {
        path.extension().is_none_or(|end| !["md", "cu", "c", "s"].iter().any(|no| end == *no))
    });
    let mut fixtures: Vec<_> = names
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect();
    fixtures.sort();
    fixtures
}

#[test]
fn damaged_files() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 20);
    let mut runs = 0_u32;
    for (name, bytes) in &fixtures {
        let good = everything(bytes);
        let expected = usize::from(name.starts_with("lto.") || name == "thin.a"); // obfuscated; members elsewhere
        assert_eq!(good, expected, "{name}");
        // Every truncation; of larger files every one of the first and the last kilobytes, and some between.
        let ends = (0..bytes.len())
            .filter(|end| *end < 2048 || *end + 1024 > bytes.len() || end % 61 == 0);
        for end in ends {
            everything(&bytes[..end]);
            runs += 1;
        }
        // Byte changes: a small generator, so that a failure can be repeated.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut damaged = bytes.clone();
        for _ in 0..1000 {
            let changes = 1 + random() % 3;
            let places: Vec<usize> = (0..changes)
                .map(|_| {
                    // Headers are near the start: half of the changes go there.
                    let span = if random() % 2 == 0 { bytes.len().min(256) } else { bytes.len() };
                    (random() % span as u64) as usize
                })
                .collect();
            for &place in &places {
                damaged[place] = match random() % 3 {
                    0 => 0xff,
                    1 => damaged[place] ^ 1 << (random() % 8),
                    _ => random() as u8,
                };
            }
            everything(&damaged);
            runs += 1;
            places.iter().for_each(|&place| damaged[place] = bytes[place]);
        }
    }
    let most = ALLOCATOR.most.load(Ordering::Relaxed);
    println!("{runs} damaged files, at most {most} bytes");
    // The fixtures, an image of `LIMIT`, and a window of zstd: 8 MiB, which its decoder rounds up.
    assert!(most < 32 << 20, "{most} bytes");
}
