//! Fields that a driver fills, read back by NVIDIA's disassembler: that of PATH, and for GPUs that toolkit 13 does not know one of
//! toolkit 12 that `NVDISASM_12` names.
#![cfg(test)]

use elf_core::{File, Query, SectionMut, apply};
use reloc_cuda::Cuda;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// An address with different parts.
const ADDRESS: u64 = 0x7f_1234_5670;

/// Number of the kind, file, architecture, function, the value, what the instruction must say.
type Case = (u32, &'static str, &'static str, &'static str, u64, &'static str);

#[rustfmt::skip]
/// What nvdisasm 13 knows.
const CASES: [Case; 11] = [
    (56, "calls_a-13.5-sm_80", "SM80", "calls", ADDRESS, "0x12345670"),
    (57, "calls_a-13.5-sm_80", "SM80", "calls", ADDRESS, "0x7f"),
    (58, "calls_a-13.5-sm_80", "SM80", "calls", ADDRESS, "0x7f12345670"),
    (74, "calls_a-13.5-sm_80", "SM80", "calls", 0x12_3450, "0x12345"),
    (64, "calls_a-13.5-sm_80", "SM80", "calls", 0x1230, "c[0x3][0x1230]"),
    (66, "calls_a-13.5-sm_90", "SM90", "calls", 0x1230, "c[0x3][0x1230]"),
    (55, "calls_a-13.5-sm_90", "SM90", "calls", 0x1234_5670, "0x12345670"),
    (75, "calls_a-13.5-sm_90", "SM90", "calls", ADDRESS, "0x7f12345670"),
    (114, "calls_a-13.5-sm_90", "SM90", "indirect", ADDRESS, "0x7f12345670"),
    (75, "calls_a-13.5-sm_100", "SM100", "calls", ADDRESS, "0x7f12345670"),
    (115, "calls_a-13.5-sm_100", "SM100", "calls", 0x1230, "c[0x3][0x1230]"),
];

#[rustfmt::skip]
/// What nvdisasm 13 knows no more.
const OLDER: [Case; 5] = [
    (42, "calls_a-11.8-sm_61", "SM61", "calls", 0x1234_5670, "0x12345670"),
    (43, "calls_a-11.8-sm_61", "SM61", "calls", ADDRESS, "0x12345670"),
    (44, "calls_a-11.8-sm_61", "SM61", "calls", ADDRESS, "0x7f"),
    (45, "calls_a-11.8-sm_61", "SM61", "calls", 0x12_3454, "0x12345"),
    (50, "calls_a-11.8-sm_61", "SM61", "calls", 0x1230, "c[0x3][0x1230]"),
];

#[test]
fn nvdisasm_reads_the_addresses() {
    // under an emulator, a program that is missing may have started and ended with status 127
    let asked = Command::new("nvdisasm").arg("--version").output();
    if !asked.is_ok_and(|output| output.status.success()) {
        println!("skipped: nvdisasm_reads_the_addresses: needs nvdisasm");
        return;
    }
    CASES.iter().for_each(|case| check(OsStr::new("nvdisasm"), case));
}

#[test]
fn an_older_nvdisasm_reads_the_addresses() {
    let Some(tool) = std::env::var_os("NVDISASM_12") else {
        println!(
            "skipped: an_older_nvdisasm_reads_the_addresses: needs an nvdisasm of toolkit 12 in NVDISASM_12"
        );
        return;
    };
    OLDER.iter().for_each(|case| check(&tool, case));
}

fn check(tool: &OsStr, case: &Case) {
    let &(number, fixture, arch, function, address, expected) = case;
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures/cuda")
        .join(format!("{fixture}.cubin"));
    let bytes = std::fs::read(path).unwrap();
    let file = File::parse(&bytes).unwrap();
    let is_text = |name: &elf_core::Name<'_>| *name == format!(".text.{function}").as_str();
    let mut found = None;
    for section in file.sections() {
        let Some(rows) = file.relocations(&section).unwrap() else { continue };
        let target = file.section(section.info).unwrap();
        let record = rows.iter().find(|record| record.r#type == number);
        found = found.or(record
            .filter(|_| is_text(&file.section_name(&target).unwrap()))
            .map(|record| (target, record)));
    }
    let (text, mut record) = found.unwrap_or_else(|| panic!("{number} in {fixture}"));
    record.addend = Some(0);
    let mut code = file.section_data(&text).unwrap().to_vec();
    let mut section = SectionMut { bytes: &mut code, address: 0, big_endian: false };
    let answer = |query: &Query| Some(if query.role == elf_core::Role::Bank { 3 } else { address });
    apply::<Cuda>(&record, &mut section, &answer).unwrap();
    let raw =
        std::env::temp_dir().join(format!("reloc-cuda-{}-{number}-{arch}", std::process::id()));
    std::fs::write(&raw, &code).unwrap();
    let output = Command::new(tool).args(["-b", arch]).arg(&raw).output().unwrap();
    std::fs::remove_file(&raw).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{tool:?} -b {arch}: {output:?}");
    let place = format!("/*{:04x}*/", record.offset);
    let line = text
        .lines()
        .find(|line| line.contains(&place))
        .unwrap_or_else(|| panic!("{place} in {text}"));
    println!("{number} {arch}: {}", line.trim());
    assert!(line.contains(expected), "{number} {arch}: {line}");
}
