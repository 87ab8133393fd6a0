//! Tables of plain numbers.

use crate::table::class::Class;
use crate::table::entry::Entry;

macro_rules! word {
    ($(#[doc = $doc:literal] $name:ident: $view:ty = $what:literal;)*) => {$(
        #[doc = $doc]
        pub enum $name {}

        impl Entry for $name {
            type View = $view;
            type Raw<C: Class> = C::$name;
            const WHAT: &'static str = $what;
        }
    )*};
}
word! {
    /// 16-bit words: the versions of symbols.
    Half: u16 = "half words";
    /// 32-bit words: section groups, extended section indices, hash tables.
    Word: u32 = "words";
    /// 64-bit words, in both classes.
    Xword: u64 = "double words";
    /// Words as wide as an address.
    Address: u64 = "address words";
}
