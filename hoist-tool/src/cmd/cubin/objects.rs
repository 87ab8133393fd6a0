//! Which device code in files is linked.

use std::borrow::Cow;
use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use elf_core::File;
use elf_core::names::{EM_CUDA, STT_FUNC};
use fatbin::{EntryKind, Sm, Suffix};
use nvinfo::{Cubin, LinkStage};

use super::images::{Image, images};
use super::toolkit::assemble;
use crate::budget::Budget;
use crate::input::Part;

/// An object to link, and what to call it.
pub(super) struct Object<'a> {
    pub(super) label: String,
    pub(super) bytes: Cow<'a, [u8]>,
}

/// Objects in order, what has none for the architecture, and the number of the architecture if it is known.
pub(super) struct Objects<'a> {
    pub(super) objects: Vec<Object<'a>>,
    pub(super) left_out: Vec<String>,
    pub(super) sm: Option<u32>,
}

/// Finds the objects in files and members of archives, for an architecture or the only one that there is.
///
/// # Errors
/// If a file is damaged, has no device code, or only such as has to be compiled and cannot be, or if there is code for several
/// architectures and none is named.
pub(super) fn objects<'a>(
    parts: &[Part<'a>],
    arch: Option<Sm>,
    budget: &Budget,
) -> Result<Objects<'a>> {
    let mut found = Vec::new();
    let mut sources = Vec::new();
    for part in parts {
        let alone = File::parse(part.bytes).is_ok_and(|file| file.header().machine == EM_CUDA);
        let inside = match alone {
            true => Vec::new(),
            false => images(part.bytes).with_context(|| part.label.clone())?,
        };
        if !alone && inside.is_empty() {
            // archives hold other files as well
            if part.member.is_some() {
                continue;
            }
            if !part.bytes.trim_ascii_start().starts_with(b".version") && !is_comment(part.bytes) {
                bail!("{}: has no device code", part.label);
            }
            sources.push(found.len());
        }
        found.push((part, alone, inside));
    }
    let arch = match arch {
        Some(arch) => Some(arch),
        None if found.iter().any(|(_, alone, _)| *alone) => first_arch(&found),
        None => only_arch(&found)?,
    };
    let (mut objects, mut left_out) = (Vec::new(), Vec::new());
    for (index, (part, alone, inside)) in found.into_iter().enumerate() {
        if sources.contains(&index) {
            let bytes = Cow::Owned(assemble(part.bytes, &part.label, arch)?);
            objects.push(Object { label: part.label.clone(), bytes });
            continue;
        }
        if alone {
            let bytes = Cow::Borrowed(part.bytes);
            objects.push(Object { label: part.label.clone(), bytes });
            continue;
        }
        let before = objects.len();
        let same = |one: &Image<'_>, other: &Image<'_>| one.place.region == other.place.region;
        for region in inside.chunk_by(same) {
            objects.extend(choose(part, region, arch, budget)?);
        }
        if objects.len() == before {
            left_out.push(part.label.clone());
        }
    }
    drop_unused(&mut objects);
    Ok(Objects { objects, left_out, sm: arch.map(|arch| arch.number) })
}

/// The toolkit's own library, of which nvlink takes nothing that nobody asks for.
const SYSTEM_LIBRARY: &str = "libcudadevrt.a(";

/// Leaves out objects of the toolkit's library that define no function that another object lacks.
fn drop_unused(objects: &mut Vec<Object<'_>>) {
    let is_system = |object: &Object<'_>| {
        let name = object.label.rsplit(['/', '\\']).next();
        name.is_some_and(|name| name.starts_with(SYSTEM_LIBRARY))
    };
    if !objects.iter().any(is_system) {
        return;
    }
    let names = |object: &Object<'_>, defined: bool| -> BTreeSet<String> {
        let file = File::parse(&object.bytes);
        let table = file.ok().and_then(|file| file.symbol_table().ok().flatten());
        let symbols = table.into_iter().flat_map(|table| {
            let functions = table.symbols().iter().filter(|symbol| symbol.r#type() == STT_FUNC);
            let ours = functions.filter(|symbol| (symbol.shndx != 0) == defined);
            ours.filter_map(|symbol| Some(table.name_of(&symbol).ok()?.to_string()))
                .collect::<Vec<_>>()
        });
        symbols.collect()
    };
    let others = objects.iter().filter(|object| !is_system(object));
    let wanted: BTreeSet<_> = others.flat_map(|object| names(object, false)).collect();
    objects.retain(|object| !is_system(object) || !names(object, true).is_disjoint(&wanted));
}

