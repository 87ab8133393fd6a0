//! Objects made for tests, and layouts of them.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(
    unexpected_cfgs,
    reason = "tests of other crates use it, too, which have not all features of this one"
)]

#[path = "../../../fuzz/src/placement.rs"]
#[allow(unreachable_pub, reason = "it is public where the fuzz targets are")]
pub(crate) mod placement;

mod file;
#[cfg(all(feature = "alloc", feature = "parts"))]
mod in_parts;
#[cfg(feature = "alloc")]
pub(crate) mod numbered;
mod object;

use elf_core::{Arch, File, Name, SectionFlags};
use elf_layout::{
    Edit, Error, ExternalSymbol, Layout, ObjectSlot, Options, Requirements, SectionSlot, Storage,
    SymbolSlot,
};
use reloc_x86::X86_64;

#[allow(unused_imports, reason = "each test uses a part")]
pub(crate) use object::{Object, Place};

pub(crate) const READ: SectionFlags = SectionFlags::ALLOC;
pub(crate) const WRITE: SectionFlags = READ.union(SectionFlags::WRITE);
pub(crate) const CODE: SectionFlags = READ.union(SectionFlags::EXECINSTR);

/// Nobody answers.
pub(crate) fn nobody(_: Name<'_>) -> Option<ExternalSymbol> {
    None
}

/// Functions, data and constants of the caller's: `far`, `near`, `far_data`, `near_data`, `far_constant`, `near_constant`,
/// `empty_constant`.
pub(crate) const FAR: u64 = 0x7fff_1234_5670;
pub(crate) const NEAR: u64 = 0x1012_3450;

pub(crate) fn process(name: Name<'_>) -> Option<ExternalSymbol> {
    Some(match name.to_str()? {
        "far" => ExternalSymbol::function(FAR),
        "near" => ExternalSymbol::function(NEAR),
        "far_data" => ExternalSymbol::new(FAR),
        "near_data" => ExternalSymbol::new(NEAR),
        "far_constant" => ExternalSymbol::constant(FAR, 24),
        "near_constant" => ExternalSymbol::constant(NEAR, 24),
        "empty_constant" => ExternalSymbol::constant(FAR, 0),
        _ => return None,
    })
}

/// Lays out files, with as much storage as they need and dirt in it, and hands the outcome to `f`.
pub(crate) fn plan<R>(
    objects: &[Vec<u8>],
    options: Options,
    externals: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
    f: impl FnOnce(Result<Layout<'_, '_, X86_64>, Error>) -> R,
) -> R {
    plan_for(objects, options, externals, f)
}

/// The same for any machine.
pub(crate) fn plan_for<A: Arch, R>(
    objects: &[Vec<u8>],
    options: Options,
    externals: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
    f: impl FnOnce(Result<Layout<'_, '_, A>, Error>) -> R,
) -> R {
    let files: Vec<File<'_>> = objects.iter().map(|bytes| File::parse(bytes).unwrap()).collect();
    let needed = match Requirements::of(&files) {
        Ok(needed) => needed,
        Err(error) => return f(Err(error)),
    };
    let mut slots = vec![ObjectSlot::default(); needed.objects];
    let mut sections = vec![SectionSlot::default(); needed.sections];
    let mut symbols = vec![SymbolSlot::default(); needed.symbols];
    let mut names = vec![0xffff_ffff; needed.names];
    let storage = Storage {
        objects: &mut slots,
        sections: &mut sections,
        symbols: &mut symbols,
        names: &mut names,
        edits: &mut [],
    };
    let mut asked = Vec::new();
    let mut answer = |name: Name<'_>| {
        let answer = externals(name);
        asked.push((name.as_bytes().to_vec(), answer));
        answer
    };
    let layout = Layout::plan(&files, options, storage, &mut answer);
    #[cfg(feature = "alloc")]
    numbered::compare::<A>(&files, options, &asked);
    #[cfg(all(feature = "alloc", feature = "parts"))]
    in_parts::compare::<A>(&files, options, &asked);
    f(layout)
}

