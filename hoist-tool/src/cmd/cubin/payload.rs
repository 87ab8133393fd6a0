//! The value of an attribute, for people and for programs.

use nvinfo::{Cubin, Payload};
use serde::Serialize;

use super::kernel::hex;
use super::symbols::symbol_name;

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
    /// A parameter.
    Parameter {
        /// Index of the record.
        index: u32,
        /// Position, from 0.
        ordinal: u16,
        /// Offset from the first parameter.
        offset: u16,
        /// Its size.
        size: u16,
        /// Alignment of what a pointer points to, as a power of two; 0 if not known.
        pointee_alignment: u8,
        /// Number of the space that a pointer points to; 0 if not known.
        space: u8,
        /// Number of the constant bank, if the record has it.
        bank: Option<u8>,
        /// Whether it is in shared memory.
        in_shared_memory: bool,
    },
    /// Where the parameters are.
    ParameterBank {
        /// Index of the symbol of the bank's section.
        symbol: u32,
        /// Its name.
        symbol_name: String,
        /// Offset of the first parameter.
        offset: u16,
        /// Size of all.
        size: u16,
    },
    /// Indirect branches.
    Branches {
        /// The branches.
        branches: Vec<BranchValue>,
    },
    /// Loads of which some bytes are not used.
    UnusedLoads {
        /// The loads.
        loads: Vec<LoadValue>,
    },
    /// Spills and refills of registers.
    SpillRefills {
        /// Their offsets in the code.
        offsets: Vec<u32>,
    },
    /// Instructions that stand for an atomic one of 16 bits.
    RegisterMap {
        /// The instructions.
        registers: Vec<RegisterValue>,
    },
    /// Where coroutines go on.
    Resumes {
        /// The places.
        resumes: Vec<ResumeValue>,
    },
    /// Instructions on barriers in shared memory.
    Mbarriers {
        /// The instructions.
        mbarriers: Vec<MbarrierValue>,
    },
}

/// An indirect branch.
#[derive(Debug, Serialize)]
pub struct BranchValue {
    /// Offset in the code.
    pub code_offset: u32,
    /// 0 for a jump, 1 for a call.
    pub branch_kind: u32,
    /// Where it may go: offsets in the code.
    pub targets: Vec<u32>,
}

/// A load.
#[derive(Debug, Serialize)]
pub struct LoadValue {
    /// Offset in the code.
    pub code_offset: u32,
    /// The bytes that are not used, a bit each.
    pub unused_bytes: u32,
}

/// An instruction and a register of it.
#[derive(Debug, Serialize)]
pub struct RegisterValue {
    /// Offset in the code.
    pub code_offset: u32,
    /// The register.
    pub register: u32,
}

/// Where a coroutine goes on.
#[derive(Debug, Serialize)]
pub struct ResumeValue {
    /// Number of the place.
    pub id: u32,
    /// Offset in the code.
    pub code_offset: u32,
}

/// An instruction on a barrier.
#[derive(Debug, Serialize)]
pub struct MbarrierValue {
    /// Offset in the code.
    pub code_offset: u32,
    /// What it does, as a number.
    pub operation: u8,
    /// `MBARRIER_..`.
    pub operation_name: Option<&'static str>,
    /// The register that holds the address.
    pub register: u32,
    /// The uniform register that is added.
    pub uniform_register: u8,
    /// What is added, in bytes.
    pub immediate: i32,
    /// Number of the stride.
    pub stride: u8,
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
            Payload::Parameter(found) => Self::Parameter {
                index: found.index,
                ordinal: found.ordinal,
                offset: found.offset,
                size: found.size,
                pointee_alignment: found.pointee_alignment,
                space: found.space,
                bank: found.bank,
                in_shared_memory: found.in_shared_memory,
            },
            Payload::ParameterBank(bank) => Self::ParameterBank {
                symbol: bank.symbol,
                symbol_name: symbol_name(cubin, bank.symbol),
                offset: bank.offset,
                size: bank.size,
            },
            Payload::Branches(branches) => {
                let value = |branch: nvinfo::IndirectBranch<'_>| BranchValue {
                    code_offset: branch.offset,
                    branch_kind: branch.kind,
                    targets: branch.targets.into_iter().collect(),
                };
                Self::Branches { branches: branches.map(value).collect() }
            }
            Payload::UnusedLoads(loads) => {
                let value = |(code_offset, unused_bytes)| LoadValue { code_offset, unused_bytes };
                Self::UnusedLoads { loads: loads.into_iter().map(value).collect() }
            }
            Payload::RegisterMap(pairs) => {
                let value = |(code_offset, register)| RegisterValue { code_offset, register };
                Self::RegisterMap { registers: pairs.into_iter().map(value).collect() }
            }
            Payload::Resumes(pairs) => {
                let value = |(id, code_offset)| ResumeValue { id, code_offset };
                Self::Resumes { resumes: pairs.into_iter().map(value).collect() }
            }
            Payload::Mbarriers(barriers) => {
                let value = |one: nvinfo::Mbarrier| MbarrierValue {
                    code_offset: one.offset,
                    operation: one.kind,
                    operation_name: one.kind_name(),
                    register: one.register,
                    uniform_register: one.uniform_register,
                    immediate: one.immediate,
                    stride: one.stride,
                };
                Self::Mbarriers { mbarriers: barriers.into_iter().map(value).collect() }
            }
            other => Self::SpillRefills { offsets: other.code_offsets().collect() },
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Flag => String::new(),
            Self::Number { value } => format!("{value:#x}"),
            Self::OfSymbol { symbol_name, value, .. } => format!("{symbol_name}: {value:#x}"),
            Self::Symbols { symbol_names, .. } => symbol_names.join(" "),
            Self::Offsets { offsets } | Self::SpillRefills { offsets } => list(offsets, "+"),
            Self::Numbers { values } => list(values, ""),
            Self::Bytes { bytes } => bytes.clone(),
            Self::Parameter { ordinal, offset, size, .. } => {
                format!("parameter {ordinal} at {offset:#x}, {size} bytes")
            }
            Self::ParameterBank { symbol_name, offset, size, .. } => {
                format!("{symbol_name} from {offset:#x}, {size} bytes")
            }
            Self::Branches { branches } => joined(branches, |one| {
                format!("+{:#x} to {}", one.code_offset, list(&one.targets, "+"))
            }),
            Self::UnusedLoads { loads } => joined(loads, |one| {
                format!("+{:#x} bytes {:#x}", one.code_offset, one.unused_bytes)
            }),
            Self::RegisterMap { registers } => {
                joined(registers, |one| format!("+{:#x} R{}", one.code_offset, one.register))
            }
            Self::Resumes { resumes } => {
                joined(resumes, |one| format!("{} +{:#x}", one.id, one.code_offset))
            }
            Self::Mbarriers { mbarriers } => joined(mbarriers, |one| {
                let name = one.operation_name.and_then(|name| name.strip_prefix("MBARRIER_"));
                let name = name.map_or_else(|| one.operation.to_string(), str::to_owned);
                format!("+{:#x} {name}", one.code_offset)
            }),
        }
    }
}

fn joined<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn list(numbers: &[u32], sign: &str) -> String {
    let shown: Vec<_> = numbers.iter().map(|number| format!("{sign}{number:#x}")).collect();
    shown.join(" ")
}
