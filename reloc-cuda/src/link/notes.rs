//! Notes: who made the linked file, and out of what.

use alloc::format;
use alloc::vec::Vec;
use nvinfo::TargetSuffix;

/// The owner of CUDA's notes.
const OWNER: &[u8; 12] = b"NVIDIA Corp\0";
/// `.note.nv.tkinfo`: the tool that made a file.
const TOOL: u32 = 2000;

/// `.note.nv.cuinfo`: virtual architecture and toolkit.
const CUDA: u32 = 1000;
/// Where notes about the virtual architecture have it: behind three words, the owner and the version of the note.
const VIRTUAL: usize = 26;
/// `SHF_NOTE_NV_TKINFO`.
pub(super) const TOOL_FLAGS: u64 = 0x200_0000;
/// `SHF_NOTE_NV_CUINFO`.
pub(super) const CUDA_FLAGS: u64 = 0x100_0000;
/// The first toolkit that writes these notes for all architectures.
pub(super) const FIRST_TOOLKIT: u32 = 130;
/// The first architecture whose files have `.nv.compat`.
pub(super) const FIRST_WITH_COMPAT: u32 = 90;

/// `.note.nv.cuinfo` for code of this virtual architecture.
pub(super) fn cuda(r#virtual: u32, toolkit: u32) -> Vec<u8> {
    let halves = [2, r#virtual as u16, toolkit as u16, 0];
    note(CUDA, &halves.into_iter().flat_map(u16::to_le_bytes).collect::<Vec<_>>())
}

/// `.note.nv.cuver`, which an object has, for code of this virtual architecture.
pub(super) fn with_virtual(note: &[u8], r#virtual: u32) -> Vec<u8> {
    let mut bytes = note.to_vec();
    if let Some(place) = bytes.get_mut(VIRTUAL..VIRTUAL + 2) {
        place.copy_from_slice(&(r#virtual as u16).to_le_bytes());
    }
    bytes
}

/// The linker's own note; `remark` stands where other tools say which build they are.
pub(super) fn tool(sm: u32, suffix: TargetSuffix, remark: &str) -> Vec<u8> {
    let version = format!("version {}", env!("CARGO_PKG_VERSION"));
    let arguments = format!("-arch sm_{sm}{} ", suffix.as_str());
    let texts: [&[u8]; 5] =
        [b"", b"hoist", version.as_bytes(), remark.as_bytes(), arguments.as_bytes()];
    let mut words = Vec::from([2u32]);
    let mut table = Vec::new();
    for text in texts {
        words.push(u32::try_from(table.len()).unwrap_or(u32::MAX));
        table.extend_from_slice(text);
        table.push(0);
    }
    let mut description: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    description.append(&mut table);
    // nvdisasm wants the size itself to be a multiple of 4
    description.resize(description.len().next_multiple_of(4), 0);
    note(TOOL, &description)
}

fn note(r#type: u32, description: &[u8]) -> Vec<u8> {
    let size = u32::try_from(description.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    for word in [OWNER.len() as u32, size, r#type] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(OWNER);
    bytes.extend_from_slice(description);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}
