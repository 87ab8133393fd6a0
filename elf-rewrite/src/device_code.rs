//! Files with NVIDIA's device code: what of them is to be known when regions of it change.

use std::ops::Range;

use elf_core::File;
use elf_core::names::ET_EXEC;
use fatbin::{Container, Search, raw, walk, wrappers};

use crate::error::{Error, ErrorKind};
use crate::rewriter::Rewriter;

/// Sections of device code by which tools find it, the one that a file may lack first: cuobjdump looks into one of each name.
const NAMES: [&str; 2] = ["__nv_relfatbin", ".nv_fatbin"];

impl<'a, B: AsRef<[u8]>> Rewriter<'a, B> {
    /// A file in which regions of device code become others, with what only who knows NVIDIA's containers can see: how sections of
    /// regions that move are called; in a program at fixed addresses, where wrappers have their pointers; and where regions are that
    /// stay.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`replace`](Self::replace); [`DeviceCode`](ErrorKind::DeviceCode) if a wrapper of a program at fixed
    /// addresses cannot be read.
    pub fn of_device_code(
        bytes: &'a [u8],
        changes: impl IntoIterator<Item = (Range<u64>, B)>,
    ) -> core::result::Result<Self, Error> {
        let mut new = Self::open(bytes)?;
        for (range, content) in changes {
            new.replace(range, content)?;
        }
        new.add_device_code()?;
        Ok(new)
    }

    fn add_device_code(&mut self) -> core::result::Result<(), Error> {
        for name in NAMES {
            self.name(name);
        }
        let bytes = self.bytes();
        if let Ok(elf) = File::parse(bytes)
            && elf.header().r#type == ET_EXEC
        {
            for wrapper in wrappers(&elf) {
                let at = wrapper.map_err(|error| Error::new(error.at, error.into()))?.at;
                self.pointer(at.saturating_add(core::mem::offset_of!(raw::Wrapper, data) as u64));
            }
        }
        // those in sections that tools make for them: what a search would find may be no region
        for found in walk(bytes, Search::Never) {
            if let Ok(found) = found
                && let Container::Region(region) = found.container
            {
                self.keep(region.at()..region.end())?;
            }
        }
        Ok(())
    }
}

impl From<fatbin::Error> for ErrorKind {
    fn from(error: fatbin::Error) -> Self {
        Self::DeviceCode(error)
    }
}