/// Lays out and hands the layout to `f`, checked.
pub(crate) fn laid_out<R>(objects: &[&Object], f: impl FnOnce(&Layout<'_, '_, X86_64>) -> R) -> R {
    let objects: Vec<Vec<u8>> = objects.iter().map(|object| object.build()).collect();
    plan(&objects, Options::default(), &mut process, |layout| {
        let layout = layout.unwrap();
        placement::check(&layout, &Options::default());
        f(&layout)
    })
}

/// The error of laying out.
pub(crate) fn refused(objects: &[&Object], options: Options) -> Error {
    let objects: Vec<Vec<u8>> = objects.iter().map(|object| object.build()).collect();
    plan(&objects, options, &mut process, |layout| layout.map(|_| ()).unwrap_err())
}

/// Where the image of a test is to run.
pub(crate) const BASE: u64 = 0x1000_0000;

/// The image at [`BASE`].
pub(crate) fn image(layout: &Layout<'_, '_, X86_64>) -> Result<Vec<u8>, Error> {
    let mut image = vec![0x5a; layout.size() as usize];
    layout.write(&mut image, BASE).map(|()| image)
}

/// Why there is no image.
pub(crate) fn image_error(layout: &Layout<'_, '_, X86_64>) -> Error {
    image(layout).map(|_| ()).unwrap_err()
}

/// The eight bytes at `offset`.
pub(crate) fn word(image: &[u8], offset: u64) -> u64 {
    u64::from_le_bytes(image[offset as usize..][..8].try_into().unwrap())
}

/// The four bytes at `offset`, as a signed number.
pub(crate) fn half(image: &[u8], offset: u64) -> i64 {
    i32::from_le_bytes(image[offset as usize..][..4].try_into().unwrap()).into()
}

/// Lays out an object with room for so many edits.
pub(crate) fn with_edits<A: Arch, R>(
    bytes: &[u8],
    options: Options,
    room: usize,
    mut outside: impl FnMut(Name<'_>) -> Option<ExternalSymbol>,
    f: impl FnOnce(Result<Layout<'_, '_, A>, Error>) -> R,
) -> R {
    let files = [File::parse(bytes).unwrap()];
    let needed = Requirements::of(&files).unwrap();
    let storage = Storage {
        objects: &mut [ObjectSlot::default(); 1],
        sections: &mut vec![SectionSlot::default(); needed.sections],
        symbols: &mut vec![SymbolSlot::default(); needed.symbols],
        names: &mut [],
        edits: &mut vec![Edit::default(); room],
    };
    let mut asked = Vec::new();
    let mut answer = |name: Name<'_>| {
        let answer = outside(name);
        asked.push((name.as_bytes().to_vec(), answer));
        answer
    };
    let layout = Layout::plan(&files, options, storage, &mut answer);
    #[cfg(all(feature = "alloc", feature = "parts"))]
    in_parts::compare::<A>(&files, options, &asked);
    f(layout)
}

/// Why an object is refused.
pub(crate) fn refused_by<A: Arch>(bytes: &[u8]) -> Error {
    outcome::<A>(&[bytes]).unwrap_err()
}

/// Whether objects can be laid out together.
pub(crate) fn outcome<A: Arch>(objects: &[&[u8]]) -> Result<(), Error> {
    let files: Vec<File<'_>> = objects.iter().map(|bytes| File::parse(bytes).unwrap()).collect();
    let mut objects = [ObjectSlot::default(); 3];
    let (mut sections, mut symbols) = ([SectionSlot::default(); 64], [SymbolSlot::default(); 128]);
    let storage = Storage {
        objects: &mut objects,
        sections: &mut sections,
        symbols: &mut symbols,
        names: &mut [0; 256],
        edits: &mut [],
    };
    Layout::<A>::plan(&files, Options::default(), storage, &mut nobody).map(|_| ())
}
