//! Which loads there are for who asks the C library for what it has loaded: all of this process, by the addresses of their code.
//!
//! A load that has a C++ runtime linked in (`libgcc_eh.a`, libunwind of LLVM) has an unwinder of its own, which does not look into the
//! tables that `__register_frame` of the process was given. It asks `_dl_find_object` or `dl_iterate_phdr`, whose answers for
//! loads are made of this. Collectors of garbage and runtimes (D's) ask the latter for data, and for thread-local variables.

use super::format;
use super::library_table::LibraryTable;
use super::table::Table;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use elf_core::SegmentFlags;
use elf_core::eh_frame::{Described, Places};
use exec_core::sync::{OnceLock, RwLock};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;

/// Loads by the first address of a stretch of their code.
static LOADS: RwLock<BTreeMap<u64, (u64, Arc<Load>)>> = RwLock::new(BTreeMap::new());

/// How many loads came, and how many went.
static COMINGS: AtomicU64 = AtomicU64::new(0);
static GOINGS: AtomicU64 = AtomicU64::new(0);

/// The head of an index of frames (`.eh_frame_hdr`; LSB Core, "Exception Frame Header") that has no index: version 1, an address, no
/// count. An unwinder then reads entry after entry from that address on.
#[derive(Debug)]
#[repr(C, align(4))]
pub(super) struct Header([u8; 12]);

impl Header {
    fn new(address: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = address.to_le_bytes();
        Self([1, 0, 0xff, 0xff, a, b, c, d, e, f, g, h])
    }

    /// The address that it leads to.
    #[cfg(target_arch = "arm")]
    pub(super) const fn address(&self) -> u64 {
        let [_, _, _, _, address @ ..] = self.0;
        u64::from_le_bytes(address)
    }
}

/// What a load has in memory.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    /// Its segments.
    pub(crate) segments: Box<[(Range<u64>, SegmentFlags)]>,
    /// The number of the block with its thread-local variables, and how far into that block they go, in bytes.
    pub(crate) variables: Option<(u64, u64)>,
    /// What a library is called; empty of other loads.
    pub(crate) name: CString,
}

/// The unwinding tables of a load.
#[derive(Debug)]
pub(super) enum Tables {
    /// Checked.
    Checked(Box<[Table]>),
    /// That of a library.
    Unchecked(LibraryTable),
}

/// A load.
#[derive(Debug)]
pub(super) struct Load {
    extent: Extent,
    tables: Tables,
    /// Made when an unwinder asks for the first time: most loads never throw.
    index: OnceLock<Index>,
}

/// What tables describe.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// By rising address. The head leads to the FDE itself, so that an unwinder finds it at once.
    functions: Box<[(Range<u64>, Header)]>,
    /// The code that each table describes.
    tables: Box<[(Range<u64>, Header)]>,
}

/// The tables were checked when they were loaded.
struct Checked;

impl Places for Checked {
    fn is_code(&self, _: u64, _: u64) -> bool {
        true
    }
    fn is_data(&self, _: u64) -> bool {
        true
    }
    fn is_personality(&self, _: u64) -> bool {
        true
    }
    fn word(&self, _: u64) -> Option<u64> {
        Some(1)
    }
}

impl Load {
    pub(super) const fn extent(&self) -> &Extent {
        &self.extent
    }

    pub(super) fn index(&self) -> &Index {
        self.index.get_or_init(|| match &self.tables {
            Tables::Checked(tables) => Index::of(tables),
            Tables::Unchecked(table) => Index::of_library(table).unwrap_or_default(),
        })
    }
}

impl Index {
    /// What the table of a library describes, if it is right: an unwinder finds no frames of one with errors.
    fn of_library(table: &LibraryTable) -> Option<Self> {
        let (mut functions, mut extent) = (Vec::new(), None);
        let each = |address, described| functions.push(function(address, described, &mut extent));
        let Table { address, .. } = table.check_each(each).ok()??;
        functions.sort_unstable_by_key(|(range, _)| range.start);
        let extent = extent.map(|extent| (extent, Header::new(address)));
        Some(Self { functions: functions.into(), tables: extent.into_iter().collect() })
    }

