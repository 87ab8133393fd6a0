//! Notes: types, by owner.

names! {
    /// `n_type` of owner `GNU` (Linux Standard Base, "Note Section"; Linux Extensions to gABI).
    pub NT_GNU: u32 {
        NT_GNU_ABI_TAG         = 1,
        NT_GNU_HWCAP           = 2,
        NT_GNU_BUILD_ID        = 3,
        NT_GNU_GOLD_VERSION    = 4,
        NT_GNU_PROPERTY_TYPE_0 = 5,
    }

    /// `n_type` of owners whose name begins with `GA`, as `GA$<version>`: how what was built (Fedora, "Watermark").
    pub NT_GNU_BUILD_ATTRIBUTE: u32 {
        NT_GNU_BUILD_ATTRIBUTE_OPEN = 0x100,
        NT_GNU_BUILD_ATTRIBUTE_FUNC = 0x101,
    }

    /// `n_type` of owner `FDO` (systemd, "Package Metadata for ELF Files").
    pub NT_FDO: u32 {
        NT_FDO_PACKAGING_METADATA = 0xcafe_1a7e,
    }

    /// `n_type` of owner `LLVM`.
    pub NT_LLVM: u32 {
        NT_LLVM_HWASAN_GLOBALS = 3,
    }

    /// `n_type` of owner `LLVMOMPOFFLOAD`: who made an OpenMP device image.
    pub NT_LLVM_OPENMP: u32 {
        NT_LLVM_OPENMP_OFFLOAD_VERSION          = 1,
        NT_LLVM_OPENMP_OFFLOAD_PRODUCER         = 2,
        NT_LLVM_OPENMP_OFFLOAD_PRODUCER_VERSION = 3,
    }

    /// `n_type` of owner `NVIDIA Corp` (read from cubins), named for the sections `.note.nv.cuinfo`, `.note.nv.tkinfo`.
    pub NT_NVIDIA: u32 {
        NT_NV_CUINFO = 1000,
        NT_NV_TKINFO = 2000,
    }

    /// `n_type` of owner `AMD`: code objects of version 2 (AMDGPU usage guide, "Note Records").
    pub NT_AMD: u32 {
        NT_AMD_HSA_CODE_OBJECT_VERSION = 1,
        NT_AMD_HSA_HSAIL               = 2,
        NT_AMD_HSA_ISA_VERSION         = 3,
        NT_AMD_HSA_METADATA            = 10,
        NT_AMD_HSA_ISA_NAME            = 11,
        NT_AMD_PAL_METADATA            = 12,
    }

    /// `n_type` of owner `AMDGPU`: code objects from version 3 on (AMDGPU usage guide, "Note Records").
    pub NT_AMDGPU: u32 {
        NT_AMDGPU_METADATA = 32,
    }

    /// `n_type` of owner `Android`.
    pub NT_ANDROID: u32 {
        NT_ANDROID_TYPE_IDENT  = 1,
        NT_ANDROID_TYPE_KUSER  = 3,
        NT_ANDROID_TYPE_MEMTAG = 4,
    }

    /// `n_type` of owner `Go`.
    pub NT_GO: u32 {
        NT_GO_BUILDID = 4,
    }

    /// `n_type` of owner `stapsdt`: probes of SystemTap.
    pub NT_STAP: u32 {
        NT_STAPSDT = 3,
    }

    /// `n_type` of owner `Linux`, in the kernel and its modules.
    pub LINUX_ELFNOTE: u32 {
        LINUX_ELFNOTE_BUILD_SALT = 0x100,
        LINUX_ELFNOTE_LTO_INFO   = 0x101,
    }

    /// `n_type` of owner `FreeBSD`, outside core files.
    pub NT_FREEBSD: u32 {
        NT_FREEBSD_ABI_TAG     = 1,
        NT_FREEBSD_NOINIT_TAG  = 2,
        NT_FREEBSD_ARCH_TAG    = 3,
        NT_FREEBSD_FEATURE_CTL = 4,
    }

    /// `n_type` of owner `NetBSD`.
    pub NT_NETBSD: u32 {
        NT_NETBSD_IDENT = 1,
        NT_NETBSD_MARCH = 5,
    }

    /// `n_type` of owner `PaX` (NetBSD).
    pub NT_PAX: u32 {
        NT_NETBSD_PAX = 3,
    }

    /// `n_type` of owner `OpenBSD`, outside core files.
    pub NT_OPENBSD: u32 {
        NT_OPENBSD_IDENT = 1,
    }

    /// `n_type` of owner `SUNW Solaris`.
    pub NT_SOLARIS: u32 {
        NT_SOLARIS_PAGESIZE_HINT = 1,
    }

    /// `n_type` of an owner without a name, outside core files.
    pub NT_OBJECT: u32 {
        NT_VERSION = 1,
        NT_ARCH    = 2,
    }

    /// `n_type` in core files, of owners `CORE` and `LINUX` (`linux/elf.h`; Solaris `core(5)`): threads, registers.
    pub NT_CORE: u32 {
        NT_PRSTATUS               = 1,
        NT_PRFPREG                = 2,
        NT_PRPSINFO               = 3,
        NT_TASKSTRUCT             = 4,
        NT_PLATFORM               = 5,
        NT_AUXV                   = 6,
        NT_GWINDOWS               = 7,
        NT_ASRS                   = 8,
        NT_PSTATUS                = 10,
        NT_FPREGS                 = 12,
        NT_PSINFO                 = 13,
        NT_PRCRED                 = 14,
        NT_UTSNAME                = 15,
        NT_LWPSTATUS              = 16,
        NT_LWPSINFO               = 17,
        NT_PRFPXREG               = 20,
        NT_PPC_VMX                = 0x100,
        NT_PPC_SPE                = 0x101,
        NT_PPC_VSX                = 0x102,
        NT_PPC_TAR                = 0x103,
        NT_PPC_PPR                = 0x104,
        NT_PPC_DSCR               = 0x105,
        NT_PPC_EBB                = 0x106,
        NT_PPC_PMU                = 0x107,
        NT_PPC_TM_CGPR            = 0x108,
        NT_PPC_TM_CFPR            = 0x109,
        NT_PPC_TM_CVMX            = 0x10a,
        NT_PPC_TM_CVSX            = 0x10b,
        NT_PPC_TM_SPR             = 0x10c,
        NT_PPC_TM_CTAR            = 0x10d,
        NT_PPC_TM_CPPR            = 0x10e,
        NT_PPC_TM_CDSCR           = 0x10f,
        NT_PPC_PKEY               = 0x110,
        NT_386_TLS                = 0x200,
        NT_386_IOPERM             = 0x201,
        NT_X86_XSTATE             = 0x202,
        NT_X86_CET                = 0x203,
        NT_X86_SHSTK              = 0x204,
        NT_X86_XSAVE_LAYOUT       = 0x205,
        NT_S390_HIGH_GPRS         = 0x300,
        NT_S390_TIMER             = 0x301,
        NT_S390_TODCMP            = 0x302,
        NT_S390_TODPREG           = 0x303,
        NT_S390_CTRS              = 0x304,
        NT_S390_PREFIX            = 0x305,
        NT_S390_LAST_BREAK        = 0x306,
        NT_S390_SYSTEM_CALL       = 0x307,
        NT_S390_TDB               = 0x308,
        NT_S390_VXRS_LOW          = 0x309,
        NT_S390_VXRS_HIGH         = 0x30a,
        NT_S390_GS_CB             = 0x30b,
        NT_S390_GS_BC             = 0x30c,
        NT_S390_RI_CB             = 0x30d,
        NT_S390_PV_CPU_DATA       = 0x30e,
        NT_ARM_VFP                = 0x400,
        NT_ARM_TLS                = 0x401,
        NT_ARM_HW_BREAK           = 0x402,
        NT_ARM_HW_WATCH           = 0x403,
        NT_ARM_SYSTEM_CALL        = 0x404,
        NT_ARM_SVE                = 0x405,
        NT_ARM_PAC_MASK           = 0x406,
        NT_ARM_PACA_KEYS          = 0x407,
        NT_ARM_PACG_KEYS          = 0x408,
        NT_ARM_TAGGED_ADDR_CTRL   = 0x409,
        NT_ARM_PAC_ENABLED_KEYS   = 0x40a,
        NT_ARM_SSVE               = 0x40b,
        NT_ARM_ZA                 = 0x40c,
        NT_ARM_ZT                 = 0x40d,
        NT_ARM_FPMR               = 0x40e,
        NT_ARM_POE                = 0x40f,
        NT_ARM_GCS                = 0x410,
        NT_METAG_CBUF             = 0x500,
        NT_METAG_RPIPE            = 0x501,
        NT_METAG_TLS              = 0x502,
        NT_ARC_V2                 = 0x600,
        NT_VMCOREDD               = 0x700,
        NT_MIPS_DSP               = 0x800,
        NT_MIPS_FP_MODE           = 0x801,
        NT_MIPS_MSA               = 0x802,
        NT_RISCV_CSR              = 0x900,
        NT_RISCV_VECTOR           = 0x901,
        NT_RISCV_TAGGED_ADDR_CTRL = 0x902,
        NT_RISCV_USER_CFI         = 0x903,
        NT_LOONGARCH_CPUCFG       = 0xa00,
        NT_LOONGARCH_CSR          = 0xa01,
        NT_LOONGARCH_LSX          = 0xa02,
        NT_LOONGARCH_LASX         = 0xa03,
        NT_LOONGARCH_LBT          = 0xa04,
        NT_LOONGARCH_HW_BREAK     = 0xa05,
        NT_LOONGARCH_HW_WATCH     = 0xa06,
        NT_FILE                   = 0x4649_4c45,
        NT_PRXFPREG               = 0x46e6_2b7f,
        NT_SIGINFO                = 0x5349_4749,
    }

    /// `n_type` in core files, of owner `GDB`.
    pub NT_GDB: u32 {
        NT_GDB_TDESC = 0xff00_0000,
        NT_MEMTAG    = 0xff00_0001,
    }

    /// `n_type` in core files, of owner `FreeBSD`, beside those of [`NT_CORE`].
    pub NT_FREEBSD_CORE: u32 {
        NT_FREEBSD_THRMISC            = 7,
        NT_FREEBSD_PROCSTAT_PROC      = 8,
        NT_FREEBSD_PROCSTAT_FILES     = 9,
        NT_FREEBSD_PROCSTAT_VMMAP     = 10,
        NT_FREEBSD_PROCSTAT_GROUPS    = 11,
        NT_FREEBSD_PROCSTAT_UMASK     = 12,
        NT_FREEBSD_PROCSTAT_RLIMIT    = 13,
        NT_FREEBSD_PROCSTAT_OSREL     = 14,
        NT_FREEBSD_PROCSTAT_PSSTRINGS = 15,
        NT_FREEBSD_PROCSTAT_AUXV      = 16,
        NT_FREEBSD_PTLWPINFO          = 17,
        NT_FREEBSD_X86_SEGBASES       = 0x200,
    }

    /// `n_type` in core files, of owners that begin with `NetBSD-CORE`; machines number from 32 on.
    pub NT_NETBSDCORE: u32 {
        NT_NETBSDCORE_PROCINFO  = 1,
        NT_NETBSDCORE_AUXV      = 2,
        NT_NETBSDCORE_LWPSTATUS = 24,
    }

    /// `n_type` in core files, of owners that begin with `OpenBSD`.
    pub NT_OPENBSD_CORE: u32 {
        NT_OPENBSD_PROCINFO = 10,
        NT_OPENBSD_AUXV     = 11,
        NT_OPENBSD_REGS     = 20,
        NT_OPENBSD_FPREGS   = 21,
        NT_OPENBSD_XFPREGS  = 22,
        NT_OPENBSD_WCOOKIE  = 23,
    }
}

