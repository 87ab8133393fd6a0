//! Small files that ask for much: refused, with what asked.
#![cfg(test)]
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

mod system;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use exec_core::NamedFiles;
use exec_host::symbols::ArchiveSource;
use exec_host::{Loader, Process};
use system::{ARCH, compile, fixture};
use tempfile::TempDir;

/// A thin archive that names these files.
fn thin(names: &[&str]) -> Vec<u8> {
    let table: String = names.iter().map(|name| format!("{name}/\n")).collect();
    let header = |name: &str, size: usize| {
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644)
    };
    let pad = if table.len() % 2 == 1 { "\n" } else { "" };
    let mut archive = format!("!<thin>\n{}{table}{pad}", header("//", table.len()));
    let mut offset = 0;
    for name in names {
        archive += &header(&format!("/{offset}"), 1);
        offset += name.len() + 2;
    }
    archive.into_bytes()
}

/// The error with which an archive in the folder `sub` is not opened.
fn refused(root: &Path, names: &[&str]) -> String {
    let path = root.join("sub").join("lib.a");
    fs::write(&path, thin(names)).unwrap();
    let start = Instant::now();
    let error = ArchiveSource::open(&path).map(|_| ()).unwrap_err().to_string();
    assert!(start.elapsed() < Duration::from_secs(5), "{error}");
    error
}

#[test]
fn thin_archives_name_regular_files_in_their_folder() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let sub = root.join("sub");
    fs::create_dir(&sub).unwrap();
    let object = fixture(&format!("{ARCH}/elftest.o"));
    fs::write(sub.join("inside.o"), &object).unwrap();
    fs::write(root.join("outside.o"), &object).unwrap();
    symlink("/dev/zero", sub.join("zero")).unwrap();
    symlink("../outside.o", sub.join("link.o")).unwrap();
    let pipe = sub.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo is part of coreutils");

    let outside = refused(root, &["/dev/zero"]);
    assert!(outside.contains("/dev/zero: not in the folder"), "{outside}");
    assert!(refused(root, &["zero"]).contains("not in the folder"));
    assert!(refused(root, &["pipe"]).contains("pipe: no regular file"));
    assert!(refused(root, &["../outside.o"]).contains("not in the folder"));
    assert!(refused(root, &["link.o"]).contains("not in the folder"));
    assert!(refused(root, &["."]).contains("no regular file"));
    let path = sub.join("lib.a");
    fs::write(&path, thin(&["inside.o"])).unwrap();
    assert_eq!(ArchiveSource::open(&path).unwrap().members().count(), 1);
    // unless it is told otherwise
    for (name, limit) in [("../outside.o", 1 << 20), ("link.o", 1 << 20)] {
        fs::write(&path, thin(&[name])).unwrap();
        let files = NamedFiles::of(&path).anywhere(true).limit(limit);
        assert_eq!(ArchiveSource::open_with(&path, files).unwrap().members().count(), 1);
    }
    fs::write(&path, thin(&["/dev/zero"])).unwrap();
    let error = ArchiveSource::open_with(&path, NamedFiles::of(&path).anywhere(true)).unwrap_err();
    assert!(error.to_string().contains("/dev/zero: no regular file"), "{error}");
}

#[test]
fn a_file_that_is_named_often_is_read_once_and_counts_each_time() {
    let root = TempDir::new().unwrap();
    let path = root.path().join("lib.a");
    fs::write(root.path().join("large.o"), vec![0; 1 << 20]).unwrap();
    fs::write(&path, thin(&["large.o"; 400])).unwrap();
    let archive = ArchiveSource::open(&path).unwrap();
    let mut members: Vec<*const u8> = archive.members().map(|member| member.as_ptr()).collect();
    assert_eq!(members.len(), 400);
    members.dedup();
    assert_eq!(members.len(), 1, "one copy in memory");
    let files = NamedFiles::of(&path).limit(100 << 20);
    let error = ArchiveSource::open_with(&path, files).unwrap_err().to_string();
    assert!(error.ends_with("with which more is named than the limit of 104857600"), "{error}");
    // files without content that claim much
    let sparse = fs::File::create(root.path().join("large.o")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let error = ArchiveSource::open(&path).unwrap_err().to_string();
    assert!(error.contains("large.o: 1099511627776 bytes, with which"), "{error}");
}

#[cfg_attr(not(target_pointer_width = "64"), ignore = "needs addresses of 64 bits")]
#[test]
fn an_image_of_zeros_is_refused_beyond_the_limit() {
    let source = "char zeros[1ul << 33]; char *get(void) { return zeros; }";
    let x86: &[&str] = &["-O1", "-fPIC", "-mcmodel=large"];
    let options = if cfg!(target_arch = "x86_64") { x86 } else { &["-O1", "-fPIC"] };
    let Some(object) = compile("cc", options, source) else {
        println!("skipped: an_image_of_zeros_is_refused_beyond_the_limit: needs cc");
        return;
    };
    let load = |loader: Loader| loader.load([object.bytes.clone()], Process::new());
    let error = load(Loader::new().limit(1 << 30)).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("asks for 8589934592 bytes of an image of 85899"), "{error}");
    assert!(error.ends_with("more than the limit of 1073741824"), "{error}");
}

/// An object whose symbols share the end of one long name.
fn overlapping_names(count: usize) -> Vec<u8> {
    let mut object = fixture(&format!("{ARCH}/elftest.o"));
    let at = |object: &[u8], offset: usize| {
        u64::from_le_bytes(object[offset..offset + 8].try_into().unwrap()) as usize
    };
    let headers = at(&object, 0x28);
    let number = usize::from(u16::from_le_bytes(object[0x3c..0x3e].try_into().unwrap()));
    let header = |index: usize| headers + index * 64;
    let is_symbols = |object: &[u8], index: usize| object[header(index) + 4] == 2;
    let symbols = (0..number).find(|&index| is_symbols(&object, index)).unwrap();
    let strings = usize::from(object[header(symbols) + 0x28]);
    let (table, names) = (object.len(), object.len() + 24 * count);
    for index in 0..count as u32 {
        let mut symbol = [0; 24];
        symbol[..4].copy_from_slice(&index.to_le_bytes());
        symbol[4] = 0x12; // a global function
        symbol[6] = 1;
        object.extend(if index == 0 { [0; 24] } else { symbol });
    }
    object.extend(vec![b'x'; 13 * count]);
    object.push(0);
    for (index, offset, size) in [(symbols, table, 24 * count), (strings, names, 13 * count + 1)] {
        object[header(index) + 0x18..][..8].copy_from_slice(&(offset as u64).to_le_bytes());
        object[header(index) + 0x20..][..8].copy_from_slice(&(size as u64).to_le_bytes());
    }
    object
}

#[cfg_attr(not(target_pointer_width = "64"), ignore = "needs files of 64 bits")]
#[test]
fn names_that_overlap_are_refused() {
    let object = overlapping_names(15_000);
    assert!(object.len() < 600_000);
    let start = Instant::now();
    let error = Loader::new().load([object.clone()], ()).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("object 0: the names of the symbols at offset"), "{error}");
    let member =
        format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", "a.o/", 0, 0, 0, 644, object.len());
    let archive = [b"!<arch>\n", member.as_bytes(), &object].concat();
    let error = ArchiveSource::parse(&archive).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("archive: a.o: the names of the symbols at offset"), "{error}");
    let limit = Duration::from_secs(if system::is_emulated() { 60 } else { 5 });
    assert!(start.elapsed() < limit, "{:?}", start.elapsed());
}
