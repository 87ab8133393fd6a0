//! What is said of regions and their entries: the same for people and for programs.

use std::borrow::Cow;

use elf_core::Name;
use fatbin::{
    BundleEntry, CodeObjectHeader, CompressionMethod, Container, CubinHeader, EntryFlags,
    EntryKind, EntryOptions, Error, FoundContainer, OffloadImage, RegionEntry, Sm, Span, Suffix,
};
use serde::{Serialize, Serializer};

use crate::budget::{FLOOR, TIMES};
use crate::printable::Printable;

/// A container of device code.
#[derive(Debug, Serialize)]
pub struct RegionRow<'a> {
    /// Its number in the file.
    pub index: usize,
    /// What it is: `fatbin`, `offload`, `bundle`, `compressed bundle`, `cubin`, `code object`, `target section`.
    pub container: &'static str,
    /// Offset in the file.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// The member of the archive.
    pub member: Option<Printable<'a>>,
    /// The section.
    pub section: Option<Printable<'a>>,
    /// Whether it lies in ordinary data and was found by its magic number.
    pub searched: bool,
    /// Its entries.
    pub entries: Vec<EntryRow<'a>>,
}

/// An entry of a container.
#[derive(Debug, Serialize)]
pub struct EntryRow<'a> {
    /// Its number in the region.
    pub index: usize,
    /// What the payload is: the name of the kind.
    pub kind: Cow<'static, str>,
    /// Offset of its header in the file; in LLVM's containers of its payload.
    pub offset: u64,
    /// `sm_90a`, `gfx90a`; none for several.
    pub arch: Option<String>,
    /// `a`, `f` or nothing.
    pub suffix: &'static str,
    /// The word of flags.
    pub flags: u64,
    /// The names of its bits.
    pub flag_names: FlagNames,
    /// Major and minor version of the code.
    pub code_version: Option<(u16, u16)>,
    /// Bytes of the payload as it is stored.
    pub stored_size: u64,
    /// Bytes of the payload when unpacked, as the header claims.
    pub unpacked_size: u64,
    /// `zlib`, `lz4`, `lz4 frame`, `zstd`.
    pub compression: Option<&'static str>,
    /// The key if the payload is obfuscated.
    pub obfuscation_key: Option<u64>,
    /// What the entry is called.
    pub identifier: Printable<'a>,
    /// Options for the compiler.
    pub options: Option<Printable<'a>>,
    /// The content of `.nv.compat`.
    pub compat: Option<Bytes<'a>>,
    /// Target triple: LLVM's containers only.
    pub triple: Option<Printable<'a>>,
    /// Programming model: LLVM's containers only.
    pub producer: Option<&'static str>,
    /// The images in a concatenated entry, or in a compressed container.
    pub parts: Vec<PartRow>,
    /// SHA-256 of the image when unpacked, if that was asked for; of concatenated ones the parts have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// An image in a concatenated entry, or in a compressed container.
#[derive(Debug, Serialize)]
pub struct PartRow {
    /// The name of the kind.
    pub kind: String,
    /// `sm_90a`, `gfx90a`.
    pub arch: String,
    /// Offset in what is unpacked.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 of it, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Bytes as hexadecimal digits.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}", Hex(self.0)))
    }
}

struct Hex<'a>(&'a [u8]);

impl core::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What the tools call an architecture; none for number 0.
#[must_use]
pub fn arch(kind: EntryKind, sm: Sm) -> Option<String> {
    let prefix = if matches!(kind, EntryKind::Ptx | EntryKind::RelocatablePtx | EntryKind::Nvvm) {
        "compute_"
    } else {
        "sm_"
    };
    (sm.number != 0).then(|| format!("{prefix}{sm}"))
}

/// The flags of an entry by their names.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlagNames(pub EntryFlags);

impl Serialize for FlagNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.0.iter_names().map(|(name, _)| name);
        serializer.collect_seq(names.filter(|name| *name != "_"))
    }
}

/// What a kind is called.
fn kind_name(kind: EntryKind) -> Cow<'static, str> {
    match kind {
        EntryKind::Unknown(_) => kind.to_string().into(),
        kind => kind.name().into(),
    }
}

