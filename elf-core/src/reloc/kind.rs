//! Kinds of relocation: one row says all of one.

use super::attributes::SymbolAttributes;
use super::check::Check;
use super::error::ApplyErrorKind;
use super::field::{Bits, Field, Order, Shape, Unencodable};
use super::pairing::Pairing;
use super::rewrite::{Reach, Rewrite};
use super::shrink::{Padding, Shrink};
use super::site::Site;
use super::tls::Transition;
use super::value::{Contents, Role, Slot, Value};

/// One kind of relocation: everything that [`apply`](crate::apply) needs to know.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Kind {
    /// `r_type`.
    pub number: u32,
    /// The ABI's name.
    pub name: &'static str,
    /// What is computed.
    pub value: Value,
    /// Which values are allowed.
    pub check: Check,
    /// The bits that take it.
    pub field: Field,
    /// For the few whose formula depends on the instruction: the formula, by the bytes before the place.
    pub select: Option<fn(before: &[u8]) -> Value>,
    /// For branches whose instruction depends on what they go to: the word with its parts filled, the value, and the target make
    /// the word.
    pub branch: Option<Branch>,
    /// Who resolves it.
    pub stage: Stage,
    /// What else may be decided at its place.
    pub special: Special,
    /// Bytes from the place on of which some may go; of padding its records say how many there are.
    pub goes: u8,
    /// What the field is like, found out once.
    pub(crate) shape: Shape,
    /// Formula, check and field at once.
    pub(crate) usual: Usual,
}

/// What most relocations of addresses of 64 bits are: formula, check and field at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Usual {
    /// S + A - P or L + A - P in four bytes, with a sign.
    Relative32,
    /// S + A in eight bytes.
    Absolute64,
    /// G + GOT + A - P in four bytes, with a sign, of the entry that holds the symbol's address.
    GotRelative32,
    /// Another one.
    Other,
}

impl Usual {
    const fn of(value: Value, check: Check, shape: Shape) -> Self {
        match (shape, value.of, value.minus, check) {
            (Shape::Whole4, Role::Address | Role::Plt, Role::Place, Check::Signed(32)) => {
                Self::Relative32
            }
            (Shape::Whole8, Role::Address, Role::Zero, Check::Any) => Self::Absolute64,
            (Shape::Whole4, Role::Got(Slot::Address), Role::Place, Check::Signed(32)) => {
                Self::GotRelative32
            }
            _ => Self::Other,
        }
    }
}

/// Makes the word of a branch of the old one, whose parts are filled, the value, and what is known of the target: [`Kind::branch`].
pub type Branch = fn(word: u64, value: i64, target: SymbolAttributes) -> Result<u64, Unencodable>;

/// What else may be decided about a record than to apply its kind.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Special {
    /// Nothing.
    None,
    /// Instructions that do without a GOT entry, where the ABI has any for what is known of the symbol.
    Relax(Relax),
    /// Code that reaches a thread-local variable becomes local exec code, where its thread pointer offset is known.
    Transition(Transition),
    /// It belongs with another relocation, which `label` may help to find: the offset in the section of the label that the symbol
    /// is.
    Pair(Pair),
    /// It says nothing without the relocation before it.
    Second,
    /// It stands for padding, of which what is too much goes.
    Padding(Padding),
    /// Shorter instructions, where some do.
    Shrink(Shrink),
    /// Another row of the same number may stand for this one.
    Alternative(Alternative),
    /// It copies Z bytes from S.
    Copy,
    /// It fills two words, function and argument of a TLS descriptor.
    Descriptor {
        /// The argument is the first of them, as on Arm.
        argument_first: bool,
    },
}

impl Special {
    /// Whether applying the kind is all.
    pub(crate) const fn is_none(&self) -> bool {
        matches!(self, Self::None | Self::Padding(_) | Self::Copy | Self::Descriptor { .. })
    }
}

