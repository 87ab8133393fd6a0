//! Constructors and destructors: what the objects want called first and last (gABI ch. 8, "Initialization and Termination").

use crate::Host;
use crate::c_library;
use crate::contents::Externals;
use crate::error::Error;
use crate::section_names::first_of_name;
use crate::start::Start;
use crate::word;
use core::ops::Range;
use elf_core::names::{SHT_FINI_ARRAY, SHT_INIT_ARRAY, SHT_PREINIT_ARRAY, SHT_PROGBITS};
use elf_core::{File, Name, SectionFlags, SectionHeader};
use elf_layout::Layout;

/// The functions to call, in the order to call them.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    initialize: Vec<u64>,
    /// How many of them come before all else (`.preinit_array`).
    first: usize,
    finalize: Vec<u64>,
    /// What the objects' `__dso_handle` is: `__cxa_atexit` knows their destructors by it.
    handle: u64,
}

const ALLOC: SectionFlags = SectionFlags::ALLOC;
const EXECINSTR: SectionFlags = SectionFlags::EXECINSTR;

/// First or last.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// Before fragments of `.init`, too.
    Preinitialize,
    Initialize,
    Finalize,
}

/// Where a section of functions stands among others: those before `main` of the program first, then by priority, and those of one
/// priority by name, as GNU ld sorts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'a>(u32, &'a str);

impl Rank<'_> {
    /// Of `.preinit_array`.
    const FIRST: Self = Self(0, "");
    /// Of sections without a priority of their own.
    const LAST: Self = Self(u32::MAX, "");
}

impl Calls {
    /// Reads the arrays of function addresses out of the image, which is relocated for `base`; these objects have some.
    ///
    /// # Errors
    /// [`Error::Initializer`] if an address is neither in the objects' code nor that of a symbol that they do not define.
    pub(crate) fn collect(
        layout: &Layout<'_, '_, Host>,
        objects: &[usize],
        image: &[u8],
        base: u64,
        code: &[Range<u64>],
    ) -> Result<Self, Error> {
        let (mut initialize, mut finalize) = (Vec::new(), Vec::new());
        let others = Externals::new(layout);
        for &object in objects {
            let Some(file) = layout.files().get(object) else { continue };
            let mut next = 0u32;
            file.sections().try_for_each(|header| {
                let section = next;
                next = section.wrapping_add(1);
                if !may_have_calls(file, &header) {
                    return Ok(());
                }
                let Some((list, rank, backwards)) =
                    kind(&header, file.section_name(&header).unwrap_or_default())
                else {
                    return Ok(());
                };
                let Some(offset) = layout.section(object, section) else { return Ok(()) };
                let bytes = usize::try_from(offset).ok().and_then(|offset| image.get(offset..));
                let bytes = bytes
                    .and_then(|rest| rest.get(..usize::try_from(header.size).ok()?))
                    .unwrap_or_default();
                let words = word::words(bytes);
                let mut addresses: Vec<u64> =
                    words.filter(|address| !matches!(*address, 0 | word::MAX)).collect();
                let is_sound = |address: &&u64| {
                    let is_own = code.iter().any(|range| range.contains(address));
                    is_own || others.contains(**address)
                };
                if let Some(&address) = addresses.iter().find(|address| !is_sound(address)) {
                    return Err(Error::Initializer {
                        object,
                        section,
                        name: Box::default(),
                        address,
                    });
                }
                if backwards {
                    addresses.reverse();
                }
                let calls =
                    if matches!(list, Order::Finalize) { &mut finalize } else { &mut initialize };
                calls.extend(addresses.into_iter().map(|address| (rank, address)));
                Ok(())
            })?;
        }
        // stable: equal ranks stay in the order of the objects
        initialize.sort_by_key(|(rank, _)| *rank);
        finalize.sort_by_key(|(rank, _)| *rank);
        finalize.reverse();
        let first = initialize.partition_point(|(rank, _)| *rank == Rank::FIRST);
        let addresses =
            |calls: Vec<(Rank<'_>, u64)>| calls.into_iter().map(|(_, address)| address).collect();
        let handle = base.wrapping_add(layout.dso_handle().unwrap_or(0));
        let (initialize, finalize) = (addresses(initialize), addresses(finalize));
        Ok(Self { initialize, first, finalize, handle })
    }

    /// Whether there are no constructors.
    pub(crate) const fn needs_no_initialization(&self) -> bool {
        self.initialize.is_empty()
    }

    /// Addresses of constructors, in order.
    pub(crate) fn constructors(&self) -> &[u64] {
        &self.initialize
    }

    /// Addresses of destructors, in order.
    pub(crate) fn destructors(&self) -> &[u64] {
        &self.finalize
    }

    /// The objects' `__dso_handle`.
    pub(crate) const fn handle(&self) -> u64 {
        self.handle
    }

    /// Calls what the objects' code has registered with `__cxa_atexit` under their handle, which then is free again.
    ///
    /// # Safety
    /// What was registered, if anything, is sound to call, and still mapped.
    pub(crate) unsafe fn run_registered(&self) {
        // SAFETY: the handle is this module's alone, so that nothing of others is called; the caller guarantees ours.
        unsafe {
            c_library::finalize(core::ptr::with_exposed_provenance_mut(self.handle as usize))
        };
    }

    /// Calls them, with `argc`, `argv` and the environment as arguments.
    ///
    /// # Safety
    /// They are mapped and executable, and sound to call with these arguments.
    pub(crate) unsafe fn run(&self, order: Order, start: Start) {
        let (first, rest) = self.initialize.split_at_checked(self.first).unwrap_or_default();
        let calls = match order {
            Order::Preinitialize => first,
            Order::Initialize => rest,
            Order::Finalize => &self.finalize,
        };
        // SAFETY: as the caller says.
        unsafe { start.call(calls) };
    }
}

/// Whether a section may be an array of functions to call.
pub(crate) fn may_have_calls(file: &File<'_>, header: &SectionHeader) -> bool {
    // most are writable; of constants by clang, and of Rust, they are read-only
    header.flags & (ALLOC | EXECINSTR) == ALLOC
        && match header.r#type {
            SHT_PREINIT_ARRAY | SHT_INIT_ARRAY | SHT_FINI_ARRAY => true,
            SHT_PROGBITS => {
                matches!(first_of_name::<6>(file, header).as_ref(), Some(b".ctors" | b".dtors"))
            }
            _ => false,
        }
}

