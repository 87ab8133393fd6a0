//! Common information entries: what the frames of several functions have in common.

use super::context::{Context, Machine, Places};
use super::error::{Error, ErrorKind};
use super::pointer::{Encoding, OMIT};
use super::program::{self, Frame};
use super::reader::Reader;
use super::record::Record;

/// What FDEs need of their CIE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cie {
    /// Its offset.
    at: u64,
    /// Of the addresses of functions.
    pub(super) code: Encoding,
    /// Of pointers to tables of exceptions.
    pub(super) data: Option<Encoding>,
    /// FDEs say how long their augmentation is.
    pub(super) has_size: bool,
    /// The frame where a function begins.
    pub(super) frame: Frame,
}

/// The CIEs that were used last: tables of many have their FDEs close to them.
#[derive(Debug, Default)]
pub(super) struct Known {
    cies: [Option<Cie>; 8],
    /// Where the next one goes.
    next: usize,
}

impl Known {
    pub(super) fn find(&self, at: u64) -> Option<Cie> {
        self.cies.iter().flatten().find(|cie| cie.at == at).copied()
    }

    /// Takes the place of the one that was added first.
    pub(super) fn add(&mut self, cie: Cie) {
        if let Some(place) = self.cies.get_mut(self.next) {
            *place = Some(cie);
        }
        self.next = self.next.wrapping_add(1) % self.cies.len();
    }
}

/// What an augmentation says.
struct Augmentation {
    code: Encoding,
    data: Option<Encoding>,
}

impl Cie {
    /// Reads a CIE and checks it.
    pub(super) fn parse<P: Places>(
        context: &Context<'_, P>,
        record: &Record<'_>,
    ) -> Result<Self, Error> {
        let mut reader = record.content;
        let start = reader;
        let version = reader.byte("version of a CIE")?;
        if !matches!(version, 1 | 3 | 4) {
            return Err(start.error(ErrorKind::Version(version)));
        }
        let mut letters = reader.text("augmentation of a CIE")?;
        let first = letters;
        let has_size = match letters.byte("") {
            Err(_) => false,
            Ok(b'z') => true,
            // of GCC 2: a pointer follows
            Ok(b'e') if version < 4 && letters.byte("") == Ok(b'h') && letters.is_empty() => {
                reader.fixed::<8>("pointer of a CIE")?;
                false
            }
            Ok(letter) => return Err(first.error(ErrorKind::Augmentation { letter })),
        };
        if version == 4 {
            let start = reader;
            let address = reader.byte("address size of a CIE")?;
            let segment = reader.byte("segment selector size of a CIE")?;
            if (address, segment) != (8, 0) {
                return Err(start.error(ErrorKind::AddressSize { address, segment }));
            }
        }
        reader.unsigned("code alignment of a CIE")?;
        reader.signed("data alignment of a CIE")?;
        let start = reader;
        let what = "return address of a CIE";
        let register =
            if version == 1 { reader.byte(what)?.into() } else { reader.unsigned(what)? };
        if register >= context.machine.columns {
            let limit = context.machine.columns;
            return Err(start.error(ErrorKind::Register { register, limit }));
        }
        let mut augmentation = Augmentation { code: Encoding::ABSOLUTE, data: None };
        if has_size {
            let size = reader.unsigned("augmentation size of a CIE")?;
            let mut content = reader.part(size, "augmentation of a CIE")?;
            augmentation.read(&mut letters, &mut content, context)?;
        }
        let Augmentation { code, data } = augmentation;
        let frame = program::check(context, reader, Frame::default(), code)?;
        Ok(Self { at: record.at, code, data, has_size, frame })
    }
}

impl Augmentation {
    /// Reads what the letters stand for. Letters without content are last: the unwinder stops at them where it looks for `R`.
    fn read<P: Places>(
        &mut self,
        letters: &mut Reader<'_>,
        content: &mut Reader<'_>,
        context: &Context<'_, P>,
    ) -> Result<(), Error> {
        let mut seen = 0u32;
        while !letters.is_empty() {
            let letter_at = *letters;
            let letter = letters.byte("")?;
            let Machine { signs, .. } = context.machine;
            let bit = match letter {
                b'R' => 1,
                b'P' => 2,
                b'L' => 4,
                b'S' => 8,
                b'B' if signs.is_some() => 16,
                b'G' if signs.is_some() => 32,
                _ => 0,
            };
            let is_late = bit < 8 && seen >= 8;
            if bit == 0 || seen & bit != 0 || is_late {
                return Err(letter_at.error(ErrorKind::Augmentation { letter }));
            }
            seen |= bit;
            let encoding_at = *content;
            let unknown =
                |what, encoding| encoding_at.error(ErrorKind::Encoding { what, encoding });
            match letter {
                b'R' => {
                    let what = "address of code";
                    let encoding = content.byte(what)?;
                    self.code = Encoding::of_code(encoding).ok_or(unknown(what, encoding))?;
                }
                b'L' => {
                    let encoding = content.byte(DATA)?;
                    self.data = match encoding {
                        OMIT => None,
                        _ => Some(Encoding::new(encoding).ok_or(unknown(DATA, encoding))?),
                    };
                }
                b'P' => {
                    let what = "personality routine";
                    let encoding = content.byte(what)?;
                    let known = Encoding::new(encoding).ok_or(unknown(what, encoding))?;
                    let start = *content;
                    let address = known.read(content, context, what)?;
                    if address != 0 && !context.places.is_personality(address) {
                        return Err(start.error(ErrorKind::Pointer { what, address }));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What the LSDA is called in errors.
pub(super) const DATA: &str = "table of exceptions";