/// Whether a text begins with a comment, as what nvcc writes does.
fn is_comment(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"//") && bytes.is_ascii()
}

/// The architecture of the first cubin that stands alone.
fn first_arch(found: &[(&Part<'_>, bool, Vec<Image<'_>>)]) -> Option<Sm> {
    let alone = found.iter().find(|(_, alone, _)| *alone)?;
    Cubin::parse(alone.0.bytes).ok()?.target().sm.map(Sm::new)
}

/// The architecture that all images are for.
fn only_arch(found: &[(&Part<'_>, bool, Vec<Image<'_>>)]) -> Result<Option<Sm>> {
    let images = found.iter().flat_map(|(_, _, inside)| inside);
    let code = images.filter(|image| image.kind == EntryKind::Elf);
    let all: BTreeSet<_> = code.map(|image| image.place.arch.clone()).collect();
    if all.len() > 1 {
        let names: Vec<_> = all.into_iter().collect();
        bail!("there is code for {}: --arch says for which to link", names.join(", "));
    }
    let first =
        found.iter().flat_map(|(_, _, inside)| inside).find(|image| image.kind == EntryKind::Elf);
    Ok(first.map(|image| image.sm))
}

/// The relocatable cubin of a region for the architecture: the nearest that runs on it.
fn choose<'a>(
    part: &Part<'a>,
    region: &[Image<'a>],
    arch: Option<Sm>,
    budget: &Budget,
) -> Result<Option<Object<'a>>> {
    let label = |image: &Image<'_>| format!("{}: {}", part.label, image.place);
    let runs = |image: &&Image<'_>| {
        image.kind == EntryKind::Elf && arch.is_none_or(|arch| runs_on(image.sm, arch))
    };
    let mut fitting: Vec<_> = region.iter().filter(runs).collect();
    fitting.sort_by_key(|image| (Some(image.sm) == arch, image.sm.number));
    while let Some(image) = fitting.pop() {
        let bytes = image.bytes(budget).with_context(|| label(image))?;
        let cubin = Cubin::parse(&bytes).with_context(|| label(image))?;
        if cubin.target().stage == LinkStage::Relocatable {
            return Ok(Some(Object { label: label(image), bytes }));
        }
    }
    let is_linked = region.iter().any(|image| runs(&image));
    let of = |kind| region.iter().find(|image| image.kind == kind).filter(|_| !is_linked);
    match of(EntryKind::Nvvm).or_else(|| of(EntryKind::Ptx)) {
        Some(image) if image.kind == EntryKind::Ptx => {
            let label = label(image);
            let source = image.bytes(budget).with_context(|| label.clone())?;
            let bytes = Cow::Owned(assemble(&source, &label, arch.or(Some(image.sm)))?);
            Ok(Some(Object { label, bytes }))
        }
        Some(image) if image.kind == EntryKind::Nvvm => {
            bail!("{}: is for link-time optimisation: nvlink -dlto links it", label(image))
        }
        _ => Ok(None),
    }
}

/// Whether code for `code` runs on `device`: the same major version and no higher minor one; with a suffix, the same.
fn runs_on(code: Sm, device: Sm) -> bool {
    let same = code.number / 10 == device.number / 10;
    match code.suffix {
        Suffix::None => same && code.number <= device.number,
        _ => code == device,
    }
}
