//! What a cubin says of itself, as rows for C.

use crate::border::Rows;
use crate::error::{Error, c_string};
use crate::faults;
use core::ffi::{c_char, c_void};
use nvinfo::{Attribute, AttributeValue, Function, LinkStage, Resources, Stack};
use std::ffi::CString;

/// A number that the cubin does not say.
pub const HOIST_NOT_RECORDED: u32 = 0xffff_ffff;
/// `hoist_cubin_kernel_row.stack`: the cubin does not say.
pub const HOIST_STACK_NOT_RECORDED: u64 = 0xffff_ffff_ffff_ffff;
/// `hoist_cubin_kernel_row.stack`: recursion or calls through pointers, so that no bound can be told.
pub const HOIST_STACK_UNBOUNDED: u64 = 0xffff_ffff_ffff_fffe;

/// What a cubin is for. Pointers are good as long as the cubin.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CubinInfo {
    /// The architecture (`"sm_90a"`), empty if the cubin does not say.
    pub architecture: *const c_char,
    /// Its number (90), or `HOIST_NOT_RECORDED`.
    pub sm: u32,
    /// That of the PTX it was made of, or `HOIST_NOT_RECORDED`.
    pub virtual_sm: u32,
    /// The CUDA toolkit that made it, or `HOIST_NOT_RECORDED`.
    pub toolkit_major: u32,
    /// As above.
    pub toolkit_minor: u32,
    /// Whether addresses have 64 bits.
    pub is_64: bool,
    /// Whether it is to be linked still.
    pub is_relocatable: bool,
}

/// A kernel, and what it needs. Numbers that the cubin does not say are `HOIST_NOT_RECORDED`. Pointers are good as long as the cubin.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CubinKernel {
    /// Its name, mangled.
    pub name: *const c_char,
    /// Size of its code in bytes.
    pub code_size: u64,
    /// Shared memory of a block in bytes, what launches add aside.
    pub shared: u64,
    /// Shared memory that the system takes of it, in bytes.
    pub reserved_shared: u64,
    /// Local memory of a thread in bytes.
    pub local: u64,
    /// Stack of a thread in bytes, functions that it calls included; or `HOIST_STACK_...`.
    pub stack: u64,
    /// How many parameters it has.
    pub parameter_count: usize,
    /// How many attributes it has.
    pub attribute_count: usize,
    /// Registers of a thread.
    pub registers: u32,
    /// The most that it may have (`--maxrregcount`).
    pub max_registers: u32,
    /// Barriers of a block.
    pub barriers: u32,
    /// Size of its own frame in bytes.
    pub frame_size: u32,
    /// Size of all parameters in bytes.
    pub parameter_size: u32,
    /// The most threads of a block, by x, y and z.
    pub max_threads: [u32; 3],
    /// The very numbers of threads that a block must have, by x, y and z.
    pub required_threads: [u32; 3],
    /// Blocks of a cluster, by x, y and z.
    pub cluster: [u32; 3],
    /// The most blocks of a cluster.
    pub max_cluster_rank: u32,
    /// How many textures it uses.
    pub textures: u32,
    /// How many surfaces it uses.
    pub surfaces: u32,
    /// How many samplers it uses.
    pub samplers: u32,
    /// The number of its section in the file.
    pub section: u32,
    /// The number of its symbol in the file.
    pub symbol: u32,
}

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CubinParameter {
    /// Which one it is, from 0 on.
    pub ordinal: u32,
    /// Where it begins among the parameters, in bytes.
    pub offset: u32,
    /// Its size in bytes.
    pub size: u32,
    /// Of pointers, the binary logarithm of the alignment that is promised for what they lead to.
    pub pointee_alignment: u32,
    /// The constant bank that it is in, or `HOIST_NOT_RECORDED`.
    pub bank: u32,
}

/// An attribute (`.nv.info.KERNEL`). Pointers are good as long as the cubin.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CubinAttribute {
    /// Its name (`"EIATTR_REGCOUNT"`), empty if it is not known.
    pub name: *const c_char,
    /// Where its record begins in the file.
    pub offset: u64,
    /// Its bytes, of format 4; else NULL.
    pub data: *const c_void,
    /// How many they are.
    pub data_size: usize,
    /// Its number.
    pub number: u32,
    /// `EIFMT_NVAL` (1): nothing, `EIFMT_BVAL` (2): a byte, `EIFMT_HVAL` (3): two bytes, `EIFMT_SVAL` (4): bytes.
    pub format: u32,
    /// The value, of formats 2 and 3.
    pub value: u32,
}

/// How many blocks of a kernel fit a multiprocessor.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CubinOccupancy {
    /// Blocks.
    pub blocks: u32,
    /// Warps of these blocks.
    pub warps: u32,
    /// Warps that a multiprocessor can have.
    pub of_warps: u32,
    /// What there is not enough of for more (`"registers"`). Never NULL; it is never freed.
    pub limiter: *const c_char,
}

impl Default for CubinOccupancy {
    fn default() -> Self {
        Self { blocks: 0, warps: 0, of_warps: 0, limiter: c"".as_ptr() }
    }
}

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
