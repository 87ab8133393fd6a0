//! What of a file is shown.

/// What to show: everything if nothing is selected.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Selection {
    /// The file header.
    #[arg(long)]
    pub(super) header: bool,
    /// Segments (program headers).
    #[arg(long)]
    pub(super) segments: bool,
    /// Sections.
    #[arg(long)]
    pub(super) sections: bool,
    /// The dynamic section.
    #[arg(long)]
    pub(super) dynamic: bool,
    /// Symbols of all symbol tables.
    #[arg(long)]
    pub(super) symbols: bool,
    /// Relocations.
    #[arg(long)]
    pub(super) relocations: bool,
    /// Notes.
    #[arg(long)]
    pub(super) notes: bool,
    /// Everything: what is shown anyway if nothing is selected.
    #[arg(long)]
    pub(super) all: bool,
}

impl Selection {
    /// Everything, if nothing was selected.
    pub(super) const fn resolved(self) -> Self {
        let Self { header, segments, sections, dynamic, symbols, relocations, notes, all } = self;
        if !all && (header || segments || sections || dynamic || symbols || relocations || notes) {
            return self;
        }
        Self {
            header: true,
            segments: true,
            sections: true,
            dynamic: true,
            symbols: true,
            relocations: true,
            notes: true,
            all: true,
        }
    }
}
