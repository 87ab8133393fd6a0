//! A whole table: one entry after the other.

use super::cie::{Cie, Known};
use super::context::{Context, Machine, Places};
use super::error::{Error, ErrorKind};
use super::fde;
use super::program::Plain;
use super::record::Record;

/// A relocated table: its bytes, and where they are or will be.
#[derive(Clone, Copy, Debug)]
pub struct EhFrame<'a> {
    /// The section's bytes, little-endian.
    pub bytes: &'a [u8],
    /// The address of the first one, for the unwinder.
    pub address: u64,
    /// Whose unwinder it is for.
    pub machine: Machine,
}

/// What a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Common information entries.
    pub cies: u64,
    /// Frame description entries: one a function or a part of it.
    pub fdes: u64,
    /// How many of these speak of code that is not there any more: their address is 0, and unwinders leave them out.
    pub absent: u64,
    /// Bytes up to the end of the last entry. Behind a length of 0 nobody reads on.
    pub size: u64,
}

/// A function, or a part of one, that a table describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// Offset of its FDE in the table.
    pub at: u64,
    /// Address of the code.
    pub address: u64,
    /// Bytes of it.
    pub size: u64,
}

/// CIEs may be read again as long as that is not more than this many times all the bytes.
const MOST_TIMES: u64 = 16;

impl EhFrame<'_> {
    /// Checks everything that the unwinder reads, and says how much there is.
    ///
    /// # Errors
    /// The first [`ErrorKind`] that is met, in the order of the entries.
    pub fn check<P: Places>(&self, places: &P) -> Result<Summary, Error> {
        self.check_each(places, |_| {})
    }

    /// The same, and `each` is given what the table describes, in its order, absent code left out.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_each<P: Places>(
        &self,
        places: &P,
        mut each: impl FnMut(Described),
    ) -> Result<Summary, Error> {
        let Self { address, machine, .. } = *self;
        let context = Context { address, machine, places };
        let mut summary = Summary::default();
        let mut known = Known::default();
        let mut last = Plain::default();
        let mut budget = (self.bytes.len() as u64).saturating_mul(MOST_TIMES);
        while let Some(record) = Record::at(self.bytes, summary.size)? {
            if record.id == 0 {
                known.add(Cie::parse(&context, &record)?);
                summary.cies = summary.cies.saturating_add(1);
            } else {
                let cie = self.cie_of(&record, &mut known, &mut budget, &context)?;
                summary.fdes = summary.fdes.saturating_add(1);
                match fde::check(&context, &record, &cie, &mut last)? {
                    Some((address, size)) => each(Described { at: record.at, address, size }),
                    None => summary.absent = summary.absent.saturating_add(1),
                }
            }
            summary.size = record.end;
        }
        Ok(summary)
    }

    /// The CIE of an FDE: known, or read where the FDE says it is.
    fn cie_of<P: Places>(
        &self,
        fde: &Record<'_>,
        known: &mut Known,
        budget: &mut u64,
        context: &Context<'_, P>,
    ) -> Result<Cie, Error> {
        let id_at = fde.at.saturating_add(4);
        let error = |kind| Error { at: id_at, kind };
        let none = error(ErrorKind::NoCie { distance: fde.id.cast_signed() });
        let distance = i64::from(fde.id.cast_signed());
        let at = id_at.checked_add_signed(distance.saturating_neg()).ok_or(none)?;
        if let Some(cie) = known.find(at) {
            return Ok(cie);
        }
        let record = Record::at(self.bytes, at)
            .ok()
            .flatten()
            .filter(|record| record.id == 0)
            .ok_or(none)?;
        *budget = budget
            .checked_sub(record.end.saturating_sub(at))
            .ok_or(error(ErrorKind::TooManyCies))?;
        let cie = Cie::parse(context, &record)?;
        known.add(cie);
        Ok(cie)
    }
}
