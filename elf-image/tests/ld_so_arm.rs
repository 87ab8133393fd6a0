//! The dynamic loader of Arm as the oracle, under qemu: libraries of the cross compilers as it relocates them, byte for byte.
#![cfg(test)]
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test")]

use elf_core::names::{PT_DYNAMIC, SHN_ABS, STB_LOCAL, STB_WEAK, STT_GNU_IFUNC, STV_DEFAULT};
use elf_core::{Arch as _, File, Query, Role, Special, Symbol, find};
use elf_image::{AddressKind, Exports, Image};
use reloc_arm::Arm;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "/usr/arm-linux-gnueabihf/lib";

/// Opens a library, says where all are, and writes that one's segments to a file, each at its address.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
static struct link_map *own;
static FILE *out;
static int write_all(struct dl_phdr_info *info, size_t size, void *data) {
    if (info->dlpi_addr != own->l_addr) return 0;
    for (int at = 0; at < info->dlpi_phnum; at++) {
        const ElfW(Phdr) *header = info->dlpi_phdr + at;
        if (header->p_type != PT_LOAD) continue;
        fseek(out, header->p_vaddr, SEEK_SET);
        fwrite((char *)info->dlpi_addr + header->p_vaddr, 1, header->p_memsz, out);
    }
    return 1;
}
int main(int count, char **words) {
    void *handle = dlopen(words[1], RTLD_NOW);
    if (!handle) return puts(dlerror()), 3;
    dlinfo(handle, RTLD_DI_LINKMAP, &own);
    printf("%lx %s\n", (long)own->l_addr, own->l_name);
    struct link_map *map = own;
    while (map->l_prev) map = map->l_prev;
    for (; map; map = map->l_next) printf("%lx %s\n", (long)map->l_addr, map->l_name);
    out = fopen(words[2], "wb");
    dl_iterate_phdr(write_all, 0);
    return fclose(out);
}
"#;

/// The file without constructors and destructors: what they change is not relocation.
fn without_constructors(bytes: &[u8]) -> Option<Vec<u8>> {
    let file = File::parse_segments(bytes).ok()?;
    let dynamic = file.segments().iter().find(|segment| segment.r#type == PT_DYNAMIC)?;
    let mut bytes = bytes.to_vec();
    let rows = bytes.get_mut(dynamic.offset as usize..)?.get_mut(..dynamic.file_size as usize)?;
    for row in rows.chunks_exact_mut(8) {
        let (tag, _) = row.split_first_chunk_mut::<4>()?;
        // DT_INIT, DT_FINI, and the arrays; in their place a tag that no loader knows
        if [12, 13, 25, 26, 32].contains(&u32::from_le_bytes(*tag)) {
            *tag = 0x6000_0ffe_u32.to_le_bytes();
        }
    }
    Some(bytes)
}

fn parse(bytes: &[u8]) -> Option<Image<'_>> {
    let image = Image::parse(File::parse_segments(bytes).ok()?, AddressKind::Virtual).ok()?;
    (image.file().header().machine == Arm::MACHINE).then_some(image)
}

/// What a symbol is worth in a library with this bias.
const fn worth(symbol: &Symbol, bias: u64) -> u64 {
    if symbol.shndx == SHN_ABS { symbol.value } else { symbol.value.wrapping_add(bias) }
}

/// The libraries of a process, in the order in which they are asked.
struct Scope<'s> {
    own: Exports<'s>,
    bias: u64,
    all: Vec<(Exports<'s>, u64)>,
}

impl Scope<'_> {
    /// Its address; of one whose resolver says where it is, which only the process can ask, `u64::MAX`.
    fn find(&self, index: u32) -> Option<u64> {
        let symbol = self.own.symbols().get(index).ok()?;
        let is_local = symbol.binding() == STB_LOCAL || symbol.visibility() != STV_DEFAULT;
        if is_local && !symbol.is_undefined() {
            return Some(worth(&symbol, self.bias));
        }
        let reference = self.own.reference(index).ok()?;
        let found = self.all.iter().find_map(|(exports, bias)| {
            exports.find(reference).ok()?.map(|(_, symbol)| match symbol.r#type() {
                STT_GNU_IFUNC => u64::MAX,
                _ => worth(&symbol, *bias),
            })
        });
        found.or((symbol.binding() == STB_WEAK).then_some(0))
    }
}

