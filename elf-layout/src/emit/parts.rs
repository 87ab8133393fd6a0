//! Parts of an image, which several threads can write at once.

use crate::emit::part::ImagePart;
use crate::error::Error;
use crate::model::layout::Layout;
use crate::model::storage::SectionState;
use core::iter;
use elf_core::Arch;

impl ImagePart<'_> {
    /// The bytes: some segments of the image, or parts of them.
    #[must_use]
    pub const fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Where the part is in the image, in bytes from its start.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.start
    }
}

impl<A: Arch> Layout<'_, '_, A> {
    /// Cuts an image into at most `count` parts, between sections, of about as much to write in each: for threads, each of which takes
    /// one to [`write_part`](Self::write_part). When all are written, the image is as [`write_zeroed`](Self::write_zeroed) makes it.
    ///
    /// `image` has to be zero already, as fresh memory of an operating system; `base` is the address it is to have.
    ///
    /// # Errors
    /// As [`write`](Self::write), before anything is written.
    pub fn parts<'m>(
        &self,
        image: &'m mut [u8],
        base: u64,
        count: usize,
    ) -> Result<impl Iterator<Item = ImagePart<'m>> + use<'m, '_, A>, Error> {
        let mut rest = Some(ImagePart::whole(self.check_order(image, base)?, base));
        let mut left = count;
        Ok(iter::from_fn(move || {
            let ImagePart { bytes, start, base } = rest.take()?;
            let end = if left > 1 { self.cut(start, left) } else { u64::MAX };
            left = left.saturating_sub(1);
            let size = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
            let (own, behind) = bytes.split_at_mut(size.min(bytes.len()));
            if !behind.is_empty() {
                rest = Some(ImagePart { bytes: behind, start: end, base });
            }
            Some(ImagePart { bytes: own, start, base })
        }))
    }

    /// Writes what stands in one of the [`parts`](Self::parts) of this layout's image.
    ///
    /// # Errors
    /// What a relocation met: the image must not be used. Others may have met something too; what [`write`](Self::write) answers is
    /// the first.
    pub fn write_part(&self, mut part: ImagePart<'_>) -> Result<(), Error> {
        self.write_part_of(&mut part)
    }

    /// The end of a part that starts at `start`, where there are `left` to come: nothing of the image is on both sides of it.
    fn cut(&self, start: u64, left: usize) -> u64 {
        let groups = || self.spans.contents();
        let behind = |from: u64, end: u64| end.saturating_sub(from.max(start));
        let all = groups().fold(0u64, |sum, (_, span)| {
            sum.saturating_add(behind(span.offset, span.offset.saturating_add(span.size)))
        });
        if all == 0 || !groups().is_sorted_by_key(|(_, span)| span.offset) {
            // zeros alone, or somebody has moved the segments
            return u64::MAX;
        }
        let mut share = (all / (left as u64).max(1)).max(1);
        for (group, span) in groups() {
            let end = span.offset.saturating_add(span.size);
            let own = behind(span.offset, end);
            if own < share {
                share = share.saturating_sub(own);
                continue;
            }
            let aim = span.offset.max(start).saturating_add(share);
            let starts =
                self.sections.iter().filter(|slot| slot.state == SectionState::Placed(group));
            let starts = starts.map(|slot| span.offset.saturating_add(slot.offset));
            return starts.filter(|start| *start >= aim).fold(end, u64::min);
        }
        u64::MAX
    }
}
