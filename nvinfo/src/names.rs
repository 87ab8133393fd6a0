//! The attributes of `.nv.info`: number, name and the shape of the value, each written once.

use Shape::*;

/// How the bytes of an attribute's value are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As bytes: nothing more is known.
    Bytes,
    /// A number of four bytes.
    Number,
    /// A symbol and a number.
    OfSymbol,
    /// Symbols.
    Symbols,
    /// Offsets in the code.
    Offsets,
    /// Numbers.
    Numbers,
    /// Three numbers: x, y, z.
    Triple,
    /// A parameter.
    Parameter,
    /// A parameter whose size may pass 14 bits.
    ParameterV2,
    /// Where the parameters are.
    ParameterBank,
    /// Indirect branches, each with its targets.
    Branches,
    /// Offsets in the code, each with a mask of bytes.
    UnusedLoads,
    /// Offsets in the code, each with its kind.
    Annotations,
    /// Barrier instructions.
    Mbarriers,
    /// Offsets in the code, each with a register.
    RegisterMap,
    /// Numbers of places where a coroutine goes on, each with its offset in the code.
    Resumes,
}

/// A row of the table.
pub(crate) struct Row {
    pub(crate) number: u8,
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
}

const fn row(number: u8, name: &'static str, shape: Shape) -> Row {
    Row { number, name, shape }
}

/// The row of this number.
#[inline]
pub(crate) fn attribute(number: u8) -> Option<&'static Row> {
    ATTRIBUTES.get(usize::from(number))
}

/// The name of an attribute of `.nv.info`, if the CUDA tools have one for it.
///
/// The names are those of nvlink 11.2 to 13.5. Four numbers were dropped from later tools' tables and keep their older name.
#[must_use]
pub fn attribute_name(number: u8) -> Option<&'static str> {
    attribute(number).map(|row| row.name).filter(|name| !name.is_empty())
}

/// The number of the attribute of this name: `EIATTR_REGCOUNT`, or `REGCOUNT` for short.
#[must_use]
pub fn attribute_number(name: &str) -> Option<u8> {
    let short = name.strip_prefix("EIATTR_").unwrap_or(name);
    let found = ATTRIBUTES.iter().find(|row| row.name.strip_prefix("EIATTR_") == Some(short));
    found.map(|row| row.number)
}

macro_rules! numbers {
    ($($name:ident = $number:literal, $what:literal;)*) => {
        $(#[doc = concat!("`EIATTR_", stringify!($name), "`: ", $what)] pub const $name: u8 = $number;)*

        #[cfg(test)]
        const NUMBERS: &[(u8, &str)] = &[$(($number, stringify!($name))),*];
    };
}

/// Numbers of the attributes that this crate itself looks for.
pub mod eiattr {
    numbers! {
        MAX_THREADS = 0x05, "threads per block that a launch may have, by dimension.";
        PARAM_CBANK = 0x0a, "section, offset and size of the parameters.";
        EXTERNS = 0x0f, "undefined functions that are called.";
        REQNTID = 0x10, "threads per block that a launch must have, by dimension.";
        FRAME_SIZE = 0x11, "bytes of stack of a function itself.";
        MIN_STACK_SIZE = 0x12, "bytes of stack of a kernel with all it calls; `0xffff_ffff` if that has no bound.";
        KPARAM_INFO = 0x17, "a parameter.";
        CBANK_PARAM_SIZE = 0x19, "bytes of parameters.";
        MAXREG_COUNT = 0x1b, "the number of registers that the compiler kept to.";
        EXIT_INSTR_OFFSETS = 0x1c, "where a kernel ends.";
        S2RCTAID_INSTR_OFFSETS = 0x1d, "where the block's index is read.";
        CRS_STACK_SIZE = 0x1e, "bytes of the call and return stack.";
        MAX_STACK_SIZE = 0x23, "bytes of stack at most.";
        REGCOUNT = 0x2f, "registers of a function.";
        INDIRECT_BRANCH_TARGETS = 0x34, "indirect branches, and where they go.";
        CUDA_API_VERSION = 0x37, "version of the toolkit.";
        MBARRIER_INSTR_OFFSETS = 0x39, "instructions on barriers in shared memory.";
        CTA_PER_CLUSTER = 0x3d, "blocks per cluster, by dimension.";
        EXPLICIT_CLUSTER = 0x3e, "a launch must name the cluster.";
        MAX_CLUSTER_RANK = 0x3f, "blocks per cluster at most.";
        UNUSED_LOAD_BYTE_OFFSET = 0x44, "loads of which some bytes are not used.";
        KPARAM_INFO_V2 = 0x45, "a parameter.";
        VRC_CTA_INIT_COUNT = 0x4a, "virtual resources of a block.";
        NUM_BARRIERS = 0x4c, "named barriers.";
        TEXMODE_INDEPENDENT = 0x4d, "textures and samplers have handles of their own.";
        BLOCKS_ARE_CLUSTERS = 0x5b, "the grid of a launch counts clusters.";
    }

    #[cfg(test)]
    pub(super) fn all() -> &'static [(u8, &'static str)] {
        NUMBERS
    }
}

