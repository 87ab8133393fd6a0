//! The folder that `$ORIGIN` stands for in a program: its dynamic loader takes that of `/proc/self/exe`, which is another program's.

use crate::mapped_image::MappedImage;
use crate::word;
use elf_core::File;
use elf_core::names::{
    DT_AUXILIARY, DT_FILTER, DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRTAB, PT_DYNAMIC,
};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A text of the dynamic section that names the folder.
#[derive(Debug)]
pub(super) struct OriginText {
    /// Where in the program's memory the word is that leads to the text.
    offset: u64,
    /// The address that the word counts from.
    strings: u64,
    text: Box<[u8]>,
}

/// How the folder is named.
const NAMES: [&[u8]; 2] = [b"${ORIGIN}", b"$ORIGIN"];

/// Those of a file in memory, as far as its dynamic section is sound and can be written to.
pub(super) fn texts(file: &File<'_>, mapped: &MappedImage, start: u64) -> Vec<OriginText> {
    let dynamic = file.dynamic_by_segment().ok().flatten();
    let segment = file.segments().iter().find(|it| it.r#type == PT_DYNAMIC);
    let Some((dynamic, segment)) = dynamic.zip(segment) else { return Vec::new() };
    let Some(strings) = dynamic.value(DT_STRTAB) else { return Vec::new() };
    let strings = strings.wrapping_add(mapped.bias);
    let entries = dynamic.entries().iter().zip(0u64..);
    let text = |(entry, number): (elf_core::Dynamic, u64)| {
        let tag = entry.tag.cast_unsigned();
        let is_path = [DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_AUXILIARY, DT_FILTER].contains(&tag);
        let text = dynamic.text(&entry).ok().flatten().filter(|_| is_path)?.as_bytes();
        // the second word of the entry
        let place = number.wrapping_mul(2).wrapping_add(1).wrapping_mul(word::SIZE);
        let in_image = segment.address.wrapping_sub(start).wrapping_add(place);
        let offset = mapped.offset(in_image);
        let is_writable = mapped.is_writable(offset, word::SIZE);
        let names_it = NAMES.iter().any(|name| text.windows(name.len()).any(|it| it == *name));
        let text = text.into();
        (names_it && is_writable).then_some(OriginText { offset, strings, text })
    };
    entries.filter_map(text).collect()
}

impl OriginText {
    /// Where the word is, and what it is to be so that the text names `folder`. The text stays.
    pub(super) fn of(&self, folder: &Path) -> (u64, [u8; word::SIZE as usize]) {
        let text = expanded(&self.text, folder.as_os_str().as_bytes());
        // neither has a NUL
        let text = CString::new(text).unwrap_or_default().into_raw();
        let address = text.expose_provenance() as u64;
        (self.offset, word::bytes(address.wrapping_sub(self.strings)))
    }
}

/// A text with `folder` in the place of its name.
fn expanded(text: &[u8], folder: &[u8]) -> Vec<u8> {
    let (mut rest, mut whole) = (text, Vec::new());
    while let Some((first, behind)) = rest.split_first() {
        match NAMES.iter().find_map(|name| rest.strip_prefix(*name)) {
            Some(behind) => {
                whole.extend_from_slice(folder);
                rest = behind;
            }
            None => {
                whole.push(*first);
                rest = behind;
            }
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::expanded;

    #[test]
    fn folders_of_texts() {
        let text = expanded(b"$ORIGIN/../lib:/x:${ORIGIN}/$LIB:$ORIGIN", b"/a");
        assert_eq!(String::from_utf8_lossy(&text), "/a/../lib:/x:/a/$LIB:/a");
    }
}
