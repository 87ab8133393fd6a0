//! Reads every member of an archive.

use super::sink::Sink;
use elf_core::archive::Archive;

/// Walks the members; those that are ELF files are parsed.
pub fn run(bytes: &[u8]) {
    let mut sink = Sink::default();
    let Some(archive) = sink.result(Archive::parse(bytes)) else { return };
    let mut members = archive.members();
    let mut last = 0;
    while let Some(member) = members.next() {
        let Some(member) = sink.result(member) else {
            assert!(members.next().is_none(), "an error is the last");
            return;
        };
        assert!(member.header >= last && (member.header as usize) < bytes.len());
        last = member.header + 1;
        assert_eq!(member.data.is_none(), archive.is_thin());
        if let Some(data) = member.data {
            let range = member.offset as usize..(member.offset + member.size) as usize;
            assert_eq!(bytes.get(range).map(<[u8]>::as_ptr), Some(data.as_ptr()));
            sink.debug(elf_core::File::parse(data).is_ok());
        }
    }
}
