//! Which code of a file is for a device.

use std::borrow::Cow;

use elf_core::Name;
use fatbin::{
    Candidate, Container, EntryKind, ImageKind, OffloadBinary, PtxHeader, Search, Selected,
    TargetDevice, select, walk,
};
use nvinfo::{Cubin, LinkStage};

use crate::error::Error;

/// Code that a device can run, from wherever it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelImage<'a> {
    /// Machine code: a linked cubin.
    Cubin(Cow<'a, [u8]>),
    /// PTX, which the driver compiles: without NULs at its end.
    Ptx(Cow<'a, [u8]>),
}

impl<'a> KernelImage<'a> {
    /// The code in `bytes` that is for `device`: `bytes` is a cubin, PTX, a fatbin, an OffloadBinary, or an executable,
    /// library, object or archive with such inside. Of several places with code the driver's choice in each, in their order;
    /// with the name of a kernel, only those that have it.
    ///
    /// # Errors
    /// [`Error::NoCode`] if there is none at all, [`Error::OtherArchitecture`] if it is for others, [`Error::NoKernel`] if none
    /// has the kernel, [`Error::NotLinked`]; [`Error::Container`] and [`Error::Cubin`] if it is damaged, unless there is code
    /// elsewhere.
    pub fn find(
        bytes: &'a [u8],
        device: TargetDevice,
        kernel: Option<&str>,
    ) -> Result<Vec<Self>, Error> {
        let limit = (bytes.len() as u64).saturating_mul(64).saturating_add(1 << 28);
        Self::find_within(bytes, device, kernel, limit)
    }

    /// The same with a limit of its own: what the images that are taken unpack to has at most so many bytes, together. For
    /// [`find`](Self::find), that is 256 MiB and 64 times the size of the file.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_within(
        bytes: &'a [u8],
        device: TargetDevice,
        kernel: Option<&str>,
        limit: u64,
    ) -> Result<Vec<Self>, Error> {
        let mut finder = Finder {
            left: usize::try_from(limit).unwrap_or(usize::MAX),
            device,
            kernel,
            images: Vec::new(),
            others: Vec::new(),
            kernels: Vec::new(),
            error: None,
        };
        match PtxHeader::parse(bytes) {
            Some(header) => finder.ptx(&header, Cow::Borrowed(bytes)),
            None => {
                for found in walk(bytes, Search::default()) {
                    let outcome = match found {
                        Ok(found) => finder.container(found.container),
                        Err(error) => Err(error.into()),
                    };
                    finder.note(outcome);
                }
            }
        }
        finder.finish()
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Cubin(bytes) | Self::Ptx(bytes) => bytes,
        }
    }

    /// The same with bytes of its own.
    #[must_use]
    pub fn into_owned(self) -> KernelImage<'static> {
        match self {
            Self::Cubin(bytes) => KernelImage::Cubin(Cow::Owned(bytes.into_owned())),
            Self::Ptx(bytes) => KernelImage::Ptx(Cow::Owned(bytes.into_owned())),
        }
    }

    /// The names of its kernels.
    ///
    /// # Errors
    /// [`Error::Cubin`].
    pub fn kernels(&self) -> Result<Vec<String>, Error> {
        match self {
            Self::Cubin(bytes) => {
                let cubin = Cubin::parse(bytes)?;
                Ok(cubin.kernels().map(|kernel| kernel.name().to_string()).collect())
            }
            Self::Ptx(text) => Ok(entries(text).map(String::from).collect()),
        }
    }

    /// Whether it has this kernel.
    fn has(&self, kernel: &str) -> Result<bool, Error> {
        match self {
            Self::Cubin(bytes) => {
                Ok(Cubin::parse(bytes)?.kernel(Name(kernel.as_bytes())).is_some())
            }
            Self::Ptx(text) => Ok(entries(text).any(|name| name == kernel)),
        }
    }

    /// Whether a file is code itself, not one that has code somewhere.
    #[cfg(any(feature = "driver", feature = "raw"))]
    pub(crate) fn is_one(bytes: &[u8]) -> bool {
        const EM_CUDA: u16 = elf_core::names::EM_CUDA;
        let elf = elf_core::File::parse(bytes).ok();
        let is_container = [&b"\x50\xed\x55\xba"[..], b"\x10\xff\x10\xad"]
            .iter()
            .any(|magic| bytes.starts_with(magic));
        elf.is_some_and(|file| file.header().machine == EM_CUDA)
            || is_container
            || PtxHeader::parse(bytes).is_some()
    }
}

