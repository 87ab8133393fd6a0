//! The steps of a load into this process, from a layout on. A state has what there is after its step, and the step takes the state before
//! it: nothing is there too early, and a step that fails drops what the ones before it have made, the last thing first.

use crate::Host;
use crate::at_once;
use crate::contents::{Placed, code, copy_constants, globals, moved, sections, segments};
use crate::dlsym::names::Names;
use crate::error::Error;
use crate::external::External;
use crate::fragments::Fragments;
use crate::initialize::Calls;
use crate::memory::Mapping;
use crate::module::Parts;
use crate::notable::Notable;
use crate::observer::{Loaded, Observed, Observer};
use crate::resolvers::Resolvers;
use crate::switches::Switches;
use crate::symbols::{Exports, LoadSymbols};
use crate::threads::{self, Threads};
use crate::unwind::{self, Extent, Unwinding};
use core::ops::Range;
use elf_core::SegmentFlags;
use elf_layout::Layout;
use std::ffi::CString;
use std::sync::Arc;

/// A layout that has memory, and its thread-local variables a block if there are any: all addresses are known.
pub(super) struct Allocated<'l> {
    layout: &'l Layout<'l, 'l, Host>,
    memory: Mapping,
    threads: Option<Box<Threads>>,
}

/// The image is in its memory, which is writable still.
pub(super) struct Relocated<'l> {
    allocated: Allocated<'l>,
    code: Vec<Range<u64>>,
    fragments: Fragments,
}

/// The image is checked as well.
pub(super) struct Checked<'l> {
    relocated: Relocated<'l>,
    calls: Calls,
    resolvers: Resolvers,
    switches: Switches,
}

/// What the module of a load knows of it.
pub(super) struct Contents {
    globals: Vec<Box<[u64]>>,
    segments: Box<[(Range<u64>, SegmentFlags)]>,
    /// If its code looks for names when it runs.
    names: Option<Names>,
}

impl Contents {
    /// Of an image at `base`, with these thread-local variables.
    pub(super) fn of(
        layout: &Layout<'_, '_, Host>,
        base: u64,
        variables: &[(Box<[u8]>, External)],
        looks_up: bool,
    ) -> Self {
        let (globals, segments) = (globals(layout, base), segments(layout, base));
        let names = looks_up.then(|| {
            let objects = layout.files().iter().copied().map(Some);
            let is_taken = |object, symbol| layout.is_definition(object, symbol);
            let code = code(layout, base);
            let exports = Exports::collect(objects, &globals, &code, variables, is_taken);
            Names::new(exports, &segments)
        });
        Self { globals, segments, names }
    }
}

/// And where the sections of the objects are.
pub(super) struct Sections {
    sections: Vec<Box<[Placed]>>,
    moved: Vec<Box<[(u64, u64)]>>,
}

impl Sections {
    /// Of an image at `base`.
    pub(super) fn of(layout: &Layout<'_, '_, Host>, base: u64) -> Self {
        Self { sections: sections(layout, base), moved: moved(layout, base) }
    }
}

/// The segments have their permissions.
pub(super) struct Protected<'l>(Checked<'l>);

/// Unwinders and observers know the load. They forget it before the memory goes.
pub(super) struct Registered<'l> {
    observed: Vec<Observed>,
    unwinding: Unwinding,
    protected: Protected<'l>,
}

impl<'l> Allocated<'l> {
    /// Gives the thread-local variables of a layout that has memory their block.
    ///
    /// # Errors
    /// [`Error::ThreadLocal`]; [`Error::Layout`] if their initial values cannot be relocated.
    pub(super) fn new(
        layout: &'l mut Layout<'_, '_, Host>,
        mut memory: Mapping,
    ) -> Result<Self, Error> {
        let base = memory.address();
        let mut threads = None;
        if let Some(block) = layout.tls_block() {
            layout.write_tls_block(memory.bytes_mut(), base).map_err(Error::Layout)?;
            let access = layout.options().thread_local;
            let own = Threads::new(&block, memory.bytes_mut(), access)?;
            layout.set_static_tls_block(own.static_tls_block());
            threads = Some(Box::new(own));
        }
        Ok(Self { layout, memory, threads })
    }

    /// The layout, and the address of its image.
    pub(super) fn image(&self) -> (&'l Layout<'l, 'l, Host>, u64) {
        (self.layout, self.memory.address())
    }

