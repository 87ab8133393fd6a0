//! Images that are relocated into memory of others.

use super::Loader;
use crate::error::Error;
use crate::image::LinkedImage;
use crate::memory::{ImageMemory, MemoryRequirements, MemorySource};
use crate::symbols::{LoadSymbols, Symbols};

impl Loader {
    /// Relocates objects into memory of `source`, which may be another process's: written and protected there. What has to be done
    /// over there (constructors, unwinding tables) the image says. Nothing is mapped here, and observers are not told.
    ///
    /// # Errors
    /// As [`link`](Self::link); [`Error::Map`] with what `source` says.
    pub fn link_into<B: AsRef<[u8]>>(
        &self,
        objects: impl IntoIterator<Item = B>,
        mut symbols: impl Symbols,
        source: &dyn MemorySource,
    ) -> Result<(LinkedImage, Box<dyn ImageMemory>), Error> {
        let objects: Vec<B> = objects.into_iter().collect();
        let mut links = LoadSymbols::new(&mut symbols);
        let (_, linked) =
            self.link_all(&objects, &mut links, (false, None), |layout, found, links| {
                let (size, alignment, limit) = (layout.size(), layout.alignment(), layout.limit());
                let refused = |cause| Error::Map { size, cause };
                let needed = MemoryRequirements { size, alignment, limit };
                let mut memory = source.reserve(&needed).map_err(refused)?;
                let image = LinkedImage::new(layout, &found.notable, memory.address(), links)?;
                let place = memory.bytes_mut().get_mut(..image.bytes().len());
                let place = place.ok_or(Error::OutOfMemory { size })?;
                place.copy_from_slice(image.bytes());
                let segments: Vec<_> = image.segments().collect();
                memory.protect(&segments).map_err(refused)?;
                Ok((image, memory))
            })?;
        Ok(linked)
    }
}
