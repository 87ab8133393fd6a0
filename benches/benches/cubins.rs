//! How fast cubins are read, beside a plain read of the same bytes: every attribute typed, every kernel's needs.
//!
//! `cargo bench -p benches --bench cubins -- FOLDER`

use elf_core::names::SHT_CUDA_INFO;
use nvinfo::{Cubin, KernelNeeds};
use std::time::Instant;

fn main() {
    // cargo adds options of its own
    let mut words =
        std::env::args_os().skip(1).filter(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let fixtures = || concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/cuda").into();
    let folder = words.next().unwrap_or_else(fixtures);
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = paths.map(|path| std::fs::read(path).unwrap()).collect();
    let bytes: usize = files.iter().map(Vec::len).sum();
    let mut room = vec![KernelNeeds::EMPTY; 20_000];
    let mut index = Vec::new();
    let (mut plain, mut parsed) = (f64::MAX, f64::MAX);
    let (mut sum, mut kernels, mut attributes) = (0u64, 0usize, 0usize);
    for _ in 0..3 {
        let start = Instant::now();
        for file in &files {
            let words = file.as_chunks::<8>().0.iter();
            sum = words.fold(sum, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
        }
        plain = plain.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        (kernels, attributes) = (0, 0);
        for file in &files {
            let Ok(cubin) = Cubin::parse(file) else { continue };
            let sections = cubin.file().sections();
            index.resize(index.len().max(cubin.symbols().unwrap().len() + sections.len()), 0);
            kernels += cubin.kernel_needs(&mut room, &mut index).unwrap().len();
            for section in sections.iter().filter(|section| section.r#type == SHT_CUDA_INFO) {
                for row in cubin.attributes_in(&section).unwrap() {
                    attributes +=
                        usize::from(row.unwrap().payload().code_offsets().count() < 1 << 30);
                }
            }
        }
        parsed = parsed.min(start.elapsed().as_secs_f64());
    }
    let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
    println!(
        "{} cubins, {bytes} bytes, {kernels} kernels, {attributes} attributes: read at {:.1} GB/s, parsed at {:.1} GB/s \
         in {parsed:.3} s (sum {sum:x})",
        files.len(),
        rate(plain),
        rate(parsed)
    );
    assert!(kernels > 0);
}
