//! What is asked of symbols, and who answers.

use super::attributes::SymbolAttributes;
use super::kind::Kind;
use super::value::Role;

/// What is asked of a symbol, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// What to answer.
    pub role: Role,
    /// Index of the symbol in the table that the relocation section links to.
    pub symbol: u32,
    /// P: the address of the place.
    pub place: u64,
    /// A: the addend.
    pub addend: i64,
    /// The kind of relocation that asks.
    pub kind: &'static Kind,
}

/// What is known of symbols: by a layout, by an executor, by a test.
pub trait Resolve {
    /// The value asked for, or `None` if it cannot be known.
    fn resolve(&self, query: &Query) -> Option<u64>;

    /// S of a symbol that answers [`Role::Address`] and [`Role::Plt`] with it, whatever else the query says; `None` to be asked by
    /// [`resolve`](Self::resolve). It is asked first where there is room for code: machines of 32 bits do not ask.
    #[inline]
    fn symbol_address(&self, symbol: u32) -> Option<u64> {
        let _ = symbol;
        None
    }

    /// The address of the GOT entry with the symbol's address, on the same terms.
    #[inline]
    fn got_address(&self, symbol: u32) -> Option<u64> {
        let _ = symbol;
        None
    }

    /// What else is known of what [`resolve`](Self::resolve) answers with. Asked only where a formula wants it.
    fn attributes(&self, query: &Query) -> SymbolAttributes {
        let _ = query;
        SymbolAttributes::default()
    }
}

impl<F: Fn(&Query) -> Option<u64>> Resolve for F {
    fn resolve(&self, query: &Query) -> Option<u64> {
        self(query)
    }
}
