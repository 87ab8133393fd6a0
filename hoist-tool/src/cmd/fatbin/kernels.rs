//! The kernels of files: what each needs, wherever it is.

use std::hash::{DefaultHasher, Hasher as _};
use std::io::Write;

use anyhow::{Error, Result};
use elf_core::Name;
use fatbin::{EntryKind, Search};
use nvinfo::occupancy::Demand;
use nvinfo::{Cubin, KernelNeeds, Stack};
use serde::Serialize;

use super::cubins::{Image, ImagePlace, images};
use super::filter::Code;
use super::rows::arch;
use crate::faults::Faults;
use crate::kernel_filter::{KernelFilter, KernelOrder};
use crate::kernel_name::{Demangled, KernelName, Text};
use crate::pattern::Pattern;
use crate::ptx::ptx_module;
use crate::sources::{Order, Roots, Source, Sources};

/// A kernel somewhere. Sizes are in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct KernelRow {
    /// The file; in an archive behind its path and a colon.
    pub file: Text,
    /// The member of a library of objects.
    pub member: Option<Text>,
    /// Where in the file.
    #[serde(flatten)]
    pub place: ImagePlace,
    /// Its name, mangled.
    pub name: Text,
    /// Its name as it was in the source, if it is mangled.
    pub demangled: Demangled,
    /// What it is there as.
    pub kind: KernelForm,
    /// Registers of a thread; this and what follows are `null` for PTX.
    pub registers: Option<u32>,
    /// Static shared memory of a block.
    pub shared: Option<u64>,
    /// Stack with all that is called, or, where only that is recorded (of what is not linked), of the kernel alone; `null` if there is
    /// no bound, or the file does not say.
    pub stack: Option<u64>,
    /// Whether the stack has no bound that can be told.
    pub stack_unbounded: bool,
    /// Local memory of a thread, beside the stack.
    pub local: Option<u64>,
    /// Size of its code; of PTX, of its text.
    pub code_size: u64,
    /// The same number for the same code, if that is asked for.
    #[serde(skip)]
    pub code: u64,
    /// The architecture without its suffix.
    #[serde(skip)]
    pub sm: u32,
    /// Threads of a block that it names.
    #[serde(skip)]
    pub threads: Option<u32>,
    /// What a block asks of an SM, but for its threads.
    #[serde(skip)]
    pub demand: Demand,
}

/// What a kernel is there as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelForm {
    /// Machine code.
    Elf,
    /// A source that a driver compiles.
    Ptx,
}

impl KernelRow {
    /// Its name as people wrote it, or as it is.
    #[must_use]
    pub fn readable(&self, raw: bool) -> Text {
        let readable = if raw { None } else { self.demangled.text() };
        readable.unwrap_or_else(|| self.name.clone())
    }

    /// Calls its file what it is called in `root`: without what it is in.
    pub fn inside(&mut self, root: &str) {
        let inside = self.file.strip_prefix(root).unwrap_or(&self.file);
        self.file = inside.trim_start_matches([':', '/']).into();
    }

    /// Its stack for people.
    #[must_use]
    pub fn stack_text(&self) -> String {
        match self.stack {
            Some(bytes) => bytes.to_string(),
            None if self.stack_unbounded => "unbounded".to_owned(),
            None => "-".to_owned(),
        }
    }

    /// Its registers for people.
    #[must_use]
    pub fn registers_text(&self) -> String {
        or_dash(self.registers)
    }
}

/// A number for people: a dash where nobody says.
#[must_use]
pub fn or_dash(number: Option<impl ToString>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// Which kernels, and what is to be known of them.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'r> {
    /// Their names; all kernels, if there is none.
    pub names: &'r [Pattern],
    /// Whether the code itself is looked at.
    pub code: bool,
}

impl<'r> Wanted<'r> {
    /// Kernels of these names: what they need.
    #[must_use]
    pub const fn needs(names: &'r [Pattern]) -> Self {
        Self { names, code: false }
    }

    fn has(self, name: &str) -> bool {
        self.names.is_empty() || Pattern::any(self.names, name)
    }

