//! The value of an attribute, for people and for programs.

use nvinfo::{Cubin, Payload};
use serde::Serialize;

use super::symbol_name;

/// What an attribute's value means, by `kind`.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PayloadValue {
    /// It is there.
    Flag,
    /// A number.
    Number {
        /// The number.
        value: u32,
    },
    /// A number of a symbol.
    OfSymbol {
        /// Index of the symbol.
        symbol: u32,
        /// Its name.
        symbol_name: String,
        /// The number.
        value: u32,
    },
    /// Symbols.
    Symbols {
        /// Their indices.
        symbols: Vec<u32>,
        /// Their names.
        symbol_names: Vec<String>,
    },
    /// Offsets in the code.
    Offsets {
        /// The offsets.
        offsets: Vec<u32>,
    },
    /// Numbers.
    Numbers {
        /// The numbers.
        values: Vec<u32>,
    },
    /// Other bytes.
    Bytes {
        /// As hexadecimal digits.
        bytes: String,
    },
    /// What has a command of its own, or is rare: in words.
    Text {
        /// The words.
        text: String,
    },
}

impl PayloadValue {
    pub(super) fn of(cubin: &Cubin<'_>, payload: Payload<'_>) -> Self {
        match payload {
            Payload::Flag => Self::Flag,
            Payload::Number(value) => Self::Number { value },
            Payload::OfSymbol { symbol, value } => {
                Self::OfSymbol { symbol, symbol_name: symbol_name(cubin, symbol), value }
            }
            Payload::Symbols(symbols) => Self::Symbols {
                symbols: symbols.into_iter().collect(),
                symbol_names: symbols.into_iter().map(|index| symbol_name(cubin, index)).collect(),
            },
            Payload::Offsets(offsets) => Self::Offsets { offsets: offsets.into_iter().collect() },
            Payload::Numbers(numbers) => Self::Numbers { values: numbers.into_iter().collect() },
            Payload::Triple(values) => Self::Numbers { values: values.into() },
            Payload::Bytes(bytes) => Self::Bytes { bytes: hex(bytes) },
            Payload::Parameter(found) => Self::Text {
                text: format!(
                    "parameter {} at {:#x}, {} bytes",
                    found.ordinal, found.offset, found.size
                ),
            },
            Payload::ParameterBank(bank) => Self::Text {
                text: format!(
                    "{} from {:#x}, {} bytes",
                    symbol_name(cubin, bank.symbol),
                    bank.offset,
                    bank.size
                ),
            },
            other => Self::Text { text: code(other) },
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Flag => String::new(),
            Self::Number { value } => format!("{value:#x}"),
            Self::OfSymbol { symbol_name, value, .. } => format!("{symbol_name}: {value:#x}"),
            Self::Symbols { symbol_names, .. } => symbol_names.join(" "),
            Self::Offsets { offsets } => list(offsets, "+"),
            Self::Numbers { values } => list(values, ""),
            Self::Bytes { bytes } => bytes.clone(),
            Self::Text { text } => text.clone(),
        }
    }
}

/// A value whose parts name instructions.
fn code(payload: Payload<'_>) -> String {
    let offsets: Vec<_> = payload.code_offsets().collect();
    list(&offsets, "+")
}

fn list(numbers: &[u32], sign: &str) -> String {
    let shown: Vec<_> = numbers.iter().map(|number| format!("{sign}{number:#x}")).collect();
    shown.join(" ")
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