/// The names behind `.entry` in PTX.
fn entries(text: &[u8]) -> impl Iterator<Item = &str> {
    let text = core::str::from_utf8(text).unwrap_or_default();
    text.split(".entry").skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix(char::is_whitespace)?.trim_start();
        let is_part =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$' | '%');
        rest.find(|letter| !is_part(letter)).and_then(|end| rest.get(..end))
    })
}

struct Finder<'a, 'k> {
    device: TargetDevice,
    kernel: Option<&'k str>,
    images: Vec<KernelImage<'a>>,
    /// What there is for other devices.
    others: Vec<String>,
    /// Kernels of images that do not have the one asked for.
    kernels: Vec<String>,
    error: Option<Error>,
    /// Bytes that may still be unpacked.
    left: usize,
}

impl<'a> Finder<'a, '_> {
    fn finish(self) -> Result<Vec<KernelImage<'a>>, Error> {
        if !self.images.is_empty() {
            return Ok(self.images);
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        match self.kernel {
            Some(kernel) if !self.kernels.is_empty() => {
                Err(Error::NoKernel { name: kernel.into(), kernels: self.kernels })
            }
            _ if self.others.is_empty() => Err(Error::NoCode),
            _ => Err(Error::OtherArchitecture { device: self.device, found: self.others }),
        }
    }

    fn note(&mut self, outcome: Result<(), Error>) {
        if let Err(error) = outcome {
            self.error.get_or_insert(error);
        }
    }

    fn container(&mut self, container: Container<'a>) -> Result<(), Error> {
        match container {
            Container::Region(region) => match select(region.entries(), self.device)? {
                Some(selected) => self.selected(selected),
                None => {
                    for entry in region.entries() {
                        let entry = entry?;
                        self.other(entry.kind(), entry.sm(), entry.code_version());
                    }
                    Ok(())
                }
            },
            Container::Cubin(span) => self.cubin(Cow::Borrowed(span.bytes())),
            Container::Offload(binary) => match binary.inflate_size(self.left)? {
                None => self.offload(binary, Cow::Borrowed),
                Some(size) => {
                    self.left = self.left.saturating_sub(size);
                    let mut bytes = vec![0; size];
                    let binary = binary.inflate_into(&mut bytes)?;
                    self.offload(binary, |bytes| Cow::Owned(bytes.to_vec()))
                }
            },
            Container::Bundle(_) | Container::CompressedBundle(_) => {
                self.others.push("a bundle of clang-offload-bundler".into());
                Ok(())
            }
            Container::CodeObject(_) => {
                self.others.push("an ELF file for AMD's GPUs".into());
                Ok(())
            }
            Container::TargetSection(section) => {
                self.others.push(format!("{} of clang-offload-bundler", section.id));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The best image of an OffloadBinary; `keep` makes its bytes ours.
    fn offload<'b>(
        &mut self,
        binary: OffloadBinary<'b>,
        keep: impl Fn(&'b [u8]) -> Cow<'a, [u8]>,
    ) -> Result<(), Error> {
        let mut best = None;
        for image in binary.images() {
            let image = image?;
            let bytes = image.payload().bytes();
            match image.kind() {
                ImageKind::FATBINARY => {
                    // what is inside has bytes of the container, or of its own: looked at again
                    for found in
                        KernelImage::find_within(&keep(bytes), self.device, None, self.left as u64)?
                    {
                        self.take(found.into_owned())?;
                    }
                }
                ImageKind::CUBIN | ImageKind::OBJECT if bytes.starts_with(b"\x7fELF") => {
                    let candidate = Candidate::from(&fatbin::CubinHeader::parse(bytes)?);
                    self.offer(candidate, bytes, &mut best);
                }
                ImageKind::PTX => {
                    let header = PtxHeader::parse(bytes).ok_or(Error::NoCode)?;
                    self.offer(ptx_candidate(&header), bytes, &mut best);
                }
                kind => {
                    self.others.extend(kind.name().map(|name| format!("an image of kind {name}")));
                }
            }
        }
        match best {
            None => Ok(()),
            Some((_, EntryKind::Ptx, bytes)) => {
                let text = fatbin::text(bytes);
                self.take(KernelImage::Ptx(keep(text)))
            }
            Some((_, _, bytes)) => self.linked(keep(bytes)),
        }
    }

    fn offer<'b>(
        &mut self,
        candidate: Candidate,
        bytes: &'b [u8],
        best: &mut Option<(fatbin::Fit, EntryKind, &'b [u8])>,
    ) {
        match candidate.fit(self.device) {
            Some(fit) if best.is_none_or(|(other, ..)| fit > other) => {
                *best = Some((fit, candidate.kind, bytes));
            }
            Some(_) => {}
            None => self.other(candidate.kind, candidate.sm, candidate.code_version),
        }
    }

    fn selected(&mut self, selected: Selected<'a>) -> Result<(), Error> {
        let Selected { entry, part, .. } = selected;
        let unpacked = entry.unpack(self.left)?;
        self.left = self.left.saturating_sub(match &unpacked {
            Cow::Owned(bytes) => bytes.len(),
            Cow::Borrowed(_) => 0,
        });
        let (bytes, kind) = match part {
            Some(part) => {
                let bytes = part.of(&unpacked).map(<[u8]>::to_vec).ok_or(Error::NoCode)?;
                (Cow::Owned(bytes), part.kind)
            }
            None => (unpacked, entry.kind()),
        };
        if kind == EntryKind::Ptx {
            self.take(KernelImage::Ptx(shortened(bytes)))
        } else {
            self.linked(bytes)
        }
    }

    /// A cubin that no container says anything of.
    fn cubin(&mut self, bytes: Cow<'a, [u8]>) -> Result<(), Error> {
        let candidate = Candidate::from(&fatbin::CubinHeader::parse(&bytes)?);
        if candidate.fit(self.device).is_none() {
            self.other(EntryKind::Elf, candidate.sm, candidate.code_version);
            return Ok(());
        }
        self.linked(bytes)
    }

    fn linked(&mut self, bytes: Cow<'a, [u8]>) -> Result<(), Error> {
        if Cubin::parse(&bytes)?.target().stage == LinkStage::Relocatable {
            return Err(Error::NotLinked);
        }
        self.take(KernelImage::Cubin(bytes))
    }

    fn ptx(&mut self, header: &PtxHeader, text: Cow<'a, [u8]>) {
        let candidate = ptx_candidate(header);
        let outcome = if candidate.fit(self.device).is_some() {
            self.take(KernelImage::Ptx(shortened(text)))
        } else {
            self.other(EntryKind::Ptx, candidate.sm, candidate.code_version);
            Ok(())
        };
        self.note(outcome);
    }

    fn take(&mut self, image: KernelImage<'a>) -> Result<(), Error> {
        match self.kernel {
            Some(kernel) if !image.has(kernel)? => self.kernels.extend(image.kernels()?),
            _ => self.images.push(image),
        }
        Ok(())
    }

    fn other(&mut self, kind: EntryKind, sm: fatbin::Sm, (major, minor): (u16, u16)) {
        let what = match kind {
            EntryKind::Ptx => format!("PTX {major}.{minor} for sm_{sm}"),
            kind if kind.is_machine_code() => format!("machine code for sm_{sm}"),
            kind => format!("{kind} for sm_{sm}"),
        };
        if !self.others.contains(&what) {
            self.others.push(what);
        }
    }
}

fn ptx_candidate(header: &PtxHeader) -> Candidate {
    Candidate {
        kind: EntryKind::Ptx,
        sm: header.sm,
        code_version: header.version,
        compression: None,
    }
}

/// Without the NULs at the end.
fn shortened(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(fatbin::text(text)),
        Cow::Owned(mut text) => {
            let size = fatbin::text(&text).len();
            text.truncate(size);
            Cow::Owned(text)
        }
    }
}
