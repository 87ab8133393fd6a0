//! Deflate on all cores.

use std::fs::File;
use std::io::Write as _;

use anyhow::Result;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use rayon::prelude::*;

use crate::mapped::Mapped;

/// Pieces of this size are deflated at the same time. They look back into none before them, which costs less than a thousandth, and are
/// the same on any machine.
const PIECE: usize = 4 << 20;

/// Deflates a file, on all cores; gives its checksum and size.
///
/// # Errors
/// If it cannot be written.
pub fn deflate(content: &Mapped, level: Compression, to: &mut File) -> Result<(u32, u64)> {
    deflate_pieces(content, PIECE, level, to)
}

/// The same in pieces of some size.
fn deflate_pieces(
    content: &Mapped,
    piece: usize,
    level: Compression,
    to: &mut File,
) -> Result<(u32, u64)> {
    let pieces: Vec<&[u8]> = match content.bytes() {
        [] => vec![&[]],
        bytes => bytes.chunks(piece).collect(),
    };
    let last = pieces.len().saturating_sub(1);
    let at_once = rayon::current_num_threads().saturating_mul(2).max(1);
    let (mut crc, mut at) = (Crc::new(), 0_u64);
    for (first, some) in (0..).step_by(at_once).zip(pieces.chunks(at_once)) {
        let pack = |(index, piece): (usize, &&[u8])| deflated(piece, level, first + index == last);
        let packed: Vec<_> = some.par_iter().enumerate().map(pack).collect::<Result<_>>()?;
        for (sum, bytes) in packed {
            crc.combine(&sum);
            to.write_all(&bytes)?;
        }
        let end = some.iter().fold(at, |at, piece| at.saturating_add(piece.len() as u64));
        content.done_with(at..end);
        at = end;
    }
    Ok((crc.sum(), at))
}

/// A piece of what is deflated, and its checksum; it ends at a byte, so that the next can follow.
fn deflated(piece: &[u8], level: Compression, is_last: bool) -> Result<(Crc, Vec<u8>)> {
    let mut crc = Crc::new();
    crc.update(piece);
    let mut encoder = Compress::new(level, false);
    let flush = if is_last { FlushCompress::Finish } else { FlushCompress::Sync };
    let mut packed = Vec::new();
    loop {
        packed.reserve(1 << 16);
        let read = usize::try_from(encoder.total_in())?;
        let rest = piece.get(read..).unwrap_or_default();
        let status = encoder.compress_vec(rest, &mut packed, flush)?;
        // what leaves room has nothing more to say
        let is_flushed =
            packed.len() < packed.capacity() && encoder.total_in() == piece.len() as u64;
        if status == Status::StreamEnd || (!is_last && is_flushed) {
            return Ok((crc, packed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::DeflateDecoder;
    use std::io::{Read as _, Seek as _};

    #[test]
    fn what_is_deflated_in_pieces_is_one_stream() {
        const PIECE: usize = 1 << 14;
        for size in [0, 1, PIECE - 1, PIECE, PIECE + 1, 40 * PIECE + 5] {
            let mut state = 1_u32;
            let bytes: Vec<u8> = (0..size)
                .map(|at| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if at % 3 == 0 { (state >> 24) as u8 } else { 7 }
                })
                .collect();
            let mut file = tempfile::tempfile().unwrap();
            let (content, level) = (Mapped::of(bytes.clone()), Compression::default());
            let (crc, length) = deflate_pieces(&content, PIECE, level, &mut file).unwrap();
            let mut whole = Crc::new();
            whole.update(&bytes);
            assert_eq!((crc, length), (whole.sum(), bytes.len() as u64), "{size}");
            file.rewind().unwrap();
            let (mut decoder, mut unpacked) = (DeflateDecoder::new(&file), Vec::new());
            decoder.read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == bytes, "{size}");
            assert_eq!(decoder.total_in(), file.metadata().unwrap().len(), "{size}");
        }
    }
}
