//! Links several relocatable cubins, and reads what comes of it.

use super::sink::Sink;
use elf_core::archive::Archive;
use nvinfo::Cubin;
use reloc_cuda::link::{LinkErrors, LinkedCubin, link, link_relocatable};

/// Most objects of a link.
const OBJECTS: usize = 4;

/// The cubins are the members of an archive.
pub fn run(bytes: &[u8]) {
    let Ok(archive) = Archive::parse(bytes) else { return };
    let members = archive.members().filter_map(|member| member.ok()?.data);
    let objects: Vec<_> = members.take(OBJECTS).collect();
    for linked in [link(&objects), link_relocatable(&objects, None)] {
        look(linked);
    }
}

fn look(linked: Result<LinkedCubin, LinkErrors>) {
    match linked {
        Ok(linked) => assert!(Cubin::parse(&linked.bytes).is_ok(), "a linked file can be read"),
        Err(errors) => {
            assert!(!errors.0.is_empty(), "there is a reason");
            Sink::default().display(errors);
        }
    }
}