    /// The thread-local variables of `objects` that later loads may use, by name.
    pub(super) fn variables(&self, objects: &[usize]) -> Vec<(Box<[u8]>, External)> {
        let own = self.threads.as_deref();
        own.map(|own| threads::exports(self.layout, objects, own)).unwrap_or_default()
    }

    /// Copies the sections and relocates them.
    ///
    /// # Errors
    /// [`Error::Layout`], [`Error::Fragment`].
    pub(super) fn relocate(
        mut self,
        notable: &Notable,
        links: &mut LoadSymbols<'_>,
    ) -> Result<Relocated<'l>, Error> {
        let (layout, base) = self.image();
        let bytes = layout.files().iter().map(|file| file.bytes().len() as u64).sum();
        let worth = self.memory.worth_bringing_in(layout.segments(), bytes);
        let image = self.memory.bytes_mut();
        at_once::write(layout, image, base, &worth)?;
        copy_constants(layout, image, links);
        let fragments = Fragments::collect(layout, &notable.fragments, image, base)?;
        Ok(Relocated { allocated: self, code: code(layout, base), fragments })
    }
}

impl<'l> Relocated<'l> {
    /// Checks what will be called, and what unwinders will read.
    ///
    /// # Errors
    /// [`Error::Initializer`], [`Error::Unwinding`].
    pub(super) fn check(mut self, notable: &Notable) -> Result<Checked<'l>, Error> {
        let (layout, base) = self.allocated.image();
        let (image, code) = (&*self.allocated.memory.bytes_mut(), &self.code);
        let calls = Calls::collect(layout, &notable.calls, image, base, code)?;
        unwind::check(layout, image, base, code)?;
        let resolvers = Resolvers::collect(layout, base);
        let switches = if layout.options().replaceable_functions {
            Switches::collect(layout, base)
        } else {
            Switches::default()
        };
        Ok(Checked { relocated: self, calls, resolvers, switches })
    }
}

impl<'l> Checked<'l> {
    /// Gives the segments their permissions; words that resolvers are to fill stay writable up to then.
    ///
    /// # Errors
    /// [`Error::WriteExecute`], [`Error::Map`].
    pub(super) fn protect(mut self) -> Result<Protected<'l>, Error> {
        let Allocated { layout, memory, .. } = &mut self.relocated.allocated;
        let late = (!self.resolvers.are_none()).then(|| layout.got().0);
        memory.protect(layout.segments(), late)?;
        Ok(Protected(self))
    }
}

impl<'l> Protected<'l> {
    /// Makes the unwinding tables known, and tells the observers.
    ///
    /// # Errors
    /// [`Error::Observer`].
    pub(super) fn register(self, observers: &[Arc<dyn Observer>]) -> Result<Registered<'l>, Error> {
        let Relocated { allocated, code, .. } = &self.0.relocated;
        let Allocated { layout, memory, threads } = allocated;
        let tables = unwind::tables(layout, memory.address());
        let extent = Extent {
            segments: segments(layout, memory.address()),
            variables: threads.as_deref().map(Threads::range_end),
            name: CString::default(),
        };
        // SAFETY: the tables are relocated and checked, in memory that the module keeps and that is not writable any more.
        let unwinding = unsafe { Unwinding::register(tables, code, extent) };
        let loaded = Loaded::new(layout, memory);
        let observed = observers.iter().map(|observer| observer.loaded(&loaded));
        let observed = observed.filter_map(Result::transpose).collect::<Result<_, _>>();
        let observed = observed.map_err(Error::Observer)?;
        Ok(Registered { observed, unwinding, protected: self })
    }
}

impl Registered<'_> {
    /// What of it stays when the layout is gone, with what the load has asked `links` for.
    pub(super) fn into_parts(
        self,
        (contents, sections): (Contents, Sections),
        variables: Vec<(Box<[u8]>, External)>,
        links: &mut LoadSymbols<'_>,
    ) -> Parts {
        let Self { observed, unwinding, protected: Protected(checked) } = self;
        let Checked { relocated, calls, resolvers, switches } = checked;
        let Relocated { allocated, code, fragments } = relocated;
        let Allocated { memory, threads, .. } = allocated;
        let Contents { globals, segments, names } = contents;
        let Sections { sections, moved } = sections;
        let names = names.map(|names| names.enter(&segments));
        Parts {
            names,
            globals,
            code,
            sections,
            moved,
            segments,
            calls,
            fragments,
            observed,
            unwinding,
            resolvers,
            switches,
            variables,
            registers: links.registers(),
            memory,
            threads,
            keepers: links.take_keepers(),
        }
    }
}
