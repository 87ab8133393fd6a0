//! Fragments of `_init` and `_fini`: code in sections `.init` and `.fini`, each of which runs into that of the next object, between
//! the start files of a program (gABI ch. 8, "Initialization and Termination Functions").
//!
//! There are no start files here. Every fragment is ended by what ends the function there, and called by itself, in the order of the
//! objects.

use crate::Host;
use crate::error::Error;
use crate::machine::fragment;
use crate::section_names::first_of_name;
use crate::start::Start;
use core::ffi::c_char;
use elf_core::names::EM_ARM;
use elf_core::{Definition, File, Mapping, SectionFlags, SectionHeader};
use elf_layout::{FRAGMENT_ROOM, Layout};

/// Addresses of the fragments, in the order to run them.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    first: Vec<u64>,
    last: Vec<u64>,
}

const CODE: SectionFlags = SectionFlags::ALLOC.union(SectionFlags::EXECINSTR);
const FIRST: [u8; 6] = *b".init\0";
const LAST: [u8; 6] = *b".fini\0";
const _: () = assert!(fragment::END.len() as u64 <= FRAGMENT_ROOM);

impl Fragments {
    /// Ends the fragments of a layout in its image, which is for `base`; these objects have some.
    ///
    /// # Errors
    /// [`Error::Fragment`] of start files themselves: what begins the function, or ends it.
    pub(crate) fn collect(
        layout: &Layout<'_, '_, Host>,
        objects: &[usize],
        image: &mut [u8],
        base: u64,
    ) -> Result<Self, Error> {
        let mut fragments = Self::default();
        for (object, section, header, is_first) in Self::all(layout, objects) {
            let Some(offset) = layout.section(object, section) else { continue };
            let refused = Err(Error::Fragment { object, section, name: Box::default() });
            let size = layout.section_size(object, section).unwrap_or(header.size);
            let end = usize::try_from(offset.saturating_add(size)).unwrap_or(usize::MAX);
            let Some((code, behind)) = image.split_at_mut_checked(end) else { return refused };
            let file = layout.files().get(object);
            let is_whole = code.ends_with(fragment::RETURN)
                || file.is_some_and(|file| has_symbol(file, section) || is_thumb(file, section));
            let Some(place) = behind.get_mut(..fragment::END.len()).filter(|_| !is_whole) else {
                return refused;
            };
            place.copy_from_slice(fragment::END);
            let list = if is_first { &mut fragments.first } else { &mut fragments.last };
            list.push(base.wrapping_add(offset));
        }
        Ok(fragments)
    }

    /// Refuses any.
    ///
    /// # Errors
    /// [`Error::Fragment`].
    pub(crate) fn refuse(layout: &Layout<'_, '_, Host>, objects: &[usize]) -> Result<(), Error> {
        match Self::all(layout, objects)
            .find(|(object, section, ..)| layout.section(*object, *section).is_some())
        {
            Some((object, section, ..)) => {
                Err(Error::Fragment { object, section, name: Box::default() })
            }
            None => Ok(()),
        }
    }

    /// All of them, and whether they run first.
    fn all<'s>(
        layout: &Layout<'s, 's, Host>,
        objects: &'s [usize],
    ) -> impl Iterator<Item = (usize, u32, SectionHeader, bool)> + use<'s> {
        let files = layout.files();
        let files = objects.iter().filter_map(|&object| Some((object, files.get(object)?)));
        files.flat_map(|(object, file)| {
            (0u32..).zip(file.sections()).filter_map(move |(section, header)| {
                let is_first = || first_of_name(file, &header) == Some(FIRST);
                is_one(file, &header).then(|| (object, section, header, is_first()))
            })
        })
    }

    /// Whether nothing runs first.
    pub(crate) const fn need_no_initialization(&self) -> bool {
        self.first.is_empty()
    }

    /// Runs those that run before constructors.
    ///
    /// # Safety
    /// They are mapped and executable, and sound to run with these arguments.
    pub(crate) unsafe fn run_first(&self, start: Start) {
        // SAFETY: as the caller says.
        unsafe { run(&self.first, start) };
    }

    /// Runs those that run behind destructors.
    ///
    /// # Safety
    /// As for [`run_first`](Self::run_first).
    pub(crate) unsafe fn run_last(&self, start: Start) {
        // SAFETY: as the caller says.
        unsafe { run(&self.last, start) };
    }
}

/// # Safety
/// As for [`Fragments::run_first`].
unsafe fn run(fragments: &[u64], start: Start) {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    for &address in fragments {
        // SAFETY: the caller guarantees the fragment, which was ended; the C library has the environment.
        unsafe { fragment::call(address, start, environ) };
    }
}

/// Whether a section is a fragment.
pub(crate) fn is_one(file: &File<'_>, header: &SectionHeader) -> bool {
    if header.flags & CODE != CODE || header.size == 0 {
        return false;
    }
    matches!(first_of_name(file, header), Some(FIRST | LAST))
}

/// Whether a section has Thumb code, of which no end is known here: a fragment does not say how many registers it has put on the stack.
fn is_thumb(file: &File<'_>, section: u32) -> bool {
    let machine = file.header().machine;
    let Ok(Some(table)) = file.symbol_table() else { return false };
    let mut symbols = (0u32..).zip(table.symbols());
    machine == EM_ARM
        && symbols.any(|(index, symbol)| {
            let name = table.name_of(&symbol).unwrap_or_default();
            Mapping::of(machine, &symbol, name) == Some(Mapping::Thumb)
                && table.section_of(index, &symbol) == Ok(Definition::Section(section))
        })
}

/// Whether a global symbol is defined in a section: start files define `_init` and `_fini`.
fn has_symbol(file: &File<'_>, section: u32) -> bool {
    let Ok(Some(table)) = file.symbol_table() else { return false };
    let symbols = (0u32..).zip(table.symbols()).skip(table.first_global());
    symbols.into_iter().any(|(index, symbol)| {
        table.section_of(index, &symbol) == Ok(Definition::Section(section))
            && table.name_of(&symbol).is_ok_and(|name| name == "_init" || name == "_fini")
    })
}