/// What is compared of a library: bytes, relocated words, those that only the process can know; nothing if ld.so refuses it.
fn compare(program: &Path, folder: &Path, path: &Path) -> Option<[usize; 3]> {
    let bytes = without_constructors(&std::fs::read(path).ok()?)?;
    parse(&bytes)?;
    let (copy, dump) = (folder.join("lib-copy.so"), folder.join("dump"));
    std::fs::write(&copy, &bytes).unwrap();
    let mut command = Command::new("qemu-arm");
    let command = command.args(["-L", "/usr/arm-linux-gnueabihf"]).args([program, &copy, &dump]);
    let output = command.output().unwrap();
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let (bias, path) = line.split_once(' ')?;
        Some((u64::from_str_radix(bias, 16).ok()?, PathBuf::from(path)))
    };
    let mut maps = text.lines().filter_map(line);
    let (bias, _) = maps.next().unwrap();
    let host = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        if path == copy { path.to_owned() } else { Path::new(FOLDER).join(name) }
    };
    let files: Vec<(u64, Vec<u8>)> =
        maps.filter_map(|(bias, path)| Some((bias, std::fs::read(host(&path)).ok()?))).collect();
    let all =
        files.iter().filter_map(|(bias, bytes)| Some((parse(bytes)?.exports().ok()??, *bias)));
    let image = parse(&bytes)?;
    let scope = Scope { own: image.exports().unwrap().unwrap(), bias, all: all.collect() };
    let symbols = |query: &Query| match query.role {
        Role::Address | Role::Plt if query.symbol == 0 => Some(0),
        Role::Address | Role::Plt => scope.find(query.symbol),
        // what is known in the process alone is not compared
        _ => Some(0),
    };
    let base = bias.wrapping_add(image.start());
    let mut ours = vec![0; usize::try_from(image.size()).unwrap()];
    image.write(&mut ours).unwrap();
    image.relocate::<Arm>(&mut ours, base, &symbols).unwrap();
    let theirs = std::fs::read(&dump).unwrap();
    let theirs = &theirs[image.start() as usize..];
    let (mut words, mut unknown, mut others) = (0, 0, std::collections::BTreeSet::new());
    for record in image.relocations().flat_map(|table| table.unwrap()) {
        let kind = find(Arm::KINDS, record.r#type).unwrap();
        words += 1;
        let is_address = matches!(kind.value.of, Role::Address | Role::Plt);
        let is_indirect = is_address && scope.find(record.symbol) == Some(u64::MAX);
        if is_indirect || !is_address && kind.value.of != Role::Base {
            unknown += 1;
            let size = if matches!(kind.special, Special::Descriptor { .. }) { 8 } else { 4 };
            others.extend((0..size).map(|byte| record.offset + byte));
        }
    }
    // the dynamic loader adds the bias to addresses in its own table
    let segments = image.file().segments();
    let dynamic = segments.iter().find(|segment| segment.r#type == PT_DYNAMIC).unwrap();
    let dynamic = dynamic.address..dynamic.address + dynamic.memory_size;
    let mut compared = 0;
    for segment in image.segments() {
        for at in segment.offset..segment.offset + segment.size {
            let address = image.start() + at;
            let is_known = dynamic.contains(&address) || others.contains(&address);
            let (one, other) = (ours[at as usize], theirs[at as usize]);
            assert!(is_known || one == other, "{} {address:#x}: {one} {other}", path.display());
            compared += 1;
        }
    }
    Some([compared, words, unknown])
}

#[test]
fn libraries_are_as_ld_so_relocates_them() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ld_so_arm");
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("opens.c"), folder.join("opens"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compiler = Command::new("arm-linux-gnueabihf-gcc-12");
    let compiler = compiler.args(["-no-pie", "-o"]).args([&program, &source]).arg("-ldl");
    let is_compiled = compiler.output().is_ok_and(|output| output.status.success());
    if !is_compiled || Command::new("qemu-arm").arg("--version").output().is_err() {
        println!(
            "skipped: libraries_are_as_ld_so_relocates_them: needs arm-linux-gnueabihf-gcc-12 and qemu-arm"
        );
        return;
    }
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| {
        let is_file = std::fs::symlink_metadata(path).is_ok_and(|it| it.is_file());
        is_file && path.to_string_lossy().contains(".so")
    });
    files.sort();
    let (mut count, mut sums) = (0, [0; 3]);
    for path in &files {
        if let Some(found) = compare(&program, &folder, path) {
            count += 1;
            sums.iter_mut().zip(found).for_each(|(sum, one)| *sum += one);
        }
    }
    let [bytes, words, unknown] = sums;
    println!(
        "{count} of {} libraries, {bytes} bytes, {words} relocated words, {unknown} that only the process knows",
        files.len()
    );
    assert!(count >= 5 && words > 1000, "{count} libraries, {words} words");
}
