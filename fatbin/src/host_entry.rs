//! What a host program compiled by Clang registers with its runtime: kernels and variables by name.

use crate::error::Error;
use crate::offload::Producer;
use crate::pointer::{Pointer, Pointers};
use crate::raw_llvm as raw;
use crate::span::Span;
use core::iter::FusedIterator;
use elf_core::{File, Name, SectionHeader};

/// A kernel or a variable that has an image on the device: `__tgt_offload_entry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostEntry<'a> {
    /// File offset of the entry, counted from the start of its ELF file.
    pub at: u64,
    /// Which programming model it is for. Entries of LLVM 19 and before say so by their section.
    pub producer: Producer,
    /// Flags of the programming model.
    pub flags: u32,
    /// The kernel's id, or the variable.
    pub address: Pointer,
    /// The name on the device, if it is in the file.
    pub name: Option<Name<'a>>,
    /// Bytes of the variable; 0 for a kernel.
    pub size: u64,
}

impl HostEntry<'_> {
    /// Whether it is a kernel.
    #[must_use]
    pub const fn is_kernel(&self) -> bool {
        self.size == 0
    }
}

/// The entries in `llvm_offload_entries` (LLVM 20 and later), `omp_offloading_entries`, `cuda_offloading_entries` and
/// `hip_offloading_entries` (before) in order.
#[must_use]
pub const fn host_entries<'a>(file: &'a File<'a>) -> HostEntries<'a> {
    HostEntries { file, section: 0, rest: None }
}

/// The entries of a host program in order: what [`host_entries`] gives. An error ends the section in which it is.
#[derive(Clone, Debug)]
pub struct HostEntries<'a> {
    file: &'a File<'a>,
    /// Index of the next section.
    section: u32,
    /// What is left of the section at hand.
    rest: Option<(Pointers<'a>, Layout, Span<'a>)>,
}

#[derive(Clone, Copy, Debug)]
enum Layout {
    Old(Producer),
    New,
}

impl Layout {
    /// By the name of the section.
    fn of(name: Name<'_>) -> Option<Self> {
        Some(match name.as_bytes() {
            b"llvm_offload_entries" => Self::New,
            b"omp_offloading_entries" => Self::Old(Producer::OPENMP),
            b"cuda_offloading_entries" => Self::Old(Producer::CUDA),
            b"hip_offloading_entries" => Self::Old(Producer::HIP),
            _ => return None,
        })
    }

    const fn size(self) -> u64 {
        match self {
            Self::Old(_) => size_of::<raw::OldOffloadEntry>() as u64,
            Self::New => size_of::<raw::OffloadEntry>() as u64,
        }
    }
}

impl<'a> HostEntries<'a> {
    /// Begins with a section.
    fn open(&mut self, index: u32, section: SectionHeader, layout: Layout) -> Result<(), Error> {
        let pointers = Pointers::open(self.file, index, section)?;
        let span = pointers.span()?;
        self.rest = Some((pointers, layout, span));
        Ok(())
    }
}

impl<'a> Iterator for HostEntries<'a> {
    type Item = Result<HostEntry<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((pointers, layout, span)) =
                self.rest.take().filter(|(.., span)| span.size() != 0)
            {
                let entry = read(&pointers, layout, span);
                if entry.is_ok() {
                    self.rest = span.tail(layout.size()).map(|rest| (pointers, layout, rest));
                }
                return Some(entry);
            }
            let index = self.section;
            let section = self.file.sections().get(usize::try_from(index).ok()?)?;
            self.section = index.saturating_add(1);
            let layout = Layout::of(self.file.section_name(&section).unwrap_or_default());
            if let Some(Err(error)) = layout.map(|layout| self.open(index, section, layout)) {
                return Some(Err(error));
            }
        }
    }
}

impl FusedIterator for HostEntries<'_> {}

/// The entry at the start of `span`.
fn read<'a>(
    pointers: &Pointers<'a>,
    layout: Layout,
    span: Span<'a>,
) -> Result<HostEntry<'a>, Error> {
    const WHAT: &str = "offload entry";
    let at = span.at();
    let pointer = |offset: u64, value: u64| pointers.get(at.saturating_add(offset), value);
    let (producer, flags, address, name, size) = match layout {
        Layout::Old(producer) => {
            let raw: &raw::OldOffloadEntry = span.row(WHAT, 0)?;
            let (address, name) = (pointer(0, raw.addr.get())?, pointer(8, raw.name.get())?);
            (producer, raw.flags.get(), address, name, raw.size.get())
        }
        Layout::New => {
            let raw: &raw::OffloadEntry = span.row(WHAT, 0)?;
            let (address, name) =
                (pointer(16, raw.address.get())?, pointer(24, raw.symbol_name.get())?);
            (Producer(raw.kind.get()), raw.flags.get(), address, name, raw.size.get())
        }
    };
    Ok(HostEntry { at, producer, flags, address, name: pointers.text(name), size })
}