/// Which list a section adds to, at which rank, and whether its entries are called from the last to the first.
fn kind<'a>(header: &SectionHeader, name: Name<'a>) -> Option<(Order, Rank<'a>, bool)> {
    let is_of = |list: &str| {
        let rest = name.as_bytes().strip_prefix(list.as_bytes());
        rest.is_some_and(|rest| matches!(rest, [] | [b'.', ..]))
    };
    // the priority of these counts downwards
    let downwards = |it| 65535u32.saturating_sub(it);
    match header.r#type {
        SHT_PREINIT_ARRAY => Some((Order::Preinitialize, Rank::FIRST, false)),
        SHT_INIT_ARRAY => Some((Order::Initialize, rank(name, ".init_array", |it| it), false)),
        SHT_FINI_ARRAY => Some((Order::Finalize, rank(name, ".fini_array", |it| it), false)),
        SHT_PROGBITS if is_of(".ctors") => {
            Some((Order::Initialize, rank(name, ".ctors", downwards), true))
        }
        SHT_PROGBITS if is_of(".dtors") => {
            Some((Order::Finalize, rank(name, ".dtors", downwards), true))
        }
        _ => None,
    }
}

/// The rank of a section: `list`, or `list.PRIORITY`. What is no number comes before all priorities.
fn rank<'a>(name: Name<'a>, list: &str, priority: impl Fn(u32) -> u32) -> Rank<'a> {
    let name = name.to_str().unwrap_or_default();
    let Some(suffix) = name.strip_prefix(list).and_then(|rest| rest.strip_prefix('.')) else {
        return Rank::LAST;
    };
    let number = suffix.parse().map_or(1, |number| priority(number).saturating_add(2));
    Rank(number.min(u32::MAX - 1), name)
}