impl<'a> RegionRow<'a> {
    /// What is said of a container. An entry that cannot be read is the last: the error comes along.
    #[must_use]
    pub fn of(index: usize, found: &FoundContainer<'a>) -> (Self, Option<Error>) {
        let (container, mut entries, error) = match found.container {
            Container::Region(region) => {
                let (entries, error) = collect(region.entries(), EntryRow::of);
                ("fatbin", entries, error)
            }
            Container::Offload(binary) => {
                let (mut entries, mut error) =
                    collect(binary.images(), |image| Ok(EntryRow::of_image(&image)));
                if let Some(method) = binary.compression() {
                    let (row, wrong) = EntryRow::packed(method, found.container);
                    entries.push(row);
                    error = error.or(wrong);
                }
                ("offload", entries, error)
            }
            Container::Bundle(bundle) => {
                let (entries, error) =
                    collect(bundle.entries(), |entry| Ok(EntryRow::of_bundled(&entry)));
                ("bundle", entries, error)
            }
            Container::CompressedBundle(bundle) => {
                let (row, error) = EntryRow::packed(bundle.method, found.container);
                let row = EntryRow { unpacked_size: bundle.unpacked_size, ..row };
                ("compressed bundle", vec![row], error)
            }
            Container::Cubin(span) => match CubinHeader::parse(span.bytes()) {
                Ok(cubin) => {
                    ("cubin", vec![EntryRow::of_cubin(&cubin, span.at(), span.size())], None)
                }
                Err(error) => ("cubin", Vec::new(), Some(error)),
            },
            Container::CodeObject(span) => match CodeObjectHeader::parse(span.bytes()) {
                Ok(header) => ("code object", vec![EntryRow::of_code_object(header, span)], None),
                Err(error) => ("code object", Vec::new(), Some(error)),
            },
            Container::TargetSection(section) => {
                ("target section", vec![EntryRow::of_bundled(&section)], None)
            }
            _ => ("unknown", Vec::new(), None),
        };
        for (index, entry) in entries.iter_mut().enumerate() {
            entry.index = index;
        }
        let row = Self {
            index,
            container,
            offset: found.container.at(),
            size: found.container.size(),
            member: found.place.member.map(Printable::from),
            section: found.place.section.map(|(_, name)| Printable::from(name)),
            searched: found.place.searched,
            entries,
        };
        (row, error)
    }
}

/// Rows of all that can be read, and the error that ended them.
fn collect<T, R>(
    items: impl Iterator<Item = Result<T, Error>>,
    row: impl Fn(T) -> Result<R, Error>,
) -> (Vec<R>, Option<Error>) {
    let mut rows = Vec::with_capacity(1); // most regions have one entry
    for item in items {
        match item.and_then(&row) {
            Ok(row) => rows.push(row),
            Err(error) => return (rows, Some(error)),
        }
    }
    rows.shrink_to_fit();
    (rows, None)
}

impl<'a> EntryRow<'a> {
    /// A row with nothing but its kind and sizes.
    fn plain(kind: impl Into<Cow<'static, str>>, offset: u64, size: u64) -> Self {
        Self {
            index: 0,
            kind: kind.into(),
            offset,
            arch: None,
            suffix: "",
            flags: 0,
            flag_names: FlagNames::default(),
            code_version: None,
            stored_size: size,
            unpacked_size: size,
            compression: None,
            obfuscation_key: None,
            identifier: Printable::from(""),
            options: None,
            compat: None,
            triple: None,
            producer: None,
            parts: Vec::new(),
            sha256: None,
        }
    }

    /// What is compressed as a whole. What is in it is said inside alone: it is unpacked for that.
    fn packed(method: CompressionMethod, container: Container<'_>) -> (Self, Option<Error>) {
        let (parts, error) = inside(container);
        let row = Self {
            compression: Some(method.name()),
            parts,
            ..Self::plain("compressed", container.at(), container.size())
        };
        (row, error)
    }

