//! Linked files: all that their headers say, and the image, which stays what it was where a relocation fails.

use super::sink::Sink;
use archs::{Architecture, with_arch};
use elf_core::{Arch, File, Query};
use elf_image::{AddressKind, Image};

/// Largest image that is written, in bytes.
const IMAGE: u64 = 1 << 18;

/// Takes the file as one that is placed by virtual and by physical addresses.
pub fn run(bytes: &[u8]) {
    let Some(file) = Sink::default().result(File::parse(bytes)) else { return };
    let found = Architecture::of(file.header().machine, file.encoding().is_64());
    let architecture = found.unwrap_or(Architecture::X86_64);
    for addresses in [AddressKind::Virtual, AddressKind::Physical] {
        with_arch!(architecture, A => load::<A>(file, addresses));
    }
}

fn load<A: Arch>(file: File<'_>, addresses: AddressKind) {
    let mut sink = Sink::default();
    let Some(image) = sink.result(Image::parse(file, addresses)) else { return };
    let mut end = 0;
    for segment in image.segments() {
        assert!(segment.offset >= end && segment.data.len() as u64 <= segment.size);
        end = segment.offset + segment.size;
    }
    assert_eq!(end, image.size());
    sink.debug((image.facts(), image.stack(), image.eh_frame_hdr(), image.relro()));
    sink.result(image.tls());
    sink.result(image.feature_bits());
    for page in [0, 1, 16, 4096, 1 << 40] {
        if let Some(pages) = sink.result(image.pages(page)) {
            let mut next = 0;
            for range in pages {
                assert_eq!(range.offset, next);
                next += range.size;
            }
            assert!(next >= image.size() && next % page == 0);
        }
    }
    if let Some(Some(exports)) = sink.result(image.exports()) {
        for index in 0..64 {
            if let Some(reference) = sink.result(exports.reference(index)) {
                sink.result(exports.find(reference));
                sink.result(exports.find_default(reference.name));
            }
        }
    }
    if image.size() > IMAGE {
        return;
    }
    if let Some(beginning) = sink.result(File::parse_beginning(file.bytes(), u64::MAX)) {
        sink.result(Image::parse(beginning, addresses).and_then(Image::with_dynamic));
    }
    let mut memory = vec![0xcc; image.size() as usize];
    let base = if image.is_fixed() { image.start() } else { image.start() ^ 0x4000_0000 };
    sink.result(image.write(&mut memory));
    let before = memory.clone();
    if let Some(own) = sink.result(image.own_symbols::<A>(base)) {
        sink.result(image.relocate::<A>(&mut memory, base, &own));
    }
    memory.copy_from_slice(&before);
    sink.result(image.relocate_relative::<A>(&mut memory, base));
    memory.copy_from_slice(&before);
    sink.result(image.relocate::<A>(&mut memory, base, &|query: &Query| Some(query.place)));
}
