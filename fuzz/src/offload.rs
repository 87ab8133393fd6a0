//! Reads LLVM's containers of device code, unpacks them, and builds them again.

use super::sink::Sink;
use fatbin::{Bundle, CompressedBundle, Container, NewImage, OffloadBinary};

/// What an image may unpack to, in bytes.
const LIMIT: usize = 1 << 16;

/// Takes the bytes for each of the three containers.
pub fn run(bytes: &[u8]) {
    let mut sink = Sink::default();
    match OffloadBinary::parse(bytes) {
        Ok(binary) => container(Container::Offload(binary), &mut sink),
        Err(error) => sink.display(error),
    }
    match Bundle::parse(bytes) {
        Ok(bundle) => container(Container::Bundle(bundle), &mut sink),
        Err(error) => sink.display(error),
    }
    match CompressedBundle::parse(bytes) {
        Ok(bundle) => container(Container::CompressedBundle(bundle), &mut sink),
        Err(error) => sink.display(error),
    }
}

pub(super) fn container(container: Container<'_>, sink: &mut Sink) {
    match container {
        Container::Offload(binary) => {
            images(&binary, sink);
            match binary.inflate_size(LIMIT) {
                Ok(None) => {}
                Ok(Some(size)) => {
                    assert!(size <= LIMIT, "no more than is allowed");
                    let mut into = vec![0; size];
                    match binary.inflate_into(&mut into) {
                        Ok(binary) => images(&binary, sink),
                        Err(error) => sink.display(error),
                    }
                }
                Err(error) => sink.display(error),
            }
        }
        Container::Bundle(bundle) => entries(&bundle, sink),
        Container::CompressedBundle(bundle) => match bundle.unpack_size(LIMIT) {
            Ok(size) => {
                assert!(size <= LIMIT, "no more than is allowed");
                let mut into = vec![0; size];
                match bundle.unpack_into(&mut into) {
                    Ok(bundle) => entries(&bundle, sink),
                    Err(error) => sink.display(error),
                }
            }
            Err(error) => sink.display(error),
        },
        _ => {}
    }
}

fn entries(bundle: &Bundle<'_>, sink: &mut Sink) {
    for entry in bundle.entries() {
        match entry {
            Ok(entry) => sink.debug((entry.kind(), entry.target())),
            Err(error) => sink.display(error),
        }
    }
}

fn images(binary: &OffloadBinary<'_>, sink: &mut Sink) {
    for image in binary.images() {
        let image = match image {
            Ok(image) => image,
            Err(error) => {
                sink.display(error);
                continue;
            }
        };
        sink.debug((image.kind().name(), image.producer().name(), image.flags()));
        sink.debug((image.triple(), image.arch(), image.target()));
        let texts: Option<Vec<_>> =
            image.strings().map(|(key, value)| Some((key.to_str()?, value.to_str()?))).collect();
        let Some(strings) = texts.filter(|texts| texts.len() < 64) else { continue };
        let new = NewImage {
            kind: image.kind(),
            producer: image.producer(),
            flags: image.flags(),
            strings: &strings,
            payload: image.payload().bytes(),
        };
        // a value of versions 2 and 3 may hold a NUL, with which it cannot be written
        let is_cut = strings.iter().any(|(_, value)| value.contains('\0'));
        let again = match fatbin::offload(&[new]) {
            Ok(again) => again,
            Err(_) if is_cut => continue,
            Err(error) => panic!("an image that was read can be written: {error}"),
        };
        assert!(!is_cut, "a value was cut off");
        let binary = OffloadBinary::parse(&*again).expect("and read again");
        let first = binary.images().next().expect("one image").expect("a good one");
        assert_eq!((first.kind(), first.producer()), (image.kind(), image.producer()));
        assert_eq!(first.payload().bytes(), image.payload().bytes());
        assert!(first.strings().eq(image.strings()));
    }
}
