//! A synthetic shared object: the initial values of thread-local variables, and dynamic relocations, by which the dynamic loader tells
//! where it has put them (gABI ch. 5, "Program Loading and Dynamic Linking"; Drepper, "ELF Handling For Thread-Local Storage").

use crate::Host;
use crate::error::Error;
use crate::library::link_map::LinkMap;
use crate::machine;
use crate::opened::Opened;
use crate::word::{self, IS_64, SIZE, raw};
use core::sync::atomic::{AtomicU32, Ordering};
use elf_core::Arch as _;
use elf_core::names::{
    DF_STATIC_TLS, DT_FLAGS, DT_HASH, DT_NEEDED, DT_NULL, DT_REL, DT_RELA, DT_RELAENT, DT_RELASZ,
    DT_RELENT, DT_RELSZ, DT_STRSZ, DT_STRTAB, DT_SYMENT, DT_SYMTAB, ET_DYN, PT_DYNAMIC,
    PT_GNU_STACK, PT_LOAD, PT_NULL, PT_TLS, STB_GLOBAL, STT_TLS,
};
use elf_layout::TlsBlock;
use libloading::os::unix::{self, RTLD_LOCAL, RTLD_NOW};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

/// Least alignment of blocks near the thread pointer, in bytes, where they lie below it.
const ALIGNMENT: u64 = 64;

const PF_W: u32 = 2;
const PF_R: u32 = 4;

/// A library that the dynamic loader has loaded; unloaded on drop.
#[derive(Debug)]
pub(super) struct Library {
    #[expect(dead_code, reason = "closed on drop")]
    library: Opened,
    values: u64,
}

/// A dynamic relocation of the library: what the loader stores at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DynamicRelocation<'n> {
    /// The module number of this library's block (`DTPMOD64`).
    DtpModule,
    /// TP offset of this library's block (`TPOFF64`).
    TpOffset,
    /// TP offset of the variable of this name.
    TpOffsetOf(&'n [u8]),
}

/// Most relocations of a library.
pub(super) const MOST_RELOCATIONS: usize = 2;

const FILE_HEADER: u64 = size_of::<raw::Ehdr>() as u64;
const PROGRAM_HEADER: u64 = size_of::<raw::Phdr>() as u64;
const PROGRAM_HEADERS: u64 = 4;
const SYMBOL: u64 = size_of::<raw::Sym>() as u64;
const DYNAMIC: u64 = size_of::<raw::Dyn>() as u64;
/// Relocations have addends on machines of 64 bits, whose loaders know no others; on others they are in the places, which hold 0.
const RELOCATION: u64 =
    if IS_64 { size_of::<raw::Rela>() as u64 } else { size_of::<raw::Rel>() as u64 };
const TABLE: [u64; 3] =
    if IS_64 { [DT_RELA, DT_RELASZ, DT_RELAENT] } else { [DT_REL, DT_RELSZ, DT_RELENT] };
/// Where `r_info` has the symbol.
const SYMBOL_AT: u32 = if IS_64 { 32 } else { 8 };

