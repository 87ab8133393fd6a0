//! `hoist fatbin report PATH... -o report.html`: where the space goes, which kernels limit occupancy, what changed, as one page that
//! needs nothing beside it.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use fatbin::EntryKind;

use super::cubins::{Image, images_of};
use super::diff::{Difference, difference};
use super::filter::{Code, Where};
use super::kernels::{KernelForm, KernelRow, Request, Wanted, all_inside, collect, of_cubin};
use super::rows::arch;
use crate::faults::Faults;
use crate::json::JsonArguments;
use crate::kernel_name::Text;
use crate::output::Output;
use crate::pattern::Pattern;
use crate::share::Share;
use crate::sources::{Order, Roots, Source, Sources};
use data::{Data, ImageKernels};

mod data;
mod page;

/// Writes a page that shows where the space goes, what kernels need and what changed: one file, without a server or a network.
#[derive(Debug, clap::Args)]
pub struct Report {
    #[command(flatten)]
    sources: Sources,
    /// The page; with `--json` and `--json-lines`, which print what it would show, it is not written.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// What was before, for a list of the kernels that changed: a file, an archive, a folder.
    #[arg(long, value_name = "PATH")]
    old: Option<PathBuf>,
    /// What the page is called; the paths without it.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Kernels by name, mangled or not, `gemm*`, or `/REGEX/`; several of them mean all that one of them means.
    #[arg(long = "kernel", value_name = "PATTERN")]
    kernel: Vec<Pattern>,
    #[command(flatten)]
    code: Code,
    #[command(flatten)]
    place: Where,
    /// Only a share of the images, for several who look at the same files at the same time: `1/2` and `2/2`. What all of them
    /// print is what one would, file by file.
    #[arg(
        long,
        value_name = "NUMBER/ALL",
        default_value = "1/1",
        hide_short_help = true,
        hide_default_value = true,
        conflicts_with = "old"
    )]
    share: Share,
    #[command(flatten)]
    json: JsonArguments,
}

/// What is in a file.
struct Looked {
    file: String,
    /// Whether it has images that are asked for, also where others look at them.
    has_images: bool,
    images: Vec<ImageKernels>,
    errors: Vec<Error>,
}

impl Report {
    /// Writes the page.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged (the page shows the others then), or the page cannot be written.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let (mut faults, mut roots) = (Faults::default(), Roots::default());
        let paths: Vec<_> =
            self.sources.paths.iter().map(|path| path.display().to_string()).collect();
        let title = self.title.clone().unwrap_or_else(|| paths.join(", "));
        let mut data = Data::new(title);
        let mut kernels = Vec::new();
        self.sources.each(
            Order::AtOnce,
            |source| self.look(&source),
            |root, found: Result<Looked>| {
                match found {
                    Ok(Looked { file, has_images, images, errors }) => {
                        roots.has(root, has_images || !errors.is_empty());
                        if has_images {
                            data.file(&file);
                        }
                        for image in &images {
                            data.image(&file, image);
                        }
                        if self.old.is_some() {
                            kernels.extend(images.into_iter().flat_map(|image| image.kernels));
                        }
                        errors.into_iter().for_each(|error| faults.push(error));
                    }
                    Err(error) => {
                        roots.failed(root);
                        if self.share.is_last() {
                            faults.push(error);
                        }
                    }
                }
                Ok(())
            },
        )?;
        if self.share.is_last() {
            roots.without_containers(
                &self.sources.paths,
                "holds no device code of NVIDIA's",
                &mut faults,
            );
        }
        if let Some(old) = &self.old {
            data.changes(self.changes(old, kernels, &mut faults)?);
        }
        if self.json.is_on() {
            crate::json::write(out, &data)?;
            writeln!(out)?;
        } else {
            Output::new(&self.output, |file| page::write(&data, file))?.keep()?;
        }
        faults.result()
    }

    /// The images of one file.
    fn look(&self, source: &Source) -> Looked {
        let found = |image: &Image, unpacked, kernels| ImageKernels {
            kind: match image.kind {
                EntryKind::Cubin => EntryKind::Elf.to_string(),
                kind => kind.to_string(),
            },
            arch: arch(image.kind, image.sm).unwrap_or_default(),
            stored: image.stored_size,
            unpacked,
            kernels,
        };
        // what is encrypted is counted as it is stored
        let encrypted = RefCell::new(Vec::new());
        let has_images = Cell::new(false);
        let wants = |image: &Image| {
            let wanted = self.code.wants_image(image);
            has_images.set(has_images.get() || wanted);
            if wanted && image.is_encrypted && self.share.is_last() {
                encrypted.borrow_mut().push(found(image, 0, Vec::new()));
            }
            wanted && !image.is_encrypted
        };
        let label = Text::from(&*source.label);
        let place = (&source.file, self.place.search());
        let all = images_of(place, self.share, wants, |image, bytes| {
            let kernels = match image.kind {
                EntryKind::Elf | EntryKind::Cubin => {
                    of_cubin((&label, image), bytes, Wanted::needs(&self.kernel))?
                }
                _ => Vec::new(),
            };
            Ok(found(image, bytes.len() as u64, kernels))
        });
        let (mut good, mut errors) = (Vec::new(), Vec::new());
        for one in all {
            match one.and_then(|found: Result<ImageKernels>| found) {
                Ok(found) => good.push(found),
                Err(error) => errors.push(error.context(source.label.clone())),
            }
        }
        good.append(&mut encrypted.into_inner());
        let has_images = has_images.get();
        Looked { file: source.label.clone(), has_images, images: good, errors }
    }

    /// What is other than before. Both sides are called alike: what is inside, without what it is in.
    fn changes(
        &self,
        old: &Path,
        mut new: Vec<KernelRow>,
        faults: &mut Faults,
    ) -> Result<Difference> {
        let sources = Sources::of(vec![old.to_owned()]);
        let request = Request {
            sources: &sources,
            wanted: Wanted::needs(&self.kernel),
            code: &self.code,
            search: self.place.search(),
        };
        let mut before = collect(request, faults)?;
        // the page is about what kernels need, which PTX does not say
        before.retain(|row| row.kind == KernelForm::Elf);
        all_inside(&mut before, &old.display().to_string());
        for row in &mut new {
            let root = self.sources.paths.iter().map(|path| path.display().to_string());
            if let Some(root) =
                root.filter(|root| row.file.starts_with(root)).max_by_key(String::len)
            {
                row.inside(&root);
            }
        }
        Ok(difference(&before, &new))
    }
}
