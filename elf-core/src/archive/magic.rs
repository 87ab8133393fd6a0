//! What archives begin with.

/// What an archive starts with (System V, GNU, BSD, COFF).
pub const MAGIC: &[u8; 8] = b"!<arch>\n";
/// What a thin archive starts with (GNU): its members are files of their own.
pub const THIN_MAGIC: &[u8; 8] = b"!<thin>\n";