impl Library {
    /// Has the loader load a library with this block, whose initial values begin with `values`, and gives what it stores for these
    /// relocations. `needed` are the files of libraries that names are looked for in, after those of the program.
    ///
    /// # Errors
    /// [`Error::ThreadLocal`] with the words of the loader: as a rule, no room at one TP offset in all threads.
    pub(super) fn new(
        block: &TlsBlock,
        values: &[u8],
        relocations: &[DynamicRelocation<'_>],
        needed: &[&[u8]],
    ) -> Result<(Self, [u64; MOST_RELOCATIONS]), Error> {
        let size = block.size;
        let block =
            &if relocations.iter().any(DynamicRelocation::is_near) { whole(block) } else { *block };
        let refused = |cause: String| Error::ThreadLocal { size, cause, text: Box::default() };
        let system = |cause: Errno| refused(cause.to_string());
        let beyond = || refused(String::from("beyond what threads can have"));
        if block.size > i32::MAX as u64 {
            return Err(beyond());
        }
        let (content, places) = content(block, relocations, needed, None).ok_or_else(beyond)?;
        let values_at = values_at(&content, block).ok_or_else(beyond)?;
        let file = memfd_create(c"hoist-thread-local", MemfdFlags::CLOEXEC).map_err(system)?;
        // zeros behind the values take no memory as long as nobody looks
        let end = values_at.checked_add(block.file_size).ok_or_else(beyond)?;
        ftruncate(&file, end).map_err(system)?;
        let file = std::fs::File::from(file);
        let written = file.write_all_at(&content, 0);
        let written = written.and_then(|()| file.write_all_at(values, values_at));
        written.map_err(|cause| refused(cause.to_string()))?;
        // SAFETY: the library has no code, and so no constructors.
        let open = || unsafe { unix::Library::open(Some(path_of(&file)), RTLD_NOW | RTLD_LOCAL) };
        let mut map = None;
        let library = Opened::by(|| {
            let (library, its) = map_of(open()?);
            map = its;
            Ok(library)
        });
        let library = library.map_err(|error: libloading::Error| {
            let words = core::error::Error::source(&error).map(ToString::to_string);
            refused(words.unwrap_or_else(|| error.to_string()))
        })?;
        let map = map.ok_or_else(|| refused(String::from("its library is not found")))?;
        let mut found = [0; MOST_RELOCATIONS];
        for (index, word) in (0..relocations.len() as u64).zip(&mut found) {
            let at = map.bias().wrapping_add(places).wrapping_add(index.wrapping_mul(SIZE));
            // SAFETY: the loader has mapped the file there, which has an aligned word for each relocation.
            *word = unsafe { word::read(at) };
        }
        Ok((Self { library, values: map.bias().wrapping_add(values_at) }, found))
    }

    /// Where the loader has the initial values, to be copied into new threads.
    pub(super) const fn values(&self) -> u64 {
        self.values
    }
}

/// A file that the dynamic loader opens by the path that is given: a library that needs others of these `names`, in folders that it
/// says by this tag (`DT_RUNPATH`, `DT_RPATH`), and nothing else. The path is good as long as the file.
pub(crate) fn that_needs(
    names: &[&[u8]],
    folders: Option<(u64, &[u8])>,
) -> std::io::Result<(File, String)> {
    let none = TlsBlock { offset: 0, file_size: 0, size: 0, alignment: 1 };
    let content = content(&none, &[], names, folders);
    let (mut content, _) = content.ok_or(std::io::ErrorKind::OutOfMemory)?;
    let end = values_at(&content, &none).ok_or(std::io::ErrorKind::OutOfMemory)?;
    content.resize(usize::try_from(end).unwrap_or(0), 0);
    let file = File::from(memfd_create(c"hoist-needs", MemfdFlags::CLOEXEC)?);
    file.write_all_at(&content, 0)?;
    let path = path_of(&file);
    Ok((file, path))
}

/// A block as large as what the C library takes for it near the thread pointer: it rounds to a multiple of the alignment when it gives
/// room away, and not when it takes it back, so that blocks of several sizes would use it up. Where blocks lie above the thread pointer, it
/// rounds before them only, and may have no more than their own alignment.
fn whole(block: &TlsBlock) -> TlsBlock {
    if !cfg!(target_arch = "x86_64") {
        return *block;
    }
    let alignment = block.alignment.max(ALIGNMENT);
    let size = block.size.checked_next_multiple_of(alignment).unwrap_or(u64::MAX);
    TlsBlock { size, alignment, ..*block }
}

/// Where the file has the initial values: at a multiple of their alignment, as in memory.
fn values_at(content: &[u8], block: &TlsBlock) -> Option<u64> {
    (content.len() as u64).checked_next_multiple_of(block.alignment.max(8))
}

/// A name that the loader finds the file by, and that no other file has had: it goes by names first.
fn path_of(file: &File) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // "/" and "/./" lead to the same
    let digits = (0..u32::BITS).filter(|bit| number >> bit != 0);
    let digits = digits.map(|bit| if number >> bit & 1 == 0 { "/" } else { "/." });
    format!("/proc/self/fd{}/{}", digits.collect::<String>(), file.as_raw_fd())
}

/// What the loader knows of a library.
pub(super) fn map_of(library: unix::Library) -> (unix::Library, Option<LinkMap>) {
    let handle = library.into_raw();
    // SAFETY: the handle is open.
    let map = unsafe { LinkMap::of(handle) };
    // SAFETY: it is the handle that was taken out.
    (unsafe { unix::Library::from_raw(handle) }, map)
}

