//! The libraries of a load: the one that is opened, and those out of bytes that it needs, breadth first.

use super::error::LibraryError;
use super::handle::Handle;
use super::library_file::LibraryFile;
use super::loaded::Member;
use super::needed::{self, Given};
use crate::error::Error;
use elf_core::names::{
    DF_1_NOOPEN, DF_1_NOW, DF_1_PIE, DF_BIND_NOW, DT_AUXILIARY, DT_BIND_NOW, DT_FILTER, DT_NEEDED,
};
use elf_core::{Name, SegmentFlags};
use elf_image::{DynamicFacts, Image};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A library that is to be loaded.
pub(crate) struct Node {
    pub(crate) content: Arc<LibraryFile>,
    /// Its own name (`DT_SONAME`).
    pub(crate) name: Box<[u8]>,
    /// By which it is needed; nothing of the one that is opened.
    wanted: Box<[u8]>,
    /// The folder that it is said to be in.
    pub(crate) folder: Option<PathBuf>,
    /// Who needs it first.
    parent: usize,
    pub(crate) facts: DynamicFacts,
    /// It wants all functions bound at once (`DT_BIND_NOW`).
    pub(crate) binds_now: bool,
    pub(crate) needed: Vec<Edge>,
    /// What is asked before it, in order (`DT_FILTER`, `DT_AUXILIARY`).
    pub(crate) stand_ins: Vec<Edge>,
    /// As what the dynamic loader has loaded these for it.
    pub(crate) kept: Option<Arc<Handle>>,
    /// What `dladdr` calls it: its path, if that is known, else a name.
    pub(crate) file: Box<[u8]>,
}

/// What a library needs.
pub(crate) enum Edge {
    /// One that is loaded with it, by its number.
    Node(usize),
    /// One that is there.
    Member(Member),
}

/// Most libraries of a load.
const MOST: usize = 1024;

impl Node {
    fn new(content: LibraryFile, wanted: &[u8], parent: usize) -> Result<Self, LibraryError> {
        let content = Arc::new(content);
        let (found, dynamic) = (content.image(), content.dynamic());
        let facts = found.facts()?;
        refuse(found, &facts)?;
        let name: Box<[u8]> = needed::name(dynamic)?.as_bytes().into();
        let file = if name.is_empty() { wanted.into() } else { name.clone() };
        let binds_now = facts.flags & DF_BIND_NOW != 0
            || facts.flags_1 & DF_1_NOW != 0
            || dynamic.value(DT_BIND_NOW).is_some();
        let (wanted, folder) = (wanted.into(), None);
        let (needed, stand_ins, kept) = (Vec::new(), Vec::new(), None);
        Ok(Self {
            content,
            name,
            wanted,
            folder,
            parent,
            facts,
            binds_now,
            needed,
            stand_ins,
            kept,
            file,
        })
    }

    /// What it needs, in order, and whether that is asked before it.
    pub(crate) fn leads(&self) -> impl Iterator<Item = (&Edge, bool)> {
        let needed = self.needed.iter().map(|edge| (edge, false));
        needed.chain(self.stand_ins.iter().map(|edge| (edge, true)))
    }

    fn is_called(&self, name: &[u8]) -> bool {
        !name.is_empty() && (*self.wanted == *name || *self.name == *name)
    }
}

/// Finds all that the library needs, and that these need; what is not out of bytes is opened. `folder` is where it is said to be.
///
/// # Errors
/// [`LibraryError`], of a library that is needed with the name that it is needed by.
///
/// # Safety
/// Constructors of libraries run that the dynamic loader opens.
pub(crate) unsafe fn collect(
    content: LibraryFile,
    given: &mut Given<'_>,
    folder: Option<&Path>,
) -> Result<Vec<Node>, Error> {
    let mut first = Node::new(content, &[], 0)?;
    if let Some(path) = given.path {
        first.file = path.as_os_str().as_bytes().into();
    }
    first.folder = folder.map(Path::to_owned);
    let mut nodes = vec![first];
    let mut index = 0;
    while index < nodes.len() {
        let chain = needers(&nodes, index);
        // SAFETY: as the caller guarantees.
        let found = unsafe { edges(&chain, &mut nodes, given, folder) };
        let found = found.map_err(|error| explain(&nodes, index, error.into()))?;
        if let Some(node) = nodes.get_mut(index) {
            (node.needed, node.stand_ins, node.kept) = (found.needed, found.stand_ins, found.kept);
        }
        index = index.saturating_add(1);
    }
    Ok(nodes)
}

/// The error of a library, by whom it is needed.
pub(crate) fn explain(nodes: &[Node], index: usize, error: Error) -> Error {
    let (mut index, mut error) = (index, error);
    while let Some(node) = nodes.get(index).filter(|_| index != 0) {
        let (name, cause) = (Name(&node.wanted).to_string(), error.to_string());
        error = LibraryError::Needed { name, cause }.into();
        index = node.parent;
    }
    error
}