    fn of(entry: RegionEntry<'a>) -> Result<Self, Error> {
        let (kind, sm) = (entry.kind(), entry.sm());
        let part = |part: fatbin::Part| PartRow {
            kind: part.kind.to_string(),
            arch: arch(part.kind, part.sm).unwrap_or_default(),
            offset: part.offset,
            size: part.size,
            sha256: None,
        };
        let (options, compat) = match entry.options() {
            EntryOptions::None => (None, None),
            EntryOptions::Compiler(options) => (Some(Printable::from(options)), None),
            EntryOptions::Compat(compat) => (None, Some(Bytes(compat))),
        };
        Ok(Self {
            arch: arch(kind, sm),
            suffix: sm.suffix.letter(),
            flags: entry.flags().bits(),
            flag_names: FlagNames(entry.flags()),
            code_version: Some(entry.code_version()),
            unpacked_size: entry.unpacked_size(),
            compression: entry.compression().map(CompressionMethod::name),
            obfuscation_key: entry.obfuscation_key(),
            identifier: Printable::from(entry.identifier()),
            options,
            compat,
            parts: entry.parts()?.iter().map(part).collect(),
            ..Self::plain(kind_name(kind), entry.at(), entry.stored_size())
        })
    }

    fn of_image(image: &OffloadImage<'a>) -> Self {
        let kind =
            image.kind().name().map_or_else(|| format!("kind {}", image.kind().0), str::to_owned);
        let payload = image.payload();
        Self {
            arch: image.arch().map(name),
            flags: image.flags().into(),
            triple: image.triple().map(Printable::from),
            producer: image.producer().name(),
            ..Self::plain(kind, payload.at(), payload.size())
        }
    }

    fn of_bundled(entry: &BundleEntry<'a>) -> Self {
        let target = entry.target();
        let kind = match entry.kind() {
            // of a section whose name is cut
            kind if kind.is_empty() => Cow::from("unknown"),
            kind => kind.to_string().into(),
        };
        Self {
            arch: Some(name(target.arch)).filter(|arch| !arch.is_empty()),
            triple: Some(Printable::from(target.triple)).filter(|_| !target.triple.is_empty()),
            identifier: Printable::from(entry.id),
            ..Self::plain(kind, entry.image.at(), entry.image.size())
        }
    }

    fn of_code_object(header: CodeObjectHeader, span: Span<'a>) -> Self {
        Self {
            arch: Some(header.to_string()),
            flags: header.flags.into(),
            triple: Some(Printable::from("amdgcn-amd-amdhsa")),
            ..Self::plain("o", span.at(), span.size())
        }
    }

    fn of_cubin(cubin: &CubinHeader<'a>, offset: u64, size: u64) -> Self {
        let CubinHeader { sm: Sm { suffix, .. }, abi, compat, .. } = *cubin;
        debug_assert!(suffix != Suffix::Family, "a cubin does not record it");
        Self {
            arch: arch(EntryKind::Elf, cubin.sm),
            suffix: suffix.letter(),
            flags: cubin.flags().bits(),
            flag_names: FlagNames(cubin.flags()),
            code_version: Some((1, abi.into())),
            compat: compat.map(Bytes),
            ..Self::plain("elf", offset, size)
        }
    }
}

fn name(name: Name<'_>) -> String {
    name.to_string()
}

/// The images in a compressed container of LLVM's, but for the empty one that a bundle has for the host, and what is wrong with it.
fn inside(container: Container<'_>) -> (Vec<PartRow>, Option<Error>) {
    let most = container.size().saturating_mul(TIMES).saturating_add(FLOOR);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let part = |row: EntryRow<'_>| PartRow {
        kind: row.kind.into_owned(),
        arch: row.arch.unwrap_or_default(),
        offset: row.offset,
        size: row.stored_size,
        sha256: None,
    };
    let mut buffer = Vec::new();
    let found = match container {
        Container::CompressedBundle(bundle) => bundle.unpack_size(most).and_then(|size| {
            buffer.resize(size, 0);
            let bundle = bundle.unpack_into(&mut buffer)?;
            Ok(collect(bundle.entries(), |entry| Ok(part(EntryRow::of_bundled(&entry)))))
        }),
        Container::Offload(binary) => binary.inflate_size(most).and_then(|size| {
            buffer.resize(size.unwrap_or(0), 0);
            let binary = binary.inflate_into(&mut buffer)?;
            Ok(collect(binary.images(), |image| Ok(part(EntryRow::of_image(&image)))))
        }),
        _ => return (Vec::new(), None),
    };
    match found {
        Ok((mut parts, error)) => {
            parts.retain(|part| part.size > 0);
            (parts, error.map(|error| Error { at: container.at(), ..error }))
        }
        Err(error) => (Vec::new(), Some(error)),
    }
}
