//! Which entries a command is about.

use fatbin::{EntryKind, Search, Sm};

/// Where device code is looked for.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Where {
    /// Looks into the sections made for device code only, as `cuobjdump -all` does, and not through ordinary data.
    #[arg(long)]
    no_search: bool,
}

impl Where {
    /// What is searched.
    #[must_use]
    pub const fn search(self) -> Search {
        if self.no_search { Search::Never } else { Search::Always }
    }
}

/// Which entries; all if nothing is said.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Filter {
    /// Architectures, with their suffix: `sm_90`, `90a`.
    #[arg(long, value_delimiter = ',', value_name = "ARCH")]
    pub arch: Vec<Sm>,
    /// Kinds: `elf`, `ptx`, `nvvm`.
    #[arg(long, value_delimiter = ',', value_name = "KIND", value_parser = kind)]
    pub kind: Vec<EntryKind>,
    /// The region with this number in `list`.
    #[arg(long, value_name = "NUMBER")]
    pub region: Option<usize>,
    /// The entry with this number in its region.
    #[arg(long, value_name = "NUMBER")]
    pub entry: Option<usize>,
}

impl Filter {
    /// Whether entry `entry` of region `region` can be meant: by its numbers.
    #[must_use]
    pub fn wants_place(&self, region: usize, entry: usize) -> bool {
        self.region.is_none_or(|wanted| wanted == region)
            && self.entry.is_none_or(|wanted| wanted == entry)
    }

    /// Whether code of this kind for this architecture is meant.
    #[must_use]
    pub fn wants(&self, kind: EntryKind, sm: Sm) -> bool {
        (self.arch.is_empty() || self.arch.contains(&sm))
            && (self.kind.is_empty() || self.kind.contains(&kind))
    }
}

/// A kind by its name.
///
/// # Errors
/// If there is none of this name.
pub fn kind(text: &str) -> Result<EntryKind, String> {
    const KINDS: [(&str, EntryKind); 9] = [
        ("ptx", EntryKind::Ptx),
        ("elf", EntryKind::Elf),
        ("cubin", EntryKind::Elf),
        ("nvvm", EntryKind::Nvvm),
        ("lto", EntryKind::Nvvm),
        ("index", EntryKind::Index),
        ("relocatable-ptx", EntryKind::RelocatablePtx),
        ("tile-ir", EntryKind::TileIr),
        ("concatenated", EntryKind::Concatenated),
    ];
    KINDS.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind).ok_or_else(|| {
        let names: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
        format!("no kind; expected one of {}", names.join(", "))
    })
}