/// The library of this number, who needs it, and so on up to the one that is opened: their numbers and files.
fn needers(nodes: &[Node], index: usize) -> Vec<(usize, Arc<LibraryFile>)> {
    let (mut chain, mut index) = (Vec::new(), index);
    while let Some(node) = nodes.get(index) {
        chain.push((index, Arc::clone(&node.content)));
        if index == 0 {
            break;
        }
        index = node.parent;
    }
    chain
}

/// What a library needs.
#[derive(Default)]
struct Found {
    needed: Vec<Edge>,
    stand_ins: Vec<Edge>,
    kept: Option<Arc<Handle>>,
}

/// What the first library of the chain needs, in order, and what stands in for it.
unsafe fn edges(
    chain: &[(usize, Arc<LibraryFile>)],
    nodes: &mut Vec<Node>,
    given: &mut Given<'_>,
    folder: Option<&Path>,
) -> Result<Found, LibraryError> {
    let mut needers = Vec::new();
    for (index, content) in chain {
        needers.push((content.dynamic(), folder.filter(|_| *index == 0)));
    }
    let (Some((dynamic, _)), Some((index, _))) = (needers.first(), chain.first()) else {
        return Ok(Default::default());
    };
    let mut found = Vec::new();
    for name in dynamic.texts(DT_NEEDED) {
        let name = name.map_err(elf_image::Error::from)?;
        found.push((name, out_of_bytes(name, *index, nodes, given)?));
    }
    let of_process = |handle| Edge::Member(Member::Process(handle));
    let mut missing = Vec::new();
    for (name, edge) in found.iter_mut().filter(|(_, edge)| edge.is_none()) {
        *edge = needed::there(&needers, *name).map(of_process);
        missing.extend(edge.is_none().then_some(*name));
    }
    // SAFETY: as the caller guarantees. Who of several cannot be loaded is found out below.
    let kept = unsafe { needed::load(&needers, &missing) }.ok().flatten();
    let mut edges = Vec::new();
    for (name, edge) in found {
        edges.push(match edge {
            Some(edge) => edge,
            // SAFETY: as the caller guarantees.
            None => of_process(unsafe { needed::of_loader(&needers, name) }?),
        });
    }
    let mut stand_ins = Vec::new();
    for (tag, is_wanted) in [(DT_FILTER, true), (DT_AUXILIARY, false)] {
        for name in dynamic.texts(tag) {
            let name = name.map_err(elf_image::Error::from)?;
            let found = match out_of_bytes(name, *index, nodes, given) {
                Ok(Some(edge)) => Ok(edge),
                // SAFETY: as the caller guarantees.
                Ok(None) => unsafe { needed::of_loader(&needers, name) }.map(of_process),
                Err(error) => Err(error),
            };
            match found {
                Err(error) if is_wanted => return Err(error),
                // who only would rather have its symbols does without
                found => stand_ins.extend(found.ok()),
            }
        }
    }
    Ok(Found { needed: edges, stand_ins, kept: kept.map(Arc::new) })
}

/// The library of this name that is loaded out of bytes, or is to be.
fn out_of_bytes(
    name: Name<'_>,
    parent: usize,
    nodes: &mut Vec<Node>,
    given: &mut Given<'_>,
) -> Result<Option<Edge>, LibraryError> {
    let wanted = name.as_bytes();
    if let Some((_, found)) = given.loaded.iter().find(|(known, _)| **known == *wanted) {
        return Ok(Some(Edge::Member(Member::Loaded(found.clone()))));
    }
    if let Some(index) = nodes.iter().position(|node| node.is_called(wanted)) {
        return Ok(Some(Edge::Node(index)));
    }
    let Some(bytes) = given.ask(name) else { return Ok(None) };
    let failed = |cause: String| LibraryError::Needed { name: name.to_string(), cause };
    let bytes = match bytes {
        needed::Needed::Loaded(held) => {
            given.loaded.push((wanted.into(), held.clone()));
            return Ok(Some(Edge::Member(Member::Loaded(held))));
        }
        needed::Needed::Bytes(bytes) => bytes,
    };
    let index = nodes.len();
    if index >= MOST {
        return Err(failed(format!("more than {MOST} libraries are needed")));
    }
    let content = LibraryFile::new(bytes);
    let node = content.and_then(|content| Node::new(content, wanted, parent));
    nodes.push(node.map_err(|error| failed(error.to_string()))?);
    Ok(Some(Edge::Node(index)))
}

/// Fails for what is no library to be opened so.
fn refuse(image: &Image<'_>, facts: &DynamicFacts) -> Result<(), LibraryError> {
    if image.is_fixed() || facts.flags_1 & DF_1_PIE != 0 {
        return Err(refused("an executable, not a library"));
    }
    if facts.flags_1 & DF_1_NOOPEN != 0 {
        return Err(refused("the library says that it is not to be opened so (DF_1_NOOPEN)"));
    }
    if image.stack().is_some_and(|stack| stack.contains(SegmentFlags::EXECUTE)) {
        return Err(refused("a library that wants to execute the stack"));
    }
    Ok(())
}

fn refused(reason: &str) -> LibraryError {
    LibraryError::Refused { reason: reason.into() }
}
