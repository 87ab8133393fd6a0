//! The keys of `hoist show --json` that readelf knows as well.

use std::borrow::Cow;

use serde::Deserialize;

pub(crate) type Text<'a> = Cow<'a, str>;

#[derive(Deserialize)]
pub(crate) struct File<'a> {
    pub(crate) header: Header<'a>,
    #[serde(borrow)]
    pub(crate) segments: Vec<Segment<'a>>,
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) dynamic: Vec<Dynamic<'a>>,
    pub(crate) symbol_tables: Vec<SymbolTable<'a>>,
    pub(crate) relocations: Vec<Relocations<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Header<'a> {
    pub(crate) bits: u32,
    pub(crate) byte_order: &'a str,
    pub(crate) os_abi: u8,
    pub(crate) abi_version: u8,
    pub(crate) r#type: u16,
    pub(crate) type_name: Option<&'a str>,
    pub(crate) machine: u16,
    pub(crate) entry: u64,
    pub(crate) flags: u32,
    pub(crate) header_size: u16,
    pub(crate) program_headers: u64,
    pub(crate) program_header_size: u16,
    pub(crate) segments: usize,
    pub(crate) section_headers: u64,
    pub(crate) section_header_size: u16,
    pub(crate) sections: usize,
    pub(crate) section_names: u32,
}

#[derive(Deserialize)]
pub(crate) struct Segment<'a> {
    pub(crate) r#type: u32,
    pub(crate) type_name: Option<&'a str>,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) physical_address: u64,
    pub(crate) file_size: u64,
    pub(crate) memory_size: u64,
    pub(crate) alignment: u64,
}

#[derive(Deserialize)]
pub(crate) struct Section<'a> {
    pub(crate) index: u32,
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    pub(crate) r#type: u32,
    pub(crate) type_name: Option<&'a str>,
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
    pub(crate) info: u32,
    pub(crate) alignment: u64,
    pub(crate) entry_size: u64,
}

#[derive(Deserialize)]
pub(crate) struct Dynamic<'a> {
    pub(crate) tag: i64,
    pub(crate) tag_name: Option<&'a str>,
    pub(crate) value: u64,
    #[serde(borrow)]
    pub(crate) text: Option<Text<'a>>,
    pub(crate) value_names: Vec<&'a str>,
}

#[derive(Deserialize)]
pub(crate) struct SymbolTable<'a> {
    pub(crate) section: u32,
    #[serde(borrow)]
    pub(crate) symbols: Vec<Symbol<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Symbol<'a> {
    pub(crate) index: u32,
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    pub(crate) version: Option<Version<'a>>,
    pub(crate) value: u64,
    pub(crate) size: u64,
    pub(crate) r#type: u8,
    pub(crate) type_name: Option<&'a str>,
    pub(crate) binding: u8,
    pub(crate) binding_name: Option<&'a str>,
    pub(crate) other: u8,
    pub(crate) visibility_name: Option<&'a str>,
    pub(crate) section: u32,
    pub(crate) section_name: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Version<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    pub(crate) default: bool,
}

#[derive(Deserialize)]
pub(crate) struct Relocations<'a> {
    pub(crate) section: u32,
    pub(crate) symbol_table: Option<u32>,
    #[serde(borrow)]
    pub(crate) records: Vec<Relocation<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Relocation<'a> {
    pub(crate) offset: u64,
    pub(crate) r#type: u32,
    #[serde(borrow)]
    pub(crate) type_name: Option<Text<'a>>,
    pub(crate) symbol: u32,
    #[serde(borrow)]
    pub(crate) symbol_name: Option<Text<'a>>,
    pub(crate) symbol_version: Option<Version<'a>>,
    pub(crate) addend: Option<i64>,
}