/// Gives the row that is applied instead, by the instructions at the site and whether the symbol is a thread-local variable:
/// [`Special::Alternative`].
pub type Alternative = fn(site: &Site<'_>, is_thread_local: bool) -> Option<&'static Kind>;

/// Gives instructions that do without a GOT entry, by what is known of the symbol: [`Special::Relax`].
pub type Relax = fn(&Site<'_>, Reach) -> Option<Rewrite>;

/// Finds the relocation that the one of `site` belongs with: [`Special::Pair`].
pub type Pair = fn(site: &Site<'_>, label: Option<u64>) -> Result<Pairing, ApplyErrorKind>;

impl Kind {
    /// A row: number, name, formula, check, field.
    #[must_use]
    pub const fn new(
        number: u32,
        name: &'static str,
        value: Value,
        check: Check,
        field: Field,
    ) -> Self {
        let shape = match field.shape() {
            shape if value.is_plain() => shape,
            Shape::Pieces if value.is_partner() => Shape::Pieces,
            _ => Shape::Parts,
        };
        Self {
            number,
            name,
            value,
            check,
            field,
            select: None,
            branch: None,
            stage: Stage::Link,
            special: Special::None,
            goes: 0,
            shape,
            usual: Usual::of(value, check, shape),
        }
    }

    /// Whether it is a row that says nothing but its name, of records that are for those around them.
    #[must_use]
    #[inline]
    pub const fn is_marker(&self) -> bool {
        self.field.bytes() == 0
            && matches!(self.special, Special::None)
            && matches!(self.stage, Stage::Link)
    }

    /// A row that says nothing but its name: no bits change.
    #[must_use]
    pub const fn marker(number: u32, name: &'static str) -> Self {
        Self::new(number, name, Value::ZERO, Check::Any, Field::NONE)
    }

    /// A row of a kind that is for dynamic loaders, whose word is an address by size: [`apply_dynamic`](crate::apply_dynamic).
    #[must_use]
    pub const fn load(number: u32, name: &'static str, value: Value) -> Self {
        Self { value, ..Self::dynamic(number, name) }
    }

    /// A row of the kind that copies a variable of another component (copy relocation).
    #[must_use]
    pub const fn copy(number: u32, name: &'static str) -> Self {
        Self { special: Special::Copy, ..Self::dynamic(number, name) }
    }

    /// A row of the kind that fills a TLS descriptor: function and argument, a word each.
    #[must_use]
    pub const fn descriptor(number: u32, name: &'static str) -> Self {
        let value = Value::of(Role::TlsDescFunction);
        let special = Special::Descriptor { argument_first: false };
        Self { special, ..Self::load(number, name, value) }
    }

    /// The same of a [descriptor](Self::descriptor) whose argument is before its function.
    #[must_use]
    pub const fn argument_first(self) -> Self {
        Self { special: Special::Descriptor { argument_first: true }, ..self }
    }

    /// A row of a kind that only a dynamic loader resolves, and no loader here; [`apply`](crate::apply) refuses it by name.
    #[must_use]
    pub const fn dynamic(number: u32, name: &'static str) -> Self {
        let row = Self::marker(number, name);
        Self { stage: Stage::Load, ..row }
    }

    /// A row of a kind that is known and not supported; [`apply`](crate::apply) refuses it by name.
    #[must_use]
    pub const fn unsupported(number: u32, name: &'static str) -> Self {
        let row = Self::marker(number, name);
        Self { stage: Stage::Unsupported, ..row }
    }

    /// The same with a formula that the instruction decides.
    #[must_use]
    pub const fn select(self, select: fn(before: &[u8]) -> Value) -> Self {
        Self { select: Some(select), shape: Shape::Parts, usual: Usual::Other, ..self }
    }

    /// The same of a branch whose instruction depends on its target.
    #[must_use]
    pub const fn branch(self, branch: Branch) -> Self {
        Self { branch: Some(branch), shape: Shape::Parts, usual: Usual::Other, ..self }
    }

    /// The same of instructions that may do without their GOT entry; without the feature `relax` they never do.
    #[must_use]
    pub const fn relax(self, relax: fn(&Site<'_>, Reach) -> Option<Rewrite>) -> Self {
        if cfg!(feature = "relax") { Self { special: Special::Relax(relax), ..self } } else { self }
    }

    /// The same of code that may become local exec code; without the feature `relax` it never does.
    #[must_use]
    pub const fn transition(self, transition: Transition) -> Self {
        if cfg!(feature = "relax") {
            Self { special: Special::Transition(transition), goes: transition.size, ..self }
        } else {
            self
        }
    }

    /// The same of one that belongs with another.
    #[must_use]
    pub const fn pair(self, pair: Pair) -> Self {
        Self { special: Special::Pair(pair), ..self }
    }

    /// The same of one that says nothing without the one before it.
    #[must_use]
    pub const fn second(self) -> Self {
        Self { special: Special::Second, ..self }
    }

    /// The same of one that stands for padding.
    #[must_use]
    pub const fn padding(self, padding: Padding) -> Self {
        Self { special: Special::Padding(padding), ..self }
    }

    /// The same of instructions for which shorter ones may do; without the feature `relax` none do.
    #[must_use]
    pub const fn shrink(self, shrink: Shrink) -> Self {
        if cfg!(feature = "relax") {
            Self { special: Special::Shrink(shrink), goes: shrink.size, ..self }
        } else {
            self
        }
    }

    /// The same of code of which so many bytes may go, as another row that stands for this one says, or the pairing; without the
    /// feature `relax` none do.
    #[must_use]
    pub const fn going(self, size: u8) -> Self {
        if cfg!(feature = "relax") { Self { goes: size, ..self } } else { self }
    }

    /// The same of one that another row may stand for.
    #[must_use]
    pub const fn alternative(self, alternative: Alternative) -> Self {
        Self { special: Special::Alternative(alternative), ..self }
    }

    /// Whether bits change at the place.
    #[must_use]
    pub const fn writes(&self) -> bool {
        self.field.bytes() > 0
    }
}

/// When a relocation is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// By a linker: what objects contain and hoist applies.
    Link,
    /// By a dynamic loader: what objects do not contain.
    Load,
    /// By nobody here.
    Unsupported,
}

/// The row of this number.
#[must_use]
#[inline]
pub fn find(kinds: &'static [Kind], number: u32) -> Option<&'static Kind> {
    // dense tables hold most numbers at their own index
    let direct = usize::try_from(number).ok().and_then(|index| kinds.get(index));
    if let Some(kind) = direct.filter(|kind| kind.number == number) {
        return Some(kind);
    }
    kinds.binary_search_by_key(&number, |kind| kind.number).ok().and_then(|index| kinds.get(index))
}

/// Whether anything else is [decided](crate::decide) about records of these kinds than to apply them.
#[must_use]
pub const fn decides(kinds: &[Kind]) -> bool {
    Uses::of(kinds).special
}

/// Whether a relocation of one of these kinds asks for the [size](Role::Size) of its symbol.
#[must_use]
pub const fn asks_size(kinds: &[Kind]) -> bool {
    let mut rest = kinds;
    while let [kind, tail @ ..] = rest {
        if matches!(kind.value.of, Role::Size) || matches!(kind.value.minus, Role::Size) {
            return true;
        }
        rest = tail;
    }
    false
}

/// Whether code of these kinds may become shorter.
#[must_use]
pub const fn shrinks(kinds: &[Kind]) -> bool {
    let mut rest = kinds;
    while let [kind, tail @ ..] = rest {
        if matches!(kind.special, Special::Padding(_) | Special::Shrink(_)) || kind.goes > 0 {
            return true;
        }
        rest = tail;
    }
    false
}

/// Writes the rows of an architecture: of each the constant of its number, and its place in the table `KINDS`.
///
/// A row is the ABI's name, the number, and what [`Kind`] is made by and with:
///
/// ```
/// mod r_example {
///     use elf_core::{Check, Field, Role, Value};
///     const S_A: Value = Value::of(Role::Address).plus_a();
///
///     elf_core::kinds! {
///         R_EXAMPLE_NONE = 0: marker();
///         R_EXAMPLE_32 = 1: new(S_A, Check::Either(32), Field::DATA32);
///     }
/// }
/// assert_eq!(r_example::KINDS[1].number, r_example::R_EXAMPLE_32);
/// assert_eq!(r_example::KINDS[1].name, "R_EXAMPLE_32");
/// ```
#[macro_export]
macro_rules! kinds {
    ($(
        $name:ident $(as $text:literal)? = $number:literal:
        $make:ident($($argument:expr),* $(,)?) $(.$with:ident($($with_argument:expr),* $(,)?))*;
    )*) => {
        $(
            #[doc = concat!("`r_type` ", $number, ".")]
            pub const $name: u32 = $number;
        )*
        /// All kinds, by rising number.
        pub const KINDS: &[$crate::Kind] = &[$(
            $crate::Kind::$make(
                $number,
                $crate::kinds!(@name $name $($text)?)
                $(, $argument)*
            )
            $(.$with($($with_argument),*))*,
        )*];
        const _: () = assert!($crate::well_formed(KINDS));
    };
    (@name $name:ident $text:literal) => { $text };
    (@name $name:ident) => { stringify!($name) };
}

/// What the rows of a table make use of: what none of them does is left out of an architecture's code.
pub(crate) struct Uses {
    /// Bytes of the largest field, or 8 where numbers of variable length may be larger.
    pub(crate) bytes: usize,
    /// Values of relocations that belong together.
    pub(crate) partners: bool,
    /// V.
    pub(crate) contents: bool,
    /// T.
    pub(crate) thumb: bool,
    /// Words of halfwords.
    pub(crate) halfwords: bool,
    /// Numbers of variable length.
    pub(crate) uleb128: bool,
    /// Encoders or decoders.
    pub(crate) coded: bool,
    /// Branches whose instruction depends on their target.
    pub(crate) branches: bool,
    /// Formulas that the instruction decides.
    pub(crate) select: bool,
    /// How formulas are rounded to pages: a [bit](Page::bit) for each way.
    pub(crate) pages: u8,
    /// Parts of fields that take a role of their own.
    pub(crate) roles: bool,
    /// Parts of fields that are rounded to the nearest.
    pub(crate) rounded: bool,
    /// More than the applying of kinds.
    pub(crate) special: bool,
    /// Padding.
    pub(crate) padding: bool,
    /// Rows that stand for others.
    pub(crate) alternatives: bool,
    /// Whole words of 8 bytes.
    pub(crate) whole8: bool,
}

impl Uses {
    pub(crate) const fn of(kinds: &[Kind]) -> Self {
        let mut uses = Self {
            bytes: 0,
            partners: false,
            contents: false,
            thumb: false,
            halfwords: false,
            uleb128: false,
            coded: false,
            branches: false,
            select: false,
            pages: 0,
            roles: false,
            rounded: false,
            special: false,
            padding: false,
            alternatives: false,
            whole8: false,
        };
        let mut rest = kinds;
        while let [kind, tail @ ..] = rest {
            rest = tail;
            // the others are no part of objects
            if !matches!(kind.stage, Stage::Link) {
                continue;
            }
            let Value { of, minus, thumb, page, contents, .. } = kind.value;
            let bytes = if kind.field.is_uleb128 { 8 } else { kind.field.bytes() };
            if bytes > uses.bytes {
                uses.bytes = bytes;
            }
            uses.partners |= matches!(of, Role::Partner) || matches!(minus, Role::Partner);
            uses.contents |= !matches!(contents, Contents::Ignored);
            uses.thumb |= thumb;
            uses.halfwords |= matches!(kind.field.order, Order::Halfwords);
            uses.uleb128 |= kind.field.is_uleb128;
            uses.coded |= kind.field.encode.is_some() || kind.field.decode.is_some();
            uses.branches |= kind.branch.is_some();
            uses.select |= kind.select.is_some();
            uses.pages |= page.bit();
            let mut parts = kind.field.parts;
            while let [Bits { role, rounded, .. }, tail @ ..] = parts {
                uses.roles |= role.is_some();
                uses.rounded |= *rounded;
                parts = tail;
            }
            uses.special |= !kind.special.is_none();
            uses.padding |= matches!(kind.special, Special::Padding(_));
            uses.alternatives |= matches!(kind.special, Special::Alternative(_));
            uses.whole8 |= matches!(kind.shape, Shape::Whole8);
        }
        uses
    }
}

/// Whether a table is right in itself: numbers rise, words have a size that exists, parts lie inside their word and apart.
#[must_use]
pub const fn well_formed(kinds: &[Kind]) -> bool {
    let mut rest = kinds;
    let mut least = 0;
    while let [kind, tail @ ..] = rest {
        let contents = !matches!(kind.value.contents, Contents::Ignored);
        if (kind.number as u64) < least
            || !kind.field.is_well_formed()
            // V is the place's own addend in a REL relocation
            || (contents && (kind.field.bytes() == 16 || kind.field.encode.is_some()))
            || (kind.branch.is_some() && (contents || kind.field.bytes() > 8))
        {
            return false;
        }
        least = kind.number as u64 + 1;
        rest = tail;
    }
    true
}
