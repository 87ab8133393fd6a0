//! Functions of Thumb code at given addresses: a linker is told by an object what they are, which no script can say.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use archs::relocation_name;
use elf_core::names::EM_ARM;
use hoist_tool::objects::Objects;

/// Whether a branch of Thumb code goes to this symbol.
pub(crate) fn branches_to(objects: &Objects<'_>, name: &str) -> bool {
    objects.files().iter().enumerate().any(|(number, file)| {
        let Some(table) = objects.symbols(number) else { return false };
        file.sections().iter().any(|header| {
            let records = file.relocations(&header).ok().flatten();
            records.into_iter().flatten().any(|record| {
                let name_of_type = relocation_name(EM_ARM, record.r#type).unwrap_or_default();
                let is_branch =
                    name_of_type == "R_ARM_THM_CALL" || name_of_type.starts_with("R_ARM_THM_JUMP");
                let symbol = || table.get(record.symbol).and_then(|symbol| table.name_of(&symbol));
                is_branch && symbol().is_ok_and(|found| found == name)
            })
        })
    })
}

/// An object that defines these functions, if there are any.
pub(crate) fn object(
    functions: &[&(String, u64)],
    objects: &Objects<'_>,
    folder: &Path,
) -> Option<PathBuf> {
    let (source, object) = (folder.join("functions.s"), folder.join("functions.o"));
    if functions.is_empty() {
        return None;
    }
    let mut text = String::new();
    for (name, address) in functions {
        let _ = writeln!(text, ".globl {name}\n.type {name}, %function\n.set {name}, {address:#x}");
    }
    fs::write(&source, text).expect("a source");
    let order = if objects.files()[0].encoding().is_big_endian() { "-EB" } else { "-EL" };
    run(Command::new("arm-linux-gnueabihf-as")
        .args([order, "-meabi=5", "-o"])
        .args([&object, &source]));
    // it says nothing of processors
    run(Command::new("arm-linux-gnueabihf-objcopy").args(["-R", ".ARM.attributes"]).arg(&object));
    Some(object)
}

fn run(command: &mut Command) {
    let status = command.status().expect("binutils, which the linker is of");
    assert!(status.success(), "{command:?}");
}
