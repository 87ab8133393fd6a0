//! One link by hoist and by a linker: every byte of every section.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use archs::{Architecture, with_arch};
use elf_core::names::{SHN_X86_64_LCOMMON, SHT_NOBITS};
use elf_core::{Arch, Definition, File, Name, SectionFlags};
use elf_layout::{ExternalSymbol, HeapStorage, Layout, Options};
use hoist_tool::budget::Limits;
use hoist_tool::cmd::{layout, link};
use hoist_tool::input;
use hoist_tool::objects::Objects;

use crate::got::{lead_to_other_got, take_their_words};
use crate::linker::{Linker, Script, address_of, content};
use crate::renamed;
use crate::thumb;

/// What came out of one comparison.
pub(crate) enum Outcome {
    /// So many sections, bytes and fields that lead to the GOT are equal; so many instructions in other words.
    Equal { sections: usize, bytes: usize, got: usize, reworded: usize },
    /// These differ.
    Different(Vec<String>),
    /// Hoist refuses the objects, and why.
    Refused(String),
    /// So does the linker.
    BothRefused(String),
    /// The linker does, and why.
    LinkerRefused(String),
}

/// Links objects with hoist and with a linker.
pub(crate) fn compare(
    linker: &Linker,
    paths: &[PathBuf],
    base: u64,
    relax: bool,
    folder: &Path,
) -> Outcome {
    let inputs = input::read_all(paths, Limits::default()).expect("fixtures");
    let objects = match Objects::gather(&inputs, &[]) {
        Ok(objects) => objects,
        Err(error) => return Outcome::Refused(format!("{error:#}")),
    };
    let options = Options {
        base: Some(base),
        relax,
        global_pointer: relax,
        executable: true,
        ..Options::default()
    };
    let placement = match layout::layout(&objects, options) {
        Ok(placement) => placement,
        Err(error) => return Outcome::Refused(format!("{error:#}")),
    };
    // near enough for every kind of branch
    let next = (base + placement.size).next_multiple_of(64);
    let mut undefined: Vec<(String, u64)> =
        placement.undefined.iter().cloned().zip((next..).step_by(64)).collect();
    // GNU ld takes an address of which it knows nothing for that of Arm code
    if objects.machine() == Architecture::Arm && !linker.is_lld() {
        for (name, address) in &mut undefined {
            *address |= u64::from(thumb::branches_to(&objects, name));
        }
    }
    compare_defined(linker, &objects, options, &undefined, folder)
}

/// The same of objects whose undefined symbols are at these addresses.
pub(crate) fn compare_defined(
    linker: &Linker,
    objects: &Objects<'_>,
    options: Options,
    undefined: &[(String, u64)],
    folder: &Path,
) -> Outcome {
    let base = options.base.expect("an address");
    let defined: HashMap<Name<'_>, u64> =
        undefined.iter().map(|(name, at)| (Name::from(name.as_str()), *at)).collect();
    let image = if linker.be8 {
        link::link_be8(objects, options, base, &defined, None)
    } else {
        link::link(objects, options, base, &defined, None)
    };
    with_arch!(objects.machine(), A => {
        let mut room = HeapStorage::new();
        let mut externals = |name: Name<'_>| Some(ExternalSymbol::new(*defined.get(&name)?));
        let layout = match room.plan::<A>(objects.files(), options, &mut externals) {
            Ok(layout) => layout,
            Err(error) => return Outcome::Refused(error.to_string()),
        };
        let script = script(&layout, objects, undefined, base);
        let functions: Vec<_> = undefined.iter().filter(|(_, at)| is_thumb(objects, *at)).collect();
        let functions = thumb::object(&functions, objects, folder);
        match (image, linker.link(objects, functions, &script, options.relax, folder)) {
            (Ok(image), Ok(linked)) => {
                let linked = File::parse(&linked).expect("what a linker made");
                compare_sections(&layout, objects, &image.bytes, &linked, base)
            }
            (Ok(_), Err(error)) => Outcome::LinkerRefused(error),
            (Err(error), Ok(_)) => Outcome::Refused(format!("{error:#}")),
            (Err(error), Err(_)) => Outcome::BothRefused(format!("{error:#}")),
        }
    })
}

/// Whether an address that is to be given is that of a Thumb function, which no script can say.
fn is_thumb(objects: &Objects<'_>, address: u64) -> bool {
    objects.machine() == Architecture::Arm && address & 1 != 0
}

