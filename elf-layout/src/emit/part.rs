//! A part of an image.

/// `size` bytes of the image at `offset`.
pub(super) fn part(image: &mut [u8], offset: u64, size: u64) -> Option<&mut [u8]> {
    let start = usize::try_from(offset).ok()?;
    let size = usize::try_from(size).ok()?;
    image.get_mut(start..)?.get_mut(..size)
}
