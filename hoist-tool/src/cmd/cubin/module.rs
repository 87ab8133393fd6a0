//! What a cubin says of itself as a whole.

use anyhow::Result;
use elf_core::names::{STO_CUDA_MANAGED, STT_CUDA_OBJECT, STT_OBJECT};
use nvinfo::{Cubin, CubinNote, HeaderForm, LinkStage, Space, TextureMode};
use serde::Serialize;

use super::kernel::Bank;
use super::symbols::symbol_name;

/// The module. `null` where the file does not say.
#[derive(Debug, Serialize)]
pub struct Module {
    /// `sm_90a`.
    pub architecture: String,
    /// Number of the architecture that the code was compiled from.
    pub virtual_architecture: Option<u32>,
    /// The toolkit that made it.
    pub toolkit: Option<String>,
    /// 7 or 8: the version of the header's form.
    pub abi: Option<u8>,
    /// 32 or 64: bits of an address.
    pub address_bits: u32,
    /// `relocatable`, `linked`, or the number of another type.
    pub stage: String,
    /// `unified` or `independent`.
    pub texture_mode: Option<&'static str>,
    /// Bits of the flags that have no known meaning.
    pub other_flags: u32,
    /// Number of kernels.
    pub kernel_count: usize,
    /// Functions that are no kernels and no subroutines.
    pub device_functions: Vec<String>,
    /// Constant banks of the whole module.
    pub constant_banks: Vec<Bank>,
    /// Variables.
    pub variables: Vec<Variable>,
    /// Names that another file, or the system, is to define.
    pub undefined: Vec<String>,
    /// The tools that made it.
    pub tools: Vec<Tool>,
}

/// A variable.
#[derive(Debug, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its section.
    pub section: u32,
    /// Where it is in there.
    pub offset: u64,
    /// Its size.
    pub size: u64,
    /// The memory it is in, if its symbol says.
    pub space: Option<&'static str>,
    /// Whether the host sees it too.
    pub managed: bool,
}

/// A tool, from its note.
#[derive(Debug, Serialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its command line.
    pub arguments: String,
}

impl Module {
    /// What `cubin` says.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn of(cubin: &Cubin<'_>) -> Result<Self> {
        let target = cubin.target();
        let (mut kernel_count, mut device_functions) = (0, Vec::new());
        for function in cubin.functions() {
            if function.is_kernel() {
                kernel_count += 1;
            } else if !function.is_subroutine() {
                device_functions.push(symbol_name(cubin, function.index()));
            }
        }
        let banks = cubin.constant_banks().filter(|bank| bank.owner.is_none());
        let symbols = cubin.symbols().into_iter().flat_map(|table| (0u32..).zip(table.symbols()));
        let variables = symbols.filter(|(_, symbol)| {
            !symbol.is_undefined() && matches!(symbol.r#type(), STT_OBJECT | STT_CUDA_OBJECT)
        });
        let mut tools = Vec::new();
        for note in cubin.notes() {
            if let CubinNote::Tool(tool) = note? {
                tools.push(Tool {
                    name: tool.name.to_string(),
                    version: tool.release.to_string(),
                    arguments: tool.arguments.to_string().trim_end().to_owned(),
                });
            }
        }
        Ok(Self {
            architecture: target.to_string(),
            virtual_architecture: target.virtual_sm,
            toolkit: target.toolkit.map(|toolkit| toolkit.to_string()),
            abi: match target.form {
                HeaderForm::V7 => Some(7),
                HeaderForm::V8 => Some(8),
                _ => None,
            },
            address_bits: if target.is_64 { 64 } else { 32 },
            stage: match target.stage {
                LinkStage::Relocatable => "relocatable".to_owned(),
                LinkStage::Linked => "linked".to_owned(),
                LinkStage::Other(number) => number.to_string(),
            },
            texture_mode: match target.texture_mode {
                TextureMode::Unified => Some("unified"),
                TextureMode::Independent => Some("independent"),
                TextureMode::NotRecorded => None,
            },
            other_flags: target.other_flags,
            kernel_count,
            device_functions,
            constant_banks: banks.map(|bank| Bank::of(&bank)).collect(),
            variables: variables
                .map(|(index, symbol)| Variable {
                    name: symbol_name(cubin, index),
                    section: symbol.shndx.into(),
                    offset: symbol.value,
                    size: symbol.size,
                    space: space_name(Space::of(&symbol)),
                    managed: symbol.other & STO_CUDA_MANAGED != 0,
                })
                .collect(),
            undefined: cubin.undefined().map(|(index, ..)| symbol_name(cubin, index)).collect(),
            tools,
        })
    }
}

const fn space_name(space: Space) -> Option<&'static str> {
    match space {
        Space::Global => Some("global"),
        Space::Shared => Some("shared"),
        Space::Local => Some("local"),
        Space::Constant => Some("constant"),
        Space::ReservedShared => Some("reserved shared"),
        Space::NotRecorded | Space::Other(_) => None,
    }
}
