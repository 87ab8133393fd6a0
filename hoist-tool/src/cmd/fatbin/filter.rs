//! Which entries a command is about.

use fatbin::{EntryKind, Search, Sm};

use super::cubins::Image;
use super::rows::EntryRow;

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

/// Which code; all if nothing is said.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Code {
    /// Architectures, with their suffix: `sm_90`, `90a`.
    #[arg(long, value_delimiter = ',', value_name = "ARCH")]
    pub arch: Vec<Sm>,
    /// Kinds: `elf`, `ptx`, `nvvm`.
    #[arg(long, value_delimiter = ',', value_name = "KIND", value_parser = kind)]
    kind: Vec<EntryKind>,
}

/// Which entries; all if nothing is said.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Filter {
    #[command(flatten)]
    code: Code,
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

    /// Whether all entries are meant.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.code.is_all() && self.region.is_none() && self.entry.is_none()
    }

    /// The code that is meant, wherever it is.
    #[must_use]
    pub const fn code(&self) -> &Code {
        &self.code
    }

    /// Whether code of this kind for this architecture is meant.
    #[must_use]
    pub fn wants(&self, kind: EntryKind, sm: Sm) -> bool {
        self.code.wants(Some(kind), Some(sm))
    }
}

impl Code {
    /// Whether all code is meant.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.arch.is_empty() && self.kind.is_empty()
    }

    /// Code for these architectures; for all, if there is none.
    #[must_use]
    pub const fn of_archs(arch: Vec<Sm>) -> Self {
        Self { arch, kind: Vec::new() }
    }

    /// Whether code of this kind is meant, for whatever architecture.
    #[must_use]
    pub fn has_kind(&self, kind: EntryKind) -> bool {
        self.kind.is_empty() || self.kind.contains(&kind)
    }

    /// Whether an image is meant.
    #[must_use]
    pub fn wants_image(&self, image: &Image) -> bool {
        self.wants(Some(image.kind), Some(image.sm))
    }

    /// Whether code of this kind for this architecture is meant; what nobody knows is meant by nothing.
    #[must_use]
    pub fn wants(&self, found: Option<EntryKind>, sm: Option<Sm>) -> bool {
        // cubins from before ELF are asked for by the same word
        let found = if found == Some(EntryKind::Cubin) { Some(EntryKind::Elf) } else { found };
        (self.arch.is_empty() || sm.is_some_and(|sm| self.arch.contains(&sm)))
            && (self.kind.is_empty() || found.is_some_and(|found| self.kind.contains(&found)))
    }

    /// Whether what is shown of an entry is of code that is meant, or one of its parts is.
    #[must_use]
    pub fn wants_row(&self, entry: &EntryRow<'_>) -> bool {
        let wants = |found: &str, arch: Option<&str>| {
            // LLVM's containers have architectures of others, too
            let sm = arch.and_then(|arch| arch.parse().ok());
            self.wants(kind(&found.replace(' ', "-")).ok(), sm)
        };
        match entry.parts.as_slice() {
            [] => wants(&entry.kind, entry.arch.as_deref()),
            parts => parts.iter().any(|part| wants(&part.kind, Some(&part.arch))),
        }
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
