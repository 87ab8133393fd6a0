//! Images, as rows for C, and how they are made.

use crate::border::Rows;
use core::ffi::c_char;
use std::ffi::CString;

/// Objects relocated for an address, as bytes. Free it with `hoist_image_free`.
pub struct Image {
    pub(crate) bytes: Vec<u8>,
    pub(crate) base: u64,
    pub(crate) symbols: Rows<ImageSymbol>,
    pub(crate) segments: Vec<ImageSegment>,
    /// What pointers of symbols lead to.
    pub(crate) names: Vec<CString>,
}

/// `hoist_link`: leaves instructions as compilers wrote them, even where shorter ways are known.
pub const HOIST_LINK_NO_RELAX: u32 = 1;
/// `hoist_link`: takes symbols that nobody defines for 0, instead of refusing them.
pub const HOIST_LINK_ALLOW_UNDEFINED: u32 = 2;

/// A symbol of an image. Pointers are good as long as the image.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ImageSymbol {
    /// Its name.
    pub name: *const c_char,
    /// Its address, where the image will run.
    pub address: u64,
    /// Its size in bytes, 0 if the object does not tell.
    pub size: u64,
    /// The object that has it, by its number in the link.
    pub object: usize,
    /// What it is: `STT_FUNC` (2), `STT_OBJECT` (1) ...
    pub kind: u8,
    /// Who sees it: `STB_LOCAL` (0), `STB_GLOBAL` (1), `STB_WEAK` (2).
    pub binding: u8,
}

/// A part of an image with permissions of its own.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ImageSegment {
    /// Its address, where the image will run.
    pub address: u64,
    /// Where it begins in the image's bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// `PF_X` (1), `PF_W` (2), `PF_R` (4), added up.
    pub flags: u32,
}