/// The name of a note's type. `owner` is the note's name, with or without the zero bytes that end it.
#[must_use]
pub const fn note_type(mut owner: &[u8], file_is_core: bool, n_type: u32) -> Option<&'static str> {
    while let [name @ .., 0] = owner {
        owner = name;
    }
    let n_type = n_type as u64;
    match (owner, file_is_core) {
        (b"GNU", _) => NT_GNU.get(n_type),
        (_, _) if begins_with(owner, b"GA") => NT_GNU_BUILD_ATTRIBUTE.get(n_type),
        (b"FDO", _) => NT_FDO.get(n_type),
        (b"LLVM", _) => NT_LLVM.get(n_type),
        (b"LLVMOMPOFFLOAD", _) => NT_LLVM_OPENMP.get(n_type),
        (b"NVIDIA Corp", _) => NT_NVIDIA.get(n_type),
        (b"AMD", _) => NT_AMD.get(n_type),
        (b"AMDGPU", _) => NT_AMDGPU.get(n_type),
        (b"Android", _) => NT_ANDROID.get(n_type),
        (b"Go", _) => NT_GO.get(n_type),
        (b"stapsdt", _) => NT_STAP.get(n_type),
        (b"Linux", _) => LINUX_ELFNOTE.get(n_type),
        (b"PaX", _) => NT_PAX.get(n_type),
        (b"SUNW Solaris", _) => NT_SOLARIS.get(n_type),
        (b"FreeBSD", false) => NT_FREEBSD.get(n_type),
        (b"NetBSD", false) => NT_NETBSD.get(n_type),
        (b"OpenBSD", false) => NT_OPENBSD.get(n_type),
        (b"", false) => NT_OBJECT.get(n_type),
        (b"CORE" | b"LINUX", true) => NT_CORE.get(n_type),
        (b"GDB", true) => NT_GDB.get(n_type),
        (b"FreeBSD", true) => NT_FREEBSD_CORE.or(NT_CORE, n_type),
        (_, true) if begins_with(owner, b"NetBSD-CORE") => NT_NETBSDCORE.get(n_type),
        (_, true) if begins_with(owner, b"OpenBSD") => NT_OPENBSD_CORE.get(n_type),
        _ => None,
    }
}