    fn of(tables: &[Table]) -> Self {
        let (mut functions, mut extents) = (Vec::new(), Vec::new());
        for table in tables {
            let address = table.address;
            let start = core::ptr::with_exposed_provenance::<u8>(address as usize);
            // SAFETY: who entered the table guarantees it.
            let bytes = unsafe { core::slice::from_raw_parts(start, table.size as usize) };
            let mut extent: Option<Range<u64>> = None;
            let each = |described: Described| {
                functions.push(function(address, described, &mut extent));
            };
            // they were checked before
            let _ = format::check_each(bytes, table, &Checked, each);
            extents.extend(extent.map(|extent| (extent, Header::new(address))));
        }
        functions.sort_unstable_by_key(|(range, _)| range.start);
        Self { functions: functions.into(), tables: extents.into() }
    }

    /// The function that an address is in.
    pub(super) fn function(&self, address: u64) -> Option<&(Range<u64>, Header)> {
        let end = self.functions.partition_point(|(range, _)| range.start <= address);
        let found = self.functions.get(end.checked_sub(1)?)?;
        found.0.contains(&address).then_some(found)
    }

    /// The code that each table describes, with a head that leads to it; none where unwinders read no such heads.
    pub(super) fn tables(&self) -> &[(Range<u64>, Header)] {
        if format::REGISTERS { &self.tables } else { &[] }
    }
}

/// What a table at this address describes, with a head that leads to its FDE; `extent` grows by it.
fn function(
    table: u64,
    described: Described,
    extent: &mut Option<Range<u64>>,
) -> (Range<u64>, Header) {
    let end = described.address.saturating_add(described.size);
    let known = extent.clone().unwrap_or(described.address..end);
    *extent = Some(known.start.min(described.address)..known.end.max(end));
    (described.address..end, Header::new(table.wrapping_add(described.at)))
}

/// A load that is known as long as this lives.
#[derive(Debug, Default)]
pub(crate) struct Entered {
    starts: Box<[u64]>,
}

impl Entered {
    /// Makes a load known, with its tables, as those of the code in `code`.
    ///
    /// # Safety
    /// They can be read as long as this lives, and do not change.
    pub(super) unsafe fn new(tables: Tables, code: &[Range<u64>], extent: Extent) -> Self {
        // one without code is known by where its data begin: no code is there
        let data = extent.segments.first().map(|(range, _)| range.start..range.start);
        let keys: Box<[Range<u64>]> =
            if code.is_empty() { data.into_iter().collect() } else { code.into() };
        if keys.is_empty() {
            return Self::default();
        }
        let load = Arc::new(Load { extent, tables, index: OnceLock::new() });
        let mut loads = LOADS.write();
        for range in &keys {
            loads.insert(range.start, (range.end, Arc::clone(&load)));
        }
        COMINGS.fetch_add(1, Ordering::Relaxed);
        Self { starts: keys.iter().map(|range| range.start).collect() }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.starts.is_empty() {
            return;
        }
        let mut loads = LOADS.write();
        let gone: Vec<_> = self.starts.iter().filter_map(|start| loads.remove(start)).collect();
        GOINGS.fetch_add(1, Ordering::Relaxed);
        drop(loads);
        drop(gone);
    }
}

/// The load that an address is in, and the stretch of code.
pub(super) fn load_of(address: u64) -> Option<(Range<u64>, Arc<Load>)> {
    let loads = LOADS.read();
    let (&start, (end, load)) = loads.range(..=address).next_back()?;
    (address < *end).then(|| (start..*end, Arc::clone(load)))
}

/// All loads, each once. What their tables describe is known then: they are not read any more, and those whose frames nobody is in may go.
pub(super) fn loads() -> Vec<Arc<Load>> {
    let loads = LOADS.read();
    let mut all: Vec<_> = loads.values().map(|(_, load)| Arc::clone(load)).collect();
    // one with several stretches of code is there several times
    all.sort_unstable_by_key(Arc::as_ptr);
    all.dedup_by(|one, other| Arc::ptr_eq(one, other));
    all.iter().for_each(|load| _ = load.index());
    drop(loads);
    all
}

/// How many loads came, and how many went.
pub(super) fn changes() -> (u64, u64) {
    (COMINGS.load(Ordering::Relaxed), GOINGS.load(Ordering::Relaxed))
}

/// Does something as a thread would that has interrupted another one's change of the list.
#[cfg(all(test, target_env = "gnu", not(target_arch = "arm")))]
pub(super) fn while_locked(something: impl FnOnce()) {
    let loads = LOADS.write();
    something();
    drop(loads);
}
