//! What cuobjdump calls the numbers in values of attributes.

/// Where an attribute is one of these, its numbers are names.
pub(super) const ENTRY_FRAGMENTS: [&str; 10] = [
    UNKNOWN_ATTRIBUTE,
    "AT_ENTRY_FRAGMENT_TEST1",
    "AT_ENTRY_FRAGMENT_TEST2",
    "AT_ENTRY_FRAGMENT_TEST3",
    "AT_ENTRY_FRAGMENT_TMEM_CTA1",
    "AT_ENTRY_FRAGMENT_TMEM_CTA2",
    "AT_ENTRY_FRAGMENT_TMEM_CTA1_V2",
    "AT_ENTRY_FRAGMENT_TMEM_CTA2_V2",
    "AT_ENTRY_FRAGMENT_RESIZE_SMEM",
    "AT_ENTRY_FRAGMENT_DEVICE_MEMCPY",
];

/// What it says of an attribute, or a fragment, that it does not know.
pub(super) const UNKNOWN_ATTRIBUTE: &str = "unknown Attribute";

/// What a relocation writes, in the table of relocation actions; behind these are kinds without a name.
pub(super) const ACTIONS: [&str; 10] = [
    "EIVALUE_SYM_KIND_ADDR",
    "EIVALUE_SYM_KIND_GADDR",
    "EIVALUE_SYM_KIND_FDESC",
    "EIVALUE_SYM_KIND_HEADER_INDEX",
    "EIVALUE_SYM_KIND_BINDLESSOFF",
    "EIVALUE_SYM_KIND_PCREL",
    "EIVALUE_SYM_KIND_CBANK",
    "EIVALUE_SYM_KIND_INSTR",
    "EIVALUE_SYM_KIND_CLEAR",
    "EIVALUE_SYM_KIND_UADDR",
];

/// What it says there of a relocation that it does not know.
pub(super) const UNKNOWN_RELOCATION: &str = "UNKNOWN REL TYPE";

/// `EIATTR_LANGUAGE`.
pub(super) const LANGUAGES: [&str; 11] = [
    "UNKNOWN",
    "SASS",
    "NVSAL",
    "PTX",
    "NVVM",
    "CUDA_C++",
    "CUDA_C++_Tile",
    "TILEIR",
    "CUTILE",
    "FORTRAN",
    "OPTIX",
];

/// `EIATTR_INSTR_OFFSETS`: what the instructions are.
pub(super) const INSTRUCTIONS: [&str; 4] = [
    "UNKNOWN",
    "PREFETCH_L1_VALID_ADDR",
    "FENCE_PROXY_ASYNC_GENERIC_SR_SMEM_READS_RELEASE_CLUSTER",
    "FENCE_ALIAS_SR_READ_RELEASE_SYS",
];

/// `EIATTR_STUB_FUNCTION_KIND`.
pub(super) const STUBS: [&str; 4] = ["", "FUNC_UFT_STUB", "FUNC_ATENTRY_STUB", "FUNC_ATEXIT_STUB"];

/// `EIATTR_SPARSE_MMA_MASK`: bits.
pub(super) const SPARSE: [(u32, &str); 9] = [
    (1 << 0, "QGMMA.SP"),
    (1 << 1, "HGMMA.SP"),
    (1 << 2, "IGMMA.SP"),
    (1 << 3, "QMMA.SP"),
    (1 << 4, "HMMA.SP"),
    (1 << 5, "IMMA.SP"),
    (1 << 6, "UTC*MMASparse"),
    (1 << 7, "OMMA.SP"),
    (1 << 15, "UNKNOWN"),
];

/// The name of a number; the first one's if it has none.
pub(super) fn named(names: &[&'static str], number: u32) -> &'static str {
    let known = usize::try_from(number).ok().and_then(|number| names.get(number));
    known.or_else(|| names.first()).copied().unwrap_or_default()
}
