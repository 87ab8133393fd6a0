//! Symbol versions.

names! {
    /// Indices with a meaning in `SHT_GNU_versym` (LSB, "Symbol Version Table").
    pub VER_NDX: u16 {
        VER_NDX_LOCAL  = 0,
        VER_NDX_GLOBAL = 1,
    }
}

flags! {
    /// `vd_flags` and `vna_flags` (LSB, "Version Definitions"; Solaris `VER_FLG_INFO`).
    pub VER_FLG: u16 {
        VER_FLG_BASE = 0x1,
        VER_FLG_WEAK = 0x2,
        VER_FLG_INFO = 0x4,
    }
}

/// `vd_version` (LSB, "Version Definitions").
pub const VER_DEF_CURRENT: u16 = 1;
/// `vn_version` (LSB, "Version Requirements").
pub const VER_NEED_CURRENT: u16 = 1;
/// In `SHT_GNU_versym`: only a reference that states the version finds the symbol (LSB, "Symbol Version Table").
pub const VERSYM_HIDDEN: u16 = 0x8000;
/// In `SHT_GNU_versym`: the bits that hold the index.
pub const VERSYM_VERSION: u16 = 0x7fff;