#[rustfmt::skip]
static ATTRIBUTES: [Row; 111] = [
    row(  0, "EIATTR_ERROR",                                  Bytes),
    row(  1, "EIATTR_PAD",                                    Bytes),
    row(  2, "EIATTR_IMAGE_SLOT",                             Bytes),
    row(  3, "EIATTR_JUMPTABLE_RELOCS",                       Bytes),
    row(  4, "EIATTR_CTAIDZ_USED",                            Bytes),
    row(  5, "EIATTR_MAX_THREADS",                            Triple),
    row(  6, "EIATTR_IMAGE_OFFSET",                           Bytes),
    row(  7, "EIATTR_IMAGE_SIZE",                             Bytes),
    row(  8, "EIATTR_TEXTURE_NORMALIZED",                     Bytes),
    row(  9, "EIATTR_SAMPLER_INIT",                           Bytes),
    row( 10, "EIATTR_PARAM_CBANK",                            ParameterBank),
    row( 11, "EIATTR_SMEM_PARAM_OFFSETS",                     Bytes),
    row( 12, "EIATTR_CBANK_PARAM_OFFSETS",                    Bytes),
    row( 13, "EIATTR_SYNC_STACK",                             Bytes),
    row( 14, "EIATTR_TEXID_SAMPID_MAP",                       Bytes),
    row( 15, "EIATTR_EXTERNS",                                Symbols),
    row( 16, "EIATTR_REQNTID",                                Triple),
    row( 17, "EIATTR_FRAME_SIZE",                             OfSymbol),
    row( 18, "EIATTR_MIN_STACK_SIZE",                         OfSymbol),
    row( 19, "EIATTR_SAMPLER_FORCE_UNNORMALIZED",             Bytes),
    row( 20, "EIATTR_BINDLESS_IMAGE_OFFSETS",                 Bytes),
    row( 21, "EIATTR_BINDLESS_TEXTURE_BANK",                  Bytes),
    row( 22, "EIATTR_BINDLESS_SURFACE_BANK",                  Bytes),
    row( 23, "EIATTR_KPARAM_INFO",                            Parameter),
    row( 24, "EIATTR_SMEM_PARAM_SIZE",                        Bytes),
    row( 25, "EIATTR_CBANK_PARAM_SIZE",                       Bytes),
    row( 26, "EIATTR_QUERY_NUMATTRIB",                        Bytes),
    row( 27, "EIATTR_MAXREG_COUNT",                           Bytes),
    row( 28, "EIATTR_EXIT_INSTR_OFFSETS",                     Offsets),
    row( 29, "EIATTR_S2RCTAID_INSTR_OFFSETS",                 Offsets),
    row( 30, "EIATTR_CRS_STACK_SIZE",                         Number),
    row( 31, "EIATTR_NEED_CNP_WRAPPER",                       Bytes),
    row( 32, "EIATTR_NEED_CNP_PATCH",                         Bytes),
    row( 33, "EIATTR_EXPLICIT_CACHING",                       Bytes),
    row( 34, "EIATTR_ISTYPEP_USED",                           Bytes),
    row( 35, "EIATTR_MAX_STACK_SIZE",                         OfSymbol),
    row( 36, "EIATTR_SUQ_USED",                               Bytes),
    row( 37, "EIATTR_LD_CACHEMOD_INSTR_OFFSETS",              Offsets),
    row( 38, "EIATTR_LOAD_CACHE_REQUEST",                     Bytes),
    row( 39, "EIATTR_ATOM_SYS_INSTR_OFFSETS",                 Offsets),
    row( 40, "EIATTR_COOP_GROUP_INSTR_OFFSETS",               Offsets),
    row( 41, "EIATTR_COOP_GROUP_MASK_REGIDS",                 Numbers),
    row( 42, "EIATTR_SW1850030_WAR",                          Bytes),
    row( 43, "EIATTR_WMMA_USED",                              Bytes),
    row( 44, "EIATTR_HAS_PRE_V10_OBJECT",                     Bytes),
    row( 45, "EIATTR_ATOMF16_EMUL_INSTR_OFFSETS",             Offsets),
    row( 46, "EIATTR_ATOM16_EMUL_INSTR_REG_MAP",              RegisterMap),
    row( 47, "EIATTR_REGCOUNT",                               OfSymbol),
    row( 48, "EIATTR_SW2393858_WAR",                          Bytes),
    row( 49, "EIATTR_INT_WARP_WIDE_INSTR_OFFSETS",            Offsets),
    row( 50, "EIATTR_SHARED_SCRATCH",                         Numbers),
    row( 51, "EIATTR_STATISTICS",                             Bytes),
    row( 52, "EIATTR_INDIRECT_BRANCH_TARGETS",                Branches),
    row( 53, "EIATTR_SW2861232_WAR",                          Bytes),
    row( 54, "EIATTR_SW_WAR",                                 Number),
    row( 55, "EIATTR_CUDA_API_VERSION",                       Number),
    row( 56, "EIATTR_NUM_MBARRIERS",                          Bytes),
    row( 57, "EIATTR_MBARRIER_INSTR_OFFSETS",                 Mbarriers),
    row( 58, "EIATTR_COROUTINE_RESUME_ID_OFFSETS",            Resumes),
    row( 59, "EIATTR_SAM_REGION_STACK_SIZE",                  Bytes),
    row( 60, "EIATTR_PER_REG_TARGET_PERF_STATS",              Bytes),
    row( 61, "EIATTR_CTA_PER_CLUSTER",                        Triple),
    row( 62, "EIATTR_EXPLICIT_CLUSTER",                       Bytes),
    row( 63, "EIATTR_MAX_CLUSTER_RANK",                       Number),
    row( 64, "EIATTR_INSTR_REG_MAP",                          Bytes),
    row( 65, "EIATTR_RESERVED_SMEM_USED",                     Bytes),
    row( 66, "EIATTR_RESERVED_SMEM_0_SIZE",                   Bytes),
    row( 67, "EIATTR_UCODE_SECTION_DATA",                     Bytes),
    row( 68, "EIATTR_UNUSED_LOAD_BYTE_OFFSET",                UnusedLoads),
    row( 69, "EIATTR_KPARAM_INFO_V2",                         ParameterV2),
    row( 70, "EIATTR_SYSCALL_OFFSETS",                        Offsets),
    row( 71, "EIATTR_SW_WAR_MEMBAR_SYS_INSTR_OFFSETS",        Offsets),
    row( 72, "EIATTR_GRAPHICS_GLOBAL_CBANK",                  Bytes),
    row( 73, "EIATTR_SHADER_TYPE",                            Bytes),
    row( 74, "EIATTR_VRC_CTA_INIT_COUNT",                     Bytes),
    row( 75, "EIATTR_TOOLS_PATCH_FUNC",                       Bytes),
    row( 76, "EIATTR_NUM_BARRIERS",                           Bytes),
    row( 77, "EIATTR_TEXMODE_INDEPENDENT",                    Bytes),
    row( 78, "EIATTR_PERF_STATISTICS",                        Bytes),
    row( 79, "EIATTR_AT_ENTRY_FRAGMENTS",                     Bytes),
    row( 80, "EIATTR_SPARSE_MMA_MASK",                        Bytes),
    row( 81, "EIATTR_TCGEN05_1CTA_USED",                      Bytes),
    row( 82, "EIATTR_TCGEN05_2CTA_USED",                      Bytes),
    row( 83, "EIATTR_GEN_ERRBAR_AT_EXIT",                     Bytes),
    row( 84, "EIATTR_REG_RECONFIG",                           Bytes),
    row( 85, "EIATTR_ANNOTATIONS",                            Annotations),
    row( 86, "",                                              Bytes),
    row( 87, "EIATTR_STACK_CANARY_TRAP_OFFSETS",              Offsets),
    row( 88, "EIATTR_STUB_FUNCTION_KIND",                     Bytes),
    row( 89, "EIATTR_LOCAL_CTA_ASYNC_STORE_OFFSETS",          Offsets),
    row( 90, "EIATTR_MERCURY_FINALIZER_OPTIONS",              Bytes),
    row( 91, "EIATTR_BLOCKS_ARE_CLUSTERS",                    Bytes),
    row( 92, "EIATTR_SANITIZE",                               Bytes),
    row( 93, "EIATTR_SYSCALLS_FALLBACK",                      Bytes),
    row( 94, "EIATTR_CUDA_REQ",                               Bytes),
    row( 95, "EIATTR_MERCURY_ISA_VERSION",                    Bytes),
    row( 96, "",                                              Bytes),
    row( 97, "EIATTR_RTCORE_ENTRY",                           Bytes),
    row( 98, "EIATTR_CLUSTER_LAUNCH_CONTROL_USED",            Bytes),
    row( 99, "EIATTR_LAUNCH_PRE_REG_ALLOC",                   Bytes),
    row(100, "EIATTR_MIN_PER_CTA_MEMORY_SIZE",                Bytes),
    row(101, "EIATTR_IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS",  Offsets),
    row(102, "EIATTR_LANGUAGE",                               Number),
    row(103, "",                                              Bytes),
    row(104, "EIATTR_GRID_ATTRIBUTES",                        Bytes),
    row(105, "EIATTR_STACK_OFFSET",                           Bytes),
    row(106, "EIATTR_RT_LIVESTATE_SASS_MAP",                  Bytes),
    row(107, "EIATTR_NVSAL_SW_WAR",                           Bytes),
    row(108, "EIATTR_INSTR_OFFSETS",                          Offsets),
    row(109, "EIATTR_PREEXIT_USED",                           Bytes),
    row(110, "",                                              Bytes),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positions_and_names_are_unique() {
        for (index, row) in ATTRIBUTES.iter().enumerate() {
            assert_eq!(usize::from(row.number), index);
            if !row.name.is_empty() {
                assert!(row.name.starts_with("EIATTR_"));
                assert_eq!(attribute_number(row.name), Some(row.number), "{}", row.name);
            }
        }
        assert_eq!(attribute_name(86), None);
        assert_eq!(attribute_name(200), None);
        assert_eq!(attribute_number("REGCOUNT"), Some(0x2f));
    }

    #[test]
    fn constants_agree_with_the_table() {
        for &(number, name) in eiattr::all() {
            assert_eq!(attribute_number(name), Some(number), "{name}");
        }
    }
}
