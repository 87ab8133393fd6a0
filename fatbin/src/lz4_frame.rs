//! The LZ4 frame ("LZ4 Frame Format Description" 1.6.4): blocks with their sizes. Checksums are skipped, not compared.

use lz4_flex::block::decompress_into_with_dict;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// `FLG`: version 01 in bits 7 and 6.
const VERSION: (u8, u8) = (0xc0, 0x40);
const BLOCK_CHECKSUM: u8 = 1 << 4;
const CONTENT_SIZE: u8 = 1 << 3;
const DICTIONARY: u8 = 1 << 0;

/// A block that is stored as it is has this bit in its size.
const STORED: u32 = 1 << 31;
/// What a block may refer back to, at most.
const WINDOW: usize = 64 << 10;

/// Unpacks one frame; the number of bytes written, or none if it is damaged or `into` too small.
pub(crate) fn unpack(frame: &[u8], into: &mut [u8]) -> Option<usize> {
    let rest = frame.strip_prefix(&MAGIC)?;
    let (&[flags, _block_size], rest) = rest.split_first_chunk()?;
    if flags & VERSION.0 != VERSION.1 || flags & DICTIONARY != 0 {
        return None;
    }
    let (_content_size, rest) =
        rest.split_at_checked(if flags & CONTENT_SIZE == 0 { 0 } else { 8 })?;
    let (_header_checksum, mut rest) = rest.split_first()?;
    let mut written = 0_usize;
    loop {
        let (&size, after) = rest.split_first_chunk()?;
        let size = u32::from_le_bytes(size);
        if size == 0 {
            return Some(written);
        }
        let (block, after) = after.split_at_checked(usize::try_from(size & !STORED).ok()?)?;
        let (_checksum, after) =
            after.split_at_checked(if flags & BLOCK_CHECKSUM == 0 { 0 } else { 4 })?;
        rest = after;
        // Blocks that depend on those before, and those that do not, are read alike: the latter never look back.
        let (before, space) = into.split_at_mut_checked(written)?;
        let added = if size & STORED == 0 {
            let window = before.len().saturating_sub(WINDOW);
            decompress_into_with_dict(block, space, before.get(window..)?).ok()?
        } else {
            space.get_mut(..block.len())?.copy_from_slice(block);
            block.len()
        };
        written = written.checked_add(added)?;
    }
}

/// One frame of independent blocks, each of 64 KiB when unpacked: what NVIDIA's tools write. None if a block cannot be packed.
#[cfg(feature = "alloc")]
pub(crate) fn pack(
    payload: &[u8],
    block: impl Fn(&[u8]) -> Option<alloc::vec::Vec<u8>>,
) -> Option<alloc::vec::Vec<u8>> {
    /// Version 1, independent blocks; blocks of 64 KiB; the checksum of these two.
    const HEADER: [u8; 3] = [0x60, 0x40, 0x82];
    let mut frame = alloc::vec::Vec::new();
    frame.extend(MAGIC);
    frame.extend(HEADER);
    for bytes in payload.chunks(64 << 10) {
        let packed = block(bytes)?;
        let (size, bytes) = match u32::try_from(packed.len()) {
            Ok(size) if packed.len() < bytes.len() => (size, packed.as_slice()),
            _ => (STORED | u32::try_from(bytes.len()).unwrap_or(0), bytes), // at most 64 KiB
        };
        frame.extend(size.to_le_bytes());
        frame.extend(bytes);
    }
    frame.extend([0; 4]);
    Some(frame)
}
