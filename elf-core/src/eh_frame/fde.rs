//! Frame description entries: a function and its frame.

use super::cie::{Cie, DATA};
use super::context::{Context, Places};
use super::error::{Error, ErrorKind};
use super::program::{self, Plain};
use super::record::Record;

/// Checks an FDE: address and size of the code that it speaks of, if that is there. `last` is the plain program that came last.
pub(super) fn check<'a, P: Places>(
    context: &Context<'_, P>,
    record: &Record<'a>,
    cie: &Cie,
    last: &mut Plain<'a>,
) -> Result<Option<(u64, u64)>, Error> {
    let mut reader = record.content;
    let start = reader;
    let address = cie.code.read(&mut reader, context, "address of code")?;
    let size = cie.code.of_size().read(&mut reader, context, "size of code")?;
    let is_there = address & cie.code.mask() != 0;
    if is_there && !context.places.is_code(address, size) {
        return Err(start.error(ErrorKind::Code { address, size }));
    }
    if cie.has_size {
        let size = reader.unsigned("augmentation size of an FDE")?;
        let mut content = reader.part(size, "augmentation of an FDE")?;
        if let Some(encoding) = cie.data {
            let start = content;
            let address = encoding.read(&mut content, context, DATA)?;
            if is_there && address != 0 && !context.places.is_data(address) {
                return Err(start.error(ErrorKind::Pointer { what: DATA, address }));
            }
        }
    }
    program::check_next(context, reader, cie.frame, cie.code, last)?;
    Ok(is_there.then_some((address, size)))
}