const fn begins_with(mut name: &[u8], mut start: &[u8]) -> bool {
    loop {
        (name, start) = match (name, start) {
            (_, []) => return true,
            ([a, name @ ..], [b, start @ ..]) if *a == *b => (name, start),
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::note_type;

    #[test]
    fn the_owner_and_the_kind_of_file_decide() {
        assert_eq!(note_type(b"GNU\0", false, 3), Some("NT_GNU_BUILD_ID"));
        assert_eq!(note_type(b"GNU", true, 3), Some("NT_GNU_BUILD_ID"));
        assert_eq!(note_type(b"GA$\x013a1", false, 0x100), Some("NT_GNU_BUILD_ATTRIBUTE_OPEN"));
        assert_eq!(note_type(b"NVIDIA Corp", false, 2000), Some("NT_NV_TKINFO"));
        assert_eq!(note_type(b"LLVMOMPOFFLOAD", false, 1), Some("NT_LLVM_OPENMP_OFFLOAD_VERSION"));
        assert_eq!(note_type(b"FreeBSD", false, 1), Some("NT_FREEBSD_ABI_TAG"));
        assert_eq!(note_type(b"FreeBSD", true, 1), Some("NT_PRSTATUS"));
        assert_eq!(note_type(b"FreeBSD", true, 16), Some("NT_FREEBSD_PROCSTAT_AUXV"));
        assert_eq!(note_type(b"NetBSD-CORE@17", true, 24), Some("NT_NETBSDCORE_LWPSTATUS"));
        assert_eq!(note_type(b"OpenBSD@9", true, 20), Some("NT_OPENBSD_REGS"));
        assert_eq!(note_type(b"LINUX", true, 0x202), Some("NT_X86_XSTATE"));
        assert_eq!(note_type(b"LINUX", false, 0x202), None);
        assert_eq!(note_type(b"\0\0", false, 1), Some("NT_VERSION"));
        assert_eq!(note_type(b"nobody", false, 1), None);
    }
}
