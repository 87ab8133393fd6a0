//! The objects of a load as files.

use crate::budget;
use crate::error::Error;
use elf_core::{ApplyErrorKind, File, Foreign, Name};
use elf_layout::ErrorKind;

/// The name of the symbol that a relocation of the objects does not reach.
pub(super) fn out_of_reach<'a, B: AsRef<[u8]>>(
    objects: &'a [B],
    error: &Error,
) -> Option<Name<'a>> {
    let (Error::Layout(error) | Error::Object { error, .. }) = error else { return None };
    let elf_layout::Error { object, kind: ErrorKind::Apply(error), .. } = error else {
        return None;
    };
    let ApplyErrorKind::Overflow { .. } = error.kind else { return None };
    let table = File::parse(objects.get(*object)?.as_ref()).ok()?.symbol_table().ok()??;
    let symbol = table.get(error.symbol).ok().filter(elf_core::Symbol::is_undefined)?;
    table.name_of(&symbol).ok()
}

/// The headers of all objects.
pub(super) fn parse<'a>(objects: &[&'a [u8]]) -> Result<Vec<File<'a>>, Error> {
    let parsed = objects.iter().enumerate().map(|(object, bytes)| {
        let damaged = |error| Error::Elf { object, error };
        let file = File::parse(bytes).map_err(|error| damaged(Foreign::explain(bytes, error)))?;
        Foreign::check_lto(&file).map_err(damaged)?;
        budget::check_names(object, &file)?;
        Ok(file)
    });
    parsed.collect()
}
