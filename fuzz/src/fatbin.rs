//! Finds containers of device code in any file, reads, selects from, unpacks and rebuilds them.

use super::sink::Sink;
use fatbin::{
    Container, CudaVersion, Region, Search, TargetDevice, descriptor, device_image, host_entries,
    module_ids, select, target_images, walk, wrappers,
};

/// What an image may unpack to, in bytes.
const LIMIT: usize = 1 << 16;

/// Walks the whole file, and as a program would.
pub fn run(bytes: &[u8]) {
    let mut sink = Sink::default();
    for found in walk(bytes, Search::Always) {
        match found {
            Ok(found) => {
                sink.debug(found.place);
                container(found.container, &mut sink);
            }
            Err(error) => sink.display(error),
        }
    }
    let Ok(file) = elf_core::File::parse(bytes) else { return };
    for wrapper in wrappers(&file) {
        sink.debug(wrapper.map_err(|error| Sink::default().display(error)).is_ok());
    }
    sink.debug(module_ids(&file).is_ok());
    host_entries(&file).for_each(|entry| sink.debug(entry.is_ok()));
    target_images(&file).into_iter().flatten().for_each(|image| sink.debug(image.is_ok()));
    for found in walk(bytes, Search::Never).flatten() {
        let Container::Offload(binary) = found.container else { continue };
        for image in binary.images().flatten().take(4) {
            if let Ok(Some(row)) = device_image(&file, image.payload()) {
                sink.debug(descriptor(&file, &row).is_ok());
            }
        }
    }
}

fn container(container: Container<'_>, sink: &mut Sink) {
    match container {
        Container::Region(region) => {
            let device = TargetDevice { sm: 90, driver: CudaVersion::new(12, 8) };
            sink.debug(select(region.entries(), device).is_ok());
            for entry in region.entries() {
                match entry {
                    Ok(entry) => self::entry(&entry, sink),
                    Err(error) => sink.display(error),
                }
            }
        }
        Container::Cubin(span) => sink.debug(fatbin::CubinHeader::parse(span.bytes()).is_ok()),
        other => super::offload::container(other, sink),
    }
}

fn entry(entry: &fatbin::RegionEntry<'_>, sink: &mut Sink) {
    sink.display(entry.kind());
    sink.display(entry.sm());
    sink.debug((entry.flags(), entry.identifier(), entry.compression()));
    let unpacked = entry.unpack(LIMIT);
    if let Ok(bytes) = &unpacked {
        assert!(bytes.len() <= LIMIT, "no more than is allowed");
    }
    match entry.parts() {
        Err(error) => sink.display(error),
        Ok(parts) => {
            for part in parts.iter() {
                sink.debug(unpacked.as_ref().ok().and_then(|bytes| part.of(bytes)).is_some());
            }
        }
    }
    let again = fatbin::region(&[(*entry).into()]).expect("an entry that was read can be written");
    let region = Region::parse(&*again).expect("and read again");
    let first = region.entries().next().expect("one entry").expect("a good one");
    assert_eq!((first.kind(), first.sm()), (entry.kind(), entry.sm()));
}
