//! What a cubin says of itself, as rows for C.

use crate::border::Rows;
use crate::cubin::{CubinAttribute, CubinInfo, CubinKernel, CubinParameter};
use crate::cubin::{HOIST_NOT_RECORDED, HOIST_STACK_NOT_RECORDED, HOIST_STACK_UNBOUNDED};
use crate::error::{Error, c_string};
use crate::faults;
use core::ffi::c_char;
use nvinfo::{Attribute, AttributeValue, Function, LinkStage, Resources, Stack};
use std::ffi::CString;

/// A cubin, to look at. Free it with `hoist_cubin_free`.
pub struct Cubin {
    pub(crate) info: Rows<CubinInfo>,
    pub(crate) kernels: Vec<KernelRows>,
    #[expect(dead_code, reason = "what pointers of rows lead to")]
    bytes: Vec<u8>,
    #[expect(dead_code, reason = "what pointers of rows lead to")]
    names: Vec<CString>,
}

/// A kernel.
pub(crate) struct KernelRows {
    pub(crate) name: CString,
    pub(crate) row: Rows<CubinKernel>,
    pub(crate) parameters: Vec<CubinParameter>,
    pub(crate) attributes: Rows<CubinAttribute>,
    pub(crate) resources: Resources,
}

/// Text of C that stays where it is as the list grows.
#[derive(Default)]
struct Names(Vec<CString>);

impl Names {
    fn keep(&mut self, text: impl Into<Vec<u8>>) -> *const c_char {
        let text = c_string(text);
        let pointer = text.as_ptr();
        self.0.push(text);
        pointer
    }
}

impl Cubin {
    /// Reads the cubin that `bytes` are.
    pub(crate) fn parse(label: &str, bytes: Vec<u8>) -> Result<Self, Error> {
        let damaged = |error| faults::cubin(&error, label);
        let mut names = Names::default();
        let cubin = nvinfo::Cubin::parse(&bytes).map_err(damaged)?;
        let target = cubin.target();
        let architecture = match target.sm {
            Some(sm) => format!("sm_{sm}{}", target.suffix.as_str()),
            None => String::new(),
        };
        let info = CubinInfo {
            architecture: names.keep(architecture),
            sm: target.sm.unwrap_or(HOIST_NOT_RECORDED),
            virtual_sm: target.virtual_sm.unwrap_or(HOIST_NOT_RECORDED),
            toolkit_major: target.toolkit.map_or(HOIST_NOT_RECORDED, |toolkit| toolkit.major()),
            toolkit_minor: target.toolkit.map_or(HOIST_NOT_RECORDED, |toolkit| toolkit.minor()),
            is_64: target.is_64,
            is_relocatable: target.stage == LinkStage::Relocatable,
        };
        let kernels = cubin.kernels().map(|kernel| rows(&kernel, &mut names).map_err(damaged));
        let kernels = kernels.collect::<Result<_, _>>()?;
        Ok(Self { info: Rows(vec![info]), kernels, bytes, names: names.0 })
    }
}

fn rows(kernel: &Function<'_>, names: &mut Names) -> Result<KernelRows, nvinfo::Error> {
    let resources = kernel.resources()?;
    let mut parameters = Vec::new();
    for parameter in kernel.parameters()? {
        let parameter = parameter?;
        parameters.push(CubinParameter {
            ordinal: parameter.ordinal.into(),
            offset: parameter.offset.into(),
            size: parameter.size.into(),
            pointee_alignment: parameter.pointee_alignment.into(),
            bank: parameter.bank.map_or(HOIST_NOT_RECORDED, u32::from),
        });
    }
    parameters.sort_by_key(|parameter| parameter.ordinal);
    let mut attributes = Vec::new();
    for attribute in kernel.attributes()? {
        attributes.push(of_attribute(&attribute?, names));
    }
    let name = c_string(kernel.name().as_bytes());
    let number = |number: Option<u32>| number.unwrap_or(HOIST_NOT_RECORDED);
    let three = |sizes: Option<[u32; 3]>| sizes.unwrap_or([HOIST_NOT_RECORDED; 3]);
    let row = CubinKernel {
        name: name.as_ptr(),
        code_size: resources.code_size,
        shared: resources.shared,
        reserved_shared: resources.reserved_shared,
        local: resources.local,
        stack: match resources.stack {
            None => HOIST_STACK_NOT_RECORDED,
            Some(Stack::Unbounded) => HOIST_STACK_UNBOUNDED,
            Some(Stack::Bytes(bytes)) => bytes,
        },
        parameter_count: parameters.len(),
        attribute_count: attributes.len(),
        registers: number(resources.registers),
        max_registers: number(resources.max_registers),
        barriers: resources.barriers,
        frame_size: number(resources.frame_size),
        parameter_size: number(resources.parameter_size),
        max_threads: three(resources.max_threads),
        required_threads: three(resources.required_threads),
        cluster: three(resources.cluster),
        max_cluster_rank: number(resources.max_cluster_rank),
        textures: resources.textures,
        surfaces: resources.surfaces,
        samplers: resources.samplers,
        section: kernel.section(),
        symbol: kernel.index(),
    };
    Ok(KernelRows {
        name,
        row: Rows(vec![row]),
        parameters,
        attributes: Rows(attributes),
        resources,
    })
}

fn of_attribute(attribute: &Attribute<'_>, names: &mut Names) -> CubinAttribute {
    let (format, value, bytes): (u32, u32, &[u8]) = match attribute.value {
        AttributeValue::None(_) => (1, 0, &[]),
        AttributeValue::Byte(value, _) => (2, value.into(), &[]),
        AttributeValue::Half(value) => (3, value.into(), &[]),
        AttributeValue::Bytes(bytes) => (4, 0, bytes),
    };
    CubinAttribute {
        name: names.keep(attribute.name().unwrap_or_default()),
        offset: attribute.at,
        data: if bytes.is_empty() { core::ptr::null() } else { bytes.as_ptr().cast() },
        data_size: bytes.len(),
        number: attribute.number.into(),
        format,
        value,
    }
}