    fn code(self, bytes: &[u8]) -> u64 {
        if !self.code {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        hasher.finish()
    }
}

/// Calls the files of all rows what they are called in `root`: each file once, as rows share its name.
pub fn all_inside(rows: &mut [KernelRow], root: &str) {
    let mut last: Option<[Text; 2]> = None;
    for row in rows {
        match &last {
            Some([before, inside]) if *before == row.file => row.file = inside.clone(),
            _ => {
                let before = row.file.clone();
                row.inside(root);
                last = Some([before, row.file.clone()]);
            }
        }
    }
}

/// The kernels of a cubin that these patterns mean.
///
/// # Errors
/// If the cubin is damaged.
pub fn of_cubin(
    (file, image): (&Text, &Image),
    bytes: &[u8],
    wanted: Wanted<'_>,
) -> Result<Vec<KernelRow>> {
    let cubin = Cubin::parse(bytes)?;
    let symbols = cubin.symbols().map_or(0, |table| table.len());
    let count = cubin.kernels().count();
    let mut room = vec![KernelNeeds::EMPTY; count];
    let mut numbers = vec![0; symbols.saturating_add(cubin.file().sections().len())];
    let mut rows = Vec::new();
    for kernel in cubin.kernel_needs(&mut room, &mut numbers)? {
        let (_, name) = cubin.symbol(kernel.symbol)?;
        if !wanted.has(&name.to_string()) {
            continue;
        }
        let code = match wanted.code {
            true => cubin.file().section_data(&cubin.file().section(kernel.section)?)?,
            false => &[],
        };
        let needs = &kernel.resources;
        let name = KernelName::mangled(name);
        rows.push(KernelRow {
            file: file.clone(),
            member: image.member.clone(),
            place: image.place.clone(),
            demangled: Demangled(name.clone()),
            name,
            kind: KernelForm::Elf,
            registers: needs.registers,
            shared: Some(needs.shared),
            stack: match needs.stack {
                Some(stack) => stack.bytes(),
                None => needs.frame_size.map(u64::from),
            },
            stack_unbounded: needs.stack == Some(Stack::Unbounded),
            local: Some(needs.local),
            code_size: needs.code_size,
            code: wanted.code(code),
            sm: image.sm.number,
            threads: needs.threads(),
            demand: needs.demand(0, 0),
        });
    }
    Ok(rows)
}

/// The kernels of a PTX source that are meant.
#[must_use]
pub fn of_ptx((file, image): (&Text, &Image), bytes: &[u8], wanted: Wanted<'_>) -> Vec<KernelRow> {
    let text = String::from_utf8_lossy(fatbin::text(bytes));
    let place = ImagePlace {
        arch: arch(image.kind, image.sm).unwrap_or_default().into(),
        ..image.place.clone()
    };
    let kernels = ptx_module(&text).functions.into_iter();
    let kernels = kernels.filter(|one| one.is_kernel && wanted.has(one.name)).map(|one| {
        let name = KernelName::mangled(Name(one.name.as_bytes()));
        let code = text.get(one.place).unwrap_or_default().as_bytes();
        KernelRow {
            file: file.clone(),
            member: image.member.clone(),
            place: place.clone(),
            demangled: Demangled(name.clone()),
            name,
            kind: KernelForm::Ptx,
            registers: None,
            shared: None,
            stack: None,
            stack_unbounded: false,
            local: None,
            code_size: code.len() as u64,
            code: wanted.code(code),
            sm: image.sm.number,
            threads: None,
            demand: Demand::default(),
        }
    });
    kernels.collect()
}

/// Which kernels of which files.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// The files.
    pub sources: &'r Sources,
    /// The kernels.
    pub wanted: Wanted<'r>,
    /// Which code.
    pub code: &'r Code,
    /// Where code is looked for.
    pub search: Search,
}

/// Whether an image is a cubin.
#[must_use]
pub const fn is_cubin(image: &Image) -> bool {
    matches!(image.kind, EntryKind::Elf | EntryKind::Cubin)
}

/// Whether an image is PTX.
#[must_use]
pub const fn is_ptx(image: &Image) -> bool {
    matches!(image.kind, EntryKind::Ptx | EntryKind::RelocatablePtx)
}

/// All these kernels, in the order of files; a path without one is an error.
///
/// # Errors
/// Those of the files come in `faults`; this itself has none but of a lack of memory.
pub fn collect(request: Request<'_>, faults: &mut Faults) -> Result<Vec<KernelRow>> {
    let Request { sources, wanted, code, search } = request;
    let look = |source: Source| {
        let (mut rows, mut errors) = (Vec::new(), Vec::new());
        let wants = |image: &Image| code.wants_image(image) && (is_cubin(image) || is_ptx(image));
        let label = Text::from(&*source.label);
        let all = images(&source.file, search, wants, |image, bytes| match is_ptx(image) {
            true => Ok(of_ptx((&label, image), bytes, wanted)),
            false => of_cubin((&label, image), bytes, wanted),
        });
        for one in all {
            match one.and_then(|rows| rows) {
                Ok(found) => rows.extend(found),
                Err(error) => errors.push(error.context(source.label.clone())),
            }
        }
        (rows, errors)
    };
    let mut roots = Roots::default();
    let mut all = Vec::new();
    sources.each(Order::AtOnce, look, |root, found: Result<(Vec<KernelRow>, Vec<Error>)>| {
        match found {
            Ok((rows, errors)) => {
                roots.has(root, !rows.is_empty() || !errors.is_empty());
                all.extend(rows);
                errors.into_iter().for_each(|error| faults.push(error));
            }
            Err(error) => {
                roots.failed(root);
                faults.push(error);
            }
        }
        Ok(())
    })?;
    if wanted.names.is_empty() {
        roots.empty(&sources.paths, "has no kernel", faults);
    }
    Ok(all)
}

/// Puts kernels in order.
pub fn order(rows: &mut [KernelRow], filter: &KernelFilter) {
    match filter.sort {
        None => {}
        Some(KernelOrder::Size) => rows.sort_by_key(|one| std::cmp::Reverse(one.code_size)),
        Some(KernelOrder::Registers) => rows.sort_by_key(|one| std::cmp::Reverse(one.registers)),
        Some(KernelOrder::Name) => {
            rows.sort_by_cached_key(|one| one.readable(filter.raw));
        }
    }
}

/// Prints rows for programs.
///
/// # Errors
/// If that fails.
pub fn json(rows: &[&KernelRow], out: &mut dyn Write) -> Result<()> {
    #[derive(Serialize)]
    struct All<'r> {
        kernels: &'r [&'r KernelRow],
    }
    crate::json::write(out, &All { kernels: rows })?;
    Ok(writeln!(out)?)
}
