//! Whether libraries define the versions that others need of them, used or not, as ld.so looks before it relocates anything.

use super::error::LibraryError;
use super::group::{Edge, Node, explain};
use super::handle::DefinedVersions;
use super::library_file::LibraryFile;
use super::loaded::Member;
use crate::error::Error;
use elf_core::Name;
use elf_core::names::{DT_NEEDED, DT_VERDEF, VER_FLG_WEAK};
use elf_core::version::Versions;
use elf_image::Exports;

/// Versions that say what a dynamic loader has to be able to (packed relative relocations, TLS descriptors): not glibc's is asked here.
const OF_LOADERS: &[u8] = b"GLIBC_ABI_";

/// Looks for the versions that libraries of a load need.
///
/// # Errors
/// [`LibraryError::Version`] of the first that is not defined; a list of versions is damaged.
pub(super) fn check(nodes: &[Node]) -> Result<(), Error> {
    nodes.iter().enumerate().try_for_each(|(index, node)| {
        check_node(nodes, node).map_err(|error| explain(nodes, index, error.into()))
    })
}

fn check_node(nodes: &[Node], node: &Node) -> Result<(), LibraryError> {
    let dynamic = node.content.dynamic();
    let Some(versions) = node.content.exports().and_then(Exports::versions) else { return Ok(()) };
    let edge_of = |file: Name<'_>| {
        let names = dynamic.texts(DT_NEEDED).map(Result::ok);
        let found = names.zip(&node.needed).find(|(name, _)| *name == Some(file));
        found.map(|(_, edge)| edge)
    };
    for need in versions.needs() {
        let need = need.map_err(elf_image::Error::from)?;
        // a file that it does not need is nobody's to be asked
        let Some(defined) = edge_of(need.file).and_then(|edge| Defined::of(nodes, edge)) else {
            continue;
        };
        for version in need.versions() {
            let version = version.map_err(elf_image::Error::from)?;
            let may_lack = version.flags & VER_FLG_WEAK != 0
                || version.name.as_bytes().starts_with(OF_LOADERS);
            if !may_lack && !defined.has(version.name, version.hash)? {
                let (file, version) = (need.file.to_string(), version.name.to_string());
                return Err(LibraryError::Version { file, version });
            }
        }
    }
    Ok(())
}

/// The versions that a library defines.
enum Defined<'n> {
    /// Of the dynamic loader.
    Process(DefinedVersions<'n>),
    /// Out of bytes.
    File(Versions<'n>),
}

impl<'n> Defined<'n> {
    /// Those of a library that is needed; nothing if its symbols have none: then all of them stand for every version.
    fn of(nodes: &'n [Node], edge: &'n Edge) -> Option<Self> {
        let content: &LibraryFile = match edge {
            Edge::Node(index) => &nodes.get(*index)?.content,
            Edge::Member(Member::Loaded(held)) => &held.content,
            Edge::Member(Member::Process(handle)) => return handle.versions().map(Self::Process),
        };
        content.dynamic().value(DT_VERDEF)?;
        content.exports()?.versions().map(Self::File)
    }

    fn has(&self, wanted: Name<'_>, hash: u32) -> Result<bool, LibraryError> {
        let versions = match self {
            Self::Process(versions) => return Ok(versions.has(wanted.as_bytes(), hash)),
            Self::File(versions) => versions,
        };
        for definition in versions.definitions() {
            let name = definition.and_then(|definition| definition.name());
            if name.map_err(elf_image::Error::from)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
