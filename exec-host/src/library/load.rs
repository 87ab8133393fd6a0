//! How a library is loaded, with those that it needs: a step after the other, each for all of them.

use super::error::LibraryError;
use super::file::OpenFile;
use super::group::{self, Node, explain};
use super::inside;
use super::late::LateFunctions;
use super::library_file::LibraryFile;
use super::loaded::{Held, Loaded};
use super::needed::Given;
use super::of_process;
use super::order;
use super::part::{Calls, Part};
use super::plug_ins;
use super::resolve::Resolver;
use super::scope::{Own, Scope, share};
use super::unit::hold;
use super::versions;
use crate::dlsym::names;
use crate::error::Error;
use crate::start;
use crate::symbols::Keeper;
use crate::threads::exit;
use crate::unwind;
use core::cell::{Cell, RefCell};
use elf_core::names::DF_SYMBOLIC;
use std::path::Path;
use std::sync::Arc;

/// Loads the library of this file, and what it needs, and calls their constructors. `folder` is where it is said to be.
///
/// # Safety
/// Its code is sound to call, constructors, resolvers and destructors above all, and that of libraries that it needs.
pub(crate) unsafe fn load(
    content: LibraryFile,
    in_file: Option<&OpenFile<'_>>,
    given: &mut Given<'_>,
    folder: Option<&Path>,
) -> Result<Held, Error> {
    unwind::prepare();
    names::answer_libraries(inside::find, plug_ins::is_handle);
    // SAFETY: as the caller guarantees.
    let nodes = unsafe { group::collect(content, given, folder) }?;
    versions::check(&nodes)?;
    // SAFETY: as the caller guarantees.
    let Prepared { loaded, calls, shared, bound } = unsafe { prepare(&nodes, in_file, given) }?;
    let last = order::last(&nodes, &bound);
    let held = hold(loaded, &nodes, &bound, &last);
    for (library, calls) in held.iter().zip(&calls) {
        let (start, size) = (library.memory.address(), library.memory.size());
        let range = start..start.saturating_add(size);
        exit::enter(std::slice::from_ref(&range), start, &library.keeper());
        if calls.stays {
            core::mem::forget(library.clone());
        }
    }
    share(shared, &held);
    if let Some(first) = held.first() {
        first.enter_scope(first);
        plug_ins::enter(first);
    }
    of_process::lead(&held);
    held.iter().for_each(Held::end_with_process);
    let mut calls: Vec<Option<Calls>> = calls.into_iter().map(Some).collect();
    for index in order::to_initialize(&nodes) {
        let calls = calls.get_mut(index).and_then(Option::take);
        if let (Some(library), Some(calls)) = (held.get(index), calls) {
            // a constructor may end the process
            let _ = library.finalize.set(calls.finalize);
            // SAFETY: the addresses are in the code; the caller guarantees it.
            unsafe { start::of_process().call(&calls.initialize) };
        }
    }
    let nothing = || LibraryError::Refused { reason: "nothing is loaded".into() };
    held.into_iter().next().ok_or_else(|| nothing().into())
}

/// Libraries whose constructors have not run yet.
struct Prepared {
    loaded: Vec<Loaded>,
    calls: Vec<Calls>,
    /// Symbols that all share, where they are, and whose they are.
    shared: Vec<(Box<[u8]>, u64, usize)>,
    /// Which libraries refer to which.
    bound: Vec<(usize, usize)>,
}

/// All but the constructors.
unsafe fn prepare(
    nodes: &[Node],
    in_file: Option<&OpenFile<'_>>,
    given: &mut Given<'_>,
) -> Result<Prepared, Error> {
    let count = nodes.len();
    let (mut own, mut parts) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for (index, node) in nodes.iter().enumerate() {
        let in_file = in_file.filter(|_| index == 0);
        let part = Part::new(node, in_file, given.limit, count > 1);
        let part = part.map_err(|error| explain(nodes, index, error))?;
        let exports = node.content.exports();
        let is_symbolic = part.facts.is_symbolic || part.facts.flags & DF_SYMBOLIC != 0;
        let bias = part.mapped.bias;
        own.push(Own { file: &node.file, exports, bias, is_symbolic, block: Cell::new(None) });
        parts.push(part);
    }
    // code of one may reach variables of another at one distance from the thread pointer
    let reach: Vec<bool> = parts.iter().map(|part| part.reaches_others).collect();
    for (index, part) in parts.iter_mut().enumerate() {
        let mut others = reach.iter().enumerate().filter(|(other, _)| *other != index);
        part.wants_tp_offset = others.any(|(_, reaches)| *reaches);
    }
    let scope = RefCell::new(Scope::new(&own, nodes, &mut *given.symbols));
    let resolvers = own.iter().zip(nodes).enumerate().map(|(index, (own, node))| {
        let late = (given.is_lazy && !node.binds_now).then(LateFunctions::default);
        Resolver::new(index, own, &scope, late)
    });
    let mut resolvers: Vec<Resolver<'_, '_>> = resolvers.collect();
    let mut all = All { nodes, parts: &mut parts, resolvers: &mut resolvers };
    all.each(Part::relocate)?;
    all.each(Part::give_threads)?;
    all.each(Part::relocate_thread_local)?;
    all.each(Part::protect)?;
    all.each(Part::answer)?;
    all.each(|part, _| part.mapped.end_relocation())?;
    let found = resolvers.into_iter().map(|resolver| {
        let late = resolver.late.and_then(LateFunctions::into_keeper);
        (resolver.pairs.into_inner(), resolver.externals.into_inner(), late)
    });
    let found: Vec<_> = found.collect();
    let Scope { keepers, shared, bound, .. } = scope.into_inner();
    let (loaded, calls) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut prepared = Prepared { loaded, calls, shared, bound };
    for (index, ((part, node), (pairs, externals, late))) in
        parts.into_iter().zip(nodes).zip(found).enumerate()
    {
        let own = keepers.iter().filter(|(of, _)| *of == index);
        let kept = node.kept.iter().map(|kept| Arc::clone(kept) as Keeper);
        let keepers = own.map(|(_, keeper)| Arc::clone(keeper)).chain(late).chain(kept).collect();
        // SAFETY: the caller guarantees the code.
        let finished = unsafe { part.finish(node, given, pairs, externals, keepers) };
        let (loaded, calls) = finished.map_err(|error| explain(nodes, index, error))?;
        prepared.loaded.push(loaded);
        prepared.calls.push(calls);
    }
    Ok(prepared)
}

/// The libraries of a load, and what their relocations are told.
struct All<'a, 'n, 'r, 's> {
    nodes: &'n [Node],
    parts: &'a mut [Part<'n>],
    resolvers: &'a mut [Resolver<'r, 's>],
}

impl<'n, 'r, 's> All<'_, 'n, 'r, 's> {
    /// A step of all of them: those that are needed before those that need them, as ld.so has it.
    fn each(
        &mut self,
        step: impl Fn(&mut Part<'n>, &mut Resolver<'r, 's>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let all = self.parts.iter_mut().zip(&mut *self.resolvers).enumerate().rev();
        for (index, (part, resolver)) in all {
            step(part, resolver).map_err(|error| explain(self.nodes, index, error))?;
        }
        Ok(())
    }
}
