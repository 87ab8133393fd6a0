//! What few objects have, found once, when their headers are read: who wants it looks into those objects alone.

use crate::error::Error;
use crate::{fragments, initialize};
use elf_core::names::SHT_NOBITS;
use elf_core::{File, Foreign, SectionFlags, SectionHeader};

/// What code asks of the stack.
const STACK_NOTE: &[u8] = b".note.GNU-stack";

/// What an object has that few have.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    fragments: bool,
    calls: bool,
    variables: bool,
    stack: Option<u32>,
    loaded: u64,
    filled: u64,
    /// The error of an object without machine code.
    slim_lto: Option<elf_core::Error>,
}

impl Own {
    /// What a file has.
    fn of(file: &File<'_>) -> Self {
        let (mut own, mut index) = (Self::default(), 0u32);
        // one loop for each class of files
        file.sections().iter().for_each(|header| {
            own.fragments |= fragments::is_one(file, &header);
            own.calls |= initialize::may_have_calls(file, &header);
            own.variables |= header.flags.contains(SectionFlags::TLS);
            if header.flags.contains(SectionFlags::ALLOC) {
                own.loaded = own.loaded.saturating_add(header.size);
                let is_filled =
                    header.r#type != SHT_NOBITS && !header.flags.contains(SectionFlags::GROUP);
                own.filled = own.filled.saturating_add(if is_filled { header.size } else { 0 });
            }
            if own.stack.is_none() && is_executable_stack(file, &header) {
                own.stack = Some(index);
            }
            own.slim_lto = own.slim_lto.or_else(|| Foreign::slim_lto(file, &header));
            index = index.wrapping_add(1);
        });
        // whatever headers say
        own.filled = own.filled.min(file.bytes().len() as u64);
        own
    }
}

/// Whether a section says that code writes instructions on the stack, and jumps to them there.
fn is_executable_stack(file: &File<'_>, header: &SectionHeader) -> bool {
    let is_code = header.flags.contains(SectionFlags::EXECINSTR);
    is_code
        && !header.flags.contains(SectionFlags::ALLOC)
        && file.section_name(header).is_ok_and(|name| name.as_bytes() == STACK_NOTE)
}

/// Numbers of the objects that have it.
#[derive(Debug, Default)]
pub(crate) struct Notable {
    /// Sections named `.init` or `.fini`.
    pub(crate) fragments: Vec<usize>,
    /// Arrays of constructors or destructors.
    pub(crate) calls: Vec<usize>,
    /// Thread-local variables.
    pub(crate) variables: Vec<usize>,
    /// The first that wants its stack executable, and the section that says so.
    pub(crate) stack: Option<(usize, u32)>,
    /// Bytes of all sections that are loaded, some of which may be discarded.
    pub(crate) loaded: u64,
    /// Bytes of those that are not discarded, and not all zero.
    pub(crate) filled: u64,
}

impl Notable {
    /// What the files of a load have.
    ///
    /// # Errors
    /// [`Error::Elf`] of the first that has no machine code.
    pub(crate) fn of(files: &[File<'_>]) -> Result<Self, Error> {
        let mut notable = Self::default();
        for (object, file) in files.iter().enumerate() {
            let own = Own::of(file);
            own.slim_lto.map_or(Ok(()), |error| Err(Error::Elf { object, error }))?;
            notable.add(object, &own);
        }
        Ok(notable)
    }

    /// Adds what object `object` has, which is the next.
    fn add(&mut self, object: usize, own: &Own) {
        let lists = [
            (&mut self.fragments, own.fragments),
            (&mut self.calls, own.calls),
            (&mut self.variables, own.variables),
        ];
        for (list, _) in lists.into_iter().filter(|(_, has)| *has) {
            list.push(object);
        }
        self.loaded = self.loaded.saturating_add(own.loaded);
        self.filled = self.filled.saturating_add(own.filled);
        self.stack = self.stack.or_else(|| Some((object, own.stack?)));
    }
}