/// Everything where the layout has it.
fn script<A: Arch>(
    layout: &Layout<'_, '_, A>,
    objects: &Objects<'_>,
    undefined: &[(String, u64)],
    base: u64,
) -> String {
    let mut script = Script::new();
    for (name, address) in undefined.iter().filter(|(_, at)| !is_thumb(objects, *at)) {
        script.define(name, *address);
    }
    // lld has one of its own
    if let Some(handle) = layout.dso_handle() {
        script.define("__dso_handle", base + handle);
    }
    let mut sections = Vec::new();
    for (number, file) in objects.files().iter().enumerate() {
        for (index, _) in (0u32..).zip(file.sections()) {
            if let Some(offset) = layout.section(number, index) {
                sections.push((base + offset, number, index));
            }
        }
        let Some(table) = objects.symbols(number) else { continue };
        for (index, symbol) in (0u32..).zip(table.symbols()) {
            let definition = table.section_of(index, &symbol).expect("a section");
            let is_common =
                matches!(definition, Definition::Common | Definition::Reserved(SHN_X86_64_LCOMMON));
            if is_common && layout.definition(number, index) == Some((number, index)) {
                let address = layout.symbol(number, index).expect("an address").at(base);
                script.define(&table.name_of(&symbol).expect("a name").to_string(), address);
            }
        }
    }
    // lld wants them in the order of their addresses
    sections.sort_unstable();
    let got = base + layout.got().0;
    let behind_got = sections.partition_point(|(address, ..)| *address < got);
    for (number, (address, object, index)) in sections.iter().enumerate() {
        if number == behind_got {
            script.got(got, objects.machine());
        }
        let header = objects.files()[*object].section(*index).expect("a section");
        script.section(*object, *index, *address, header.flags.contains(SectionFlags::TLS));
    }
    if behind_got == sections.len() {
        script.got(got, objects.machine());
    }
    let last = undefined.last().map_or(base + layout.size(), |(_, address)| *address);
    script.other_got((last + 1).next_multiple_of(4096), objects.machine());
    script.end()
}

/// Every byte of every section.
fn compare_sections<A: Arch>(
    layout: &Layout<'_, '_, A>,
    objects: &Objects<'_>,
    image: &[u8],
    linked: &File<'_>,
    base: u64,
) -> Outcome {
    let (mut sections, mut bytes, mut got, mut reworded) = (0, 0, 0, 0);
    let mut different = Vec::new();
    for (number, file) in objects.files().iter().enumerate() {
        for (index, header) in (0u32..).zip(file.sections()) {
            let Some(offset) = layout.section(number, index) else { continue };
            if header.r#type == SHT_NOBITS || header.size == 0 {
                continue;
            }
            let label = || {
                format!("{} {}", objects.label(number), file.section_name(&header).expect("a name"))
            };
            let Some((address, theirs)) = content(linked, &renamed::name(number, index)) else {
                different.push(format!("{}: not in the linker's file", label()));
                continue;
            };
            if address != base + offset {
                different.push(format!(
                    "{}: linker placed it at {address:#x}, not {:#x}",
                    label(),
                    base + offset
                ));
                continue;
            }
            let mut ours = image[offset as usize..]
                [..layout.section_size(number, index).expect("a size") as usize]
                .to_vec();
            reworded += take_their_words(
                layout,
                objects,
                (number, index),
                (&mut ours, image),
                linked,
                theirs,
                base,
            );
            got += lead_to_other_got(
                layout,
                objects,
                (number, index),
                &mut ours,
                linked,
                theirs,
                base,
            );
            if let Some(at) = (0..ours.len()).find(|&at| theirs.get(at) != Some(&ours[at])) {
                let near = |bytes: &[u8]| {
                    format!("{:02x?}", bytes.get(at..(at + 8).min(bytes.len())).unwrap_or_default())
                };
                different.push(format!(
                    "{} at {at:#x}: here {}, there {}",
                    label(),
                    near(&ours),
                    near(theirs)
                ));
                continue;
            }
            sections += 1;
            bytes += ours.len();
        }
    }
    if !different.is_empty()
        && let Some(why) = zeros_elsewhere(layout, objects, linked, base)
    {
        return Outcome::LinkerRefused(why);
    }
    if different.is_empty() {
        Outcome::Equal { sections, bytes, got, reworded }
    } else {
        Outcome::Different(different)
    }
}

/// Whether a linker has thread-local zeros not where the script says: lld counts those of several sections twice.
fn zeros_elsewhere<A: Arch>(
    layout: &Layout<'_, '_, A>,
    objects: &Objects<'_>,
    linked: &File<'_>,
    base: u64,
) -> Option<String> {
    for (number, file) in objects.files().iter().enumerate() {
        for (index, header) in (0u32..).zip(file.sections()) {
            let is_zero = header.r#type == SHT_NOBITS && header.flags.contains(SectionFlags::TLS);
            let Some(offset) = layout.section(number, index).filter(|_| is_zero) else { continue };
            let place = address_of(linked, &renamed::name(number, index));
            if header.size > 0 && place != Some(base + offset) {
                let ours = base + offset;
                return Some(format!("thread-local zeros are at {place:x?}, not {ours:#x}"));
            }
        }
    }
    None
}
