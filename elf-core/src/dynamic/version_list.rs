//! The lists of symbol versions: those a file defines, and those it needs of others (LSB, "Symbol Versioning").

use crate::content::name::Name;
use crate::dynamic::chain::{Chain, List};
use crate::error::{Error, ErrorKind};
use crate::names::{VER_DEF_CURRENT, VER_NEED_CURRENT};
use crate::structs::raw;
use crate::table::class::Class;
use crate::table::entry;
use crate::table::entry::Entry;
use crate::views::encoding::Encoding;
use zerocopy::LE;
use zerocopy::byteorder::ByteOrder;

/// A version that the file defines.
#[derive(Clone, Copy, Debug)]
pub struct Definition<'a> {
    /// `VER_FLG_*`; the one with `VER_FLG_BASE` is the file itself.
    pub flags: u16,
    /// Its index in the list of all symbols' versions.
    pub index: u16,
    /// [`sysv_hash`](crate::sysv_hash) of its name.
    pub hash: u32,
    names: Chain<'a>,
}

impl<'a> Definition<'a> {
    /// Its name.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if it has none or that leaves the list, [`ErrorKind::NoString`] by the string table.
    pub fn name(&self) -> Result<Name<'a>, Error> {
        let Chain { at, next, bytes, .. } = self.names;
        let outside =
            ErrorKind::Outside { what: Verdaux::WHAT, count: 1, file: bytes.len() as u64 };
        self.names().next().unwrap_or(Err(Error { at: at.saturating_add(next), kind: outside }))
    }

    /// Its name, then those of the versions that it inherits from. One that cannot be read is the last.
    #[must_use]
    pub const fn names(&self) -> VersionNames<'a> {
        VersionNames(self.names)
    }
}

/// A file of which versions are needed.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// Its name, as in `DT_NEEDED`.
    pub file: Name<'a>,
    versions: Chain<'a>,
}

impl<'a> Need<'a> {
    /// The versions. One that cannot be read is the last.
    #[must_use]
    pub const fn versions(&self) -> NeededVersions<'a> {
        NeededVersions(self.versions)
    }
}

/// A version that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededVersion<'a> {
    /// [`sysv_hash`](crate::sysv_hash) of its name.
    pub hash: u32,
    /// `VER_FLG_*`.
    pub flags: u16,
    /// Its index in the list of all symbols' versions.
    pub index: u16,
    /// Its name.
    pub name: Name<'a>,
}

/// Bytes of the records inside others, in files of either class.
const VERDAUX: usize = size_of::<raw::Verdaux<LE>>();
const VERNAUX: usize = size_of::<raw::Vernaux<LE>>();

/// An iterator over the records of a chain: a row of `$row`, from which `$read` makes an item and the way to the next.
macro_rules! records {
    ($(#[doc = $doc:literal])* $name:ident($chain:ident, $row:ident: $view:ident) -> $item:ty, $next:ident, $read:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a>(Chain<'a>);

        impl<'a> $name<'a> {
            fn step(&mut self) -> Result<$item, Error> {
                let $chain = &mut self.0;
                let $row = entry::row::<$view>($chain.bytes, $chain.encoding, $chain.next, $chain.at)?;
                let item = $read?;
                self.0.go_on($row.$next);
                Ok(item)
            }
        }

        impl<'a> Iterator for $name<'a> {
            type Item = Result<$item, Error>;

            fn next(&mut self) -> Option<Self::Item> {
                if self.0.left == 0 {
                    return None;
                }
                let item = self.step();
                if item.is_err() {
                    self.0.left = 0;
                }
                Some(item)
            }
        }

        impl core::iter::FusedIterator for $name<'_> {}
    };
}
records! {
    /// The versions that a file defines, in order. One that cannot be read is the last, or whose names have no room in the list beside those before.
    Definitions(chain, row: Verdef) -> Definition<'a>, next, {
        is_current(chain, "vd_version", row.version, VER_DEF_CURRENT)
            .and_then(|()| chain.inner(row.names, "vd_cnt", row.count, VERDAUX))
            .map(|names| Definition { flags: row.flags, index: row.index, hash: row.hash, names })
    }
}
records! {
    /// The files of which versions are needed, in order. One that cannot be read is the last, or whose versions have no room in the list beside those before.
    Needs(chain, row: Verneed) -> Need<'a>, next, {
        is_current(chain, "vn_version", row.version, VER_NEED_CURRENT)
            .and_then(|()| chain.inner(row.versions, "vn_cnt", row.count, VERNAUX))
            .and_then(|versions| Ok(Need { file: versions.strings.get(row.file)?, versions }))
    }
}
records! {
    /// The names of a [`Definition`] in order.
    VersionNames(chain, row: Verdaux) -> Name<'a>, next, chain.strings.get(row.name)
}
records! {
    /// The versions of a [`Need`] in order.
    NeededVersions(chain, row: Vernaux) -> NeededVersion<'a>, next, {
        let Vernaux { hash, flags, index, .. } = row;
        chain.strings.get(row.name).map(|name| NeededVersion { hash, flags, index, name })
    }
}

impl<'a> Definitions<'a> {
    pub(crate) const EMPTY: Self = Self(Chain::EMPTY);

    pub(crate) const fn new(encoding: Encoding, list: List<'a>) -> Self {
        Self(Chain::new(encoding, list))
    }
}

impl<'a> Needs<'a> {
    pub(crate) const EMPTY: Self = Self(Chain::EMPTY);

    pub(crate) const fn new(encoding: Encoding, list: List<'a>) -> Self {
        Self(Chain::new(encoding, list))
    }
}

/// Checks the version of a record's form.
fn is_current(
    chain: &Chain<'_>,
    what: &'static str,
    found: u16,
    expected: u16,
) -> Result<(), Error> {
    let kind = ErrorKind::Invalid { what, value: found.into() };
    if found == expected {
        Ok(())
    } else {
        Err(Error { at: chain.at.saturating_add(chain.next), kind })
    }
}

/// A plain view of each raw struct.
macro_rules! view {
    ($($view:ident = $what:literal { $($field:ident: $type:ty = $raw:ident),* })*) => {$(
        struct $view {
            $($field: $type,)*
        }

        impl Entry for $view {
            type View = Self;
            type Raw<C: Class> = raw::$view<C::Order>;
            const WHAT: &'static str = $what;
        }

        impl<O: ByteOrder> From<raw::$view<O>> for $view {
            fn from(raw: raw::$view<O>) -> Self {
                Self { $($field: raw.$raw.get(),)* }
            }
        }
    )*};
}
#[rustfmt::skip]
view! {
    Verdef = "version definition" {
        version: u16 = vd_version, flags: u16 = vd_flags, index: u16 = vd_ndx, count: u16 = vd_cnt, hash: u32 = vd_hash,
        names: u32 = vd_aux, next: u32 = vd_next
    }
    Verdaux = "version name" { name: u32 = vda_name, next: u32 = vda_next }
    Verneed = "version requirement" {
        version: u16 = vn_version, count: u16 = vn_cnt, file: u32 = vn_file, versions: u32 = vn_aux, next: u32 = vn_next
    }
    Vernaux = "needed version" {
        hash: u32 = vna_hash, flags: u16 = vna_flags, index: u16 = vna_other, name: u32 = vna_name, next: u32 = vna_next
    }
}
