//! The objects of a load as files.

use crate::Host;
use crate::at_once::processors;
use crate::budget;
use crate::error::Error;
use elf_core::{ApplyErrorKind, Arch as _, File, Foreign, Name, Role, find};
use elf_layout::ErrorKind;
use exec_core::threads::on_threads;

/// The name of the symbol that a relocation of the objects does not reach, and whether the place takes its address, not a distance.
pub(super) fn out_of_reach<'a, B: AsRef<[u8]>>(
    objects: &'a [B],
    error: &Error,
) -> Option<(Name<'a>, bool)> {
    let (Error::Layout(error) | Error::Object { error, .. }) = error else { return None };
    let elf_layout::Error { object, kind: ErrorKind::Apply(error), .. } = error else {
        return None;
    };
    let ApplyErrorKind::Overflow { .. } = error.kind else { return None };
    let table = File::parse(objects.get(*object)?.as_ref()).ok()?.symbol_table().ok()??;
    let symbol = table.get(error.symbol).ok().filter(elf_core::Symbol::is_undefined)?;
    let is_absolute = find(Host::KINDS, error.r#type)?.value.minus == Role::Zero;
    Some((table.name_of(&symbol).ok()?, is_absolute))
}

/// The headers of all objects, which are checked on all processors if there are many.
pub(super) fn parse<'a>(objects: &[&'a [u8]]) -> Result<Vec<File<'a>>, Error> {
    /// So many are taken at once.
    const MANY: usize = 64;
    if objects.len() <= MANY {
        return (0..).zip(objects).map(parse_one).collect();
    }
    let mut found: Vec<_> = objects.iter().map(|_| None).collect();
    let parts = (0..).step_by(MANY).zip(objects.chunks(MANY)).zip(found.chunks_mut(MANY));
    let parse = |((first, objects), found): ((usize, &[&'a [u8]]), &mut [Option<_>])| {
        for (object, found) in (first..).zip(objects).zip(found) {
            *found = Some(parse_one(object));
        }
        true
    };
    on_threads(processors(), parts, parse, || ());
    found.into_iter().flatten().collect()
}

/// The headers of an object.
fn parse_one<'a>((object, bytes): (usize, &&'a [u8])) -> Result<File<'a>, Error> {
    let damaged = |error| Error::Elf { object, error };
    let file = File::parse(bytes).map_err(|error| damaged(Foreign::explain(bytes, error)))?;
    // all hosts that there are have little-endian data; of what is for another machine the layout says so
    if file.encoding().is_big_endian() && file.header().machine == Host::MACHINE {
        return Err(Error::ByteOrder { object });
    }
    budget::check_names(object, &file)?;
    Ok(file)
}