/// The file up to the initial values, and the offset of the words that are relocated.
fn content(
    block: &TlsBlock,
    relocations: &[DynamicRelocation<'_>],
    needed: &[&[u8]],
    folders: Option<(u64, &[u8])>,
) -> Option<(Vec<u8>, u64)> {
    let names: Vec<&[u8]> = relocations.iter().filter_map(DynamicRelocation::name).collect();
    let mut strings = vec![0];
    let mut string = |text: &[u8]| {
        let at = strings.len() as u64;
        strings.extend(text);
        strings.push(0);
        at
    };
    let symbols: Vec<u64> = names.iter().map(|name| string(name)).collect();
    let needed: Vec<u64> = needed.iter().map(|path| string(path)).collect();
    let folders = folders.map(|(tag, list)| [tag, string(list)]);

    let symbols_at = FILE_HEADER + PROGRAM_HEADERS * PROGRAM_HEADER;
    let relocations_at = symbols_at + SYMBOL * (1 + symbols.len() as u64);
    let places = relocations_at + RELOCATION * relocations.len() as u64;
    let dynamic_at = places + SIZE * relocations.len() as u64;
    let is_near = relocations.iter().any(DynamicRelocation::is_near);
    let flags = if is_near { DF_STATIC_TLS } else { 0 };
    let mut dynamic: Vec<[u64; 2]> = needed.iter().map(|&path| [DT_NEEDED, path]).collect();
    dynamic.extend(folders);
    let [table, table_size, row_size] = TABLE;
    // musl looks into it: one bucket, which is empty
    let hash: Vec<u32> = [1, 1 + symbols.len() as u32, 0]
        .into_iter()
        .chain(core::iter::repeat_n(0, 1 + symbols.len()))
        .collect();
    let hash_at = dynamic_at + DYNAMIC * (dynamic.len() as u64 + 10);
    let strings_at = hash_at + size_of_val(hash.as_slice()) as u64;
    dynamic.extend([
        [DT_HASH, hash_at],
        [DT_STRTAB, strings_at],
        [DT_STRSZ, strings.len() as u64],
        [DT_SYMTAB, symbols_at],
        [DT_SYMENT, SYMBOL],
        [table, relocations_at],
        [table_size, RELOCATION * relocations.len() as u64],
        [row_size, RELOCATION],
        [DT_FLAGS, flags],
        [DT_NULL, 0],
    ]);

    let mut file = Vec::new();
    // "\x7fELF", the class, little-endian, version 1
    halves(&mut file, [0x464c_457f, if IS_64 { 0x0001_0102 } else { 0x0001_0101 }, 0, 0]);
    halves(&mut file, [u32::from(Host::MACHINE) << 16 | u32::from(ET_DYN), 1]);
    words(&mut file, [0, FILE_HEADER, 0]);
    let sizes = PROGRAM_HEADER << 16 | FILE_HEADER;
    halves(&mut file, [machine::FLAGS, sizes as u32, PROGRAM_HEADERS as u32, 0]);

    let end = strings_at.checked_add(strings.len() as u64)?;
    let values_at = end.checked_next_multiple_of(block.alignment.max(8))?;
    let size = values_at.checked_add(block.file_size)?;
    let page = rustix::param::page_size() as u64;
    let dynamic_size = DYNAMIC * dynamic.len() as u64;
    for (r#type, at, file_size, size, alignment) in [
        (PT_LOAD, 0, size, size, page),
        (PT_DYNAMIC, dynamic_at, dynamic_size, dynamic_size, SIZE),
        (
            if block.size > 0 { PT_TLS } else { PT_NULL },
            values_at,
            block.file_size,
            block.size,
            block.alignment,
        ),
        (PT_GNU_STACK, 0, 0, 0, 16),
    ] {
        // 64 bits have the flags before all else, 32 bits behind the sizes
        halves(&mut file, [r#type]);
        halves(&mut file, [PF_R | PF_W].get(..usize::from(IS_64)).unwrap_or_default());
        words(&mut file, [at, at, at, file_size, size]);
        halves(&mut file, [PF_R | PF_W].get(usize::from(IS_64)..).unwrap_or_default());
        words(&mut file, [alignment]);
    }

    file.resize(file.len().saturating_add(SYMBOL as usize), 0);
    for name in &symbols {
        let of_type = u32::from(STB_GLOBAL << 4 | STT_TLS);
        let row = if IS_64 { [*name as u32, of_type, 0, 0] } else { [*name as u32, 0, 0, of_type] };
        halves(&mut file, row);
        file.resize(file.len().saturating_add(SYMBOL as usize - 16), 0);
    }
    let mut symbol = 0;
    for (index, relocation) in (0u64..).zip(relocations) {
        symbol += u64::from(relocation.name().is_some());
        let of = if relocation.name().is_some() { symbol } else { 0 };
        words(&mut file, [places + SIZE * index, of << SYMBOL_AT | relocation.r#type()]);
        file.resize(file.len().saturating_add(RELOCATION as usize - 2 * SIZE as usize), 0);
    }
    file.resize(usize::try_from(dynamic_at).ok()?, 0);
    for row in dynamic {
        words(&mut file, row);
    }
    halves(&mut file, hash);
    file.extend(strings);
    Some((file, places))
}

impl DynamicRelocation<'_> {
    /// Whether it makes the loader put the block near the thread pointer.
    fn is_near(&self) -> bool {
        *self != Self::DtpModule
    }

    fn name(&self) -> Option<&[u8]> {
        match self {
            Self::TpOffsetOf(name) => Some(name),
            Self::DtpModule | Self::TpOffset => None,
        }
    }

    const fn r#type(&self) -> u64 {
        match self {
            Self::DtpModule => machine::DTP_MODULE,
            Self::TpOffset | Self::TpOffsetOf(_) => machine::TP_OFFSET,
        }
    }
}

fn words<const N: usize>(file: &mut Vec<u8>, words: [u64; N]) {
    words.iter().for_each(|word| file.extend(word::bytes(*word)));
}

fn halves(file: &mut Vec<u8>, words: impl AsRef<[u32]>) {
    words.as_ref().iter().for_each(|word| file.extend(word.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: TlsBlock = TlsBlock { offset: 0, file_size: 3, size: 40, alignment: 32 };

    #[test]
    fn a_library_as_the_abi_wants_it() {
        let relocations = [DynamicRelocation::DtpModule, DynamicRelocation::TpOffsetOf(b"errno")];
        let (mut bytes, places) = content(&BLOCK, &relocations, &[b"libc.so.6"], None).unwrap();
        let at = values_at(&bytes, &BLOCK).unwrap();
        bytes.resize(at as usize, 0);
        bytes.extend([1, 2, 3]);
        let file = elf_core::File::parse(&bytes).unwrap();
        let headers: Vec<_> = file.segments().iter().collect();
        let block = headers.iter().find(|header| header.r#type == PT_TLS).unwrap();
        assert_eq!((block.offset, block.file_size, block.memory_size), (at, 3, 40));
        assert_eq!(at % 32, 0);
        let load = headers.first().unwrap();
        assert_eq!(load.file_size, bytes.len() as u64);
        assert!(places.is_multiple_of(SIZE));
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn tp_offsets_are_those_of_the_thread() {
        let relocations = [DynamicRelocation::DtpModule, DynamicRelocation::TpOffset];
        let (_library, [module, tp_offset]) =
            Library::new(&BLOCK, &[1, 2, 3], &relocations, &[]).unwrap();
        assert!(module > 1);
        let at = machine::thread_pointer().wrapping_add(tp_offset) as usize;
        assert_eq!(at % 32, 0);
        let read = |at: usize| {
            let values = core::ptr::with_exposed_provenance::<[u8; 4]>(at);
            // SAFETY: the block of this thread is there.
            unsafe { values.read() }
        };
        assert_eq!(read(at), [1, 2, 3, 0]);
        std::thread::spawn(move || {
            let at = machine::thread_pointer().wrapping_add(tp_offset) as usize;
            assert_eq!(read(at), [1, 2, 3, 0]);
        })
        .join()
        .unwrap();
    }

    /// What comes and goes leaves as much room as there was, whatever its size.
    #[cfg(target_env = "gnu")]
    #[test]
    fn room_is_given_back_whole() {
        let relocations = [DynamicRelocation::DtpModule, DynamicRelocation::TpOffset];
        for round in 0..100 {
            for (size, alignment) in [(40, 32), (48, 16), (116, 4), (512, 32), (24, 8)] {
                let block = TlsBlock { offset: 0, file_size: 0, size, alignment };
                let library = Library::new(&block, &[], &relocations, &[]);
                assert!(library.is_ok(), "{round}: {size} bytes: {library:?}");
            }
        }
    }

    #[test]
    fn every_library_has_a_name_of_its_own() {
        let file = File::open("/dev/null").unwrap();
        let names: std::collections::HashSet<String> = (0..100).map(|_| path_of(&file)).collect();
        assert_eq!(names.len(), 100);
        assert!(names.iter().all(|name| std::fs::exists(name).unwrap()));
    }
}
