//! A library as the dynamic loader relocates it, and as hoist does: the same bytes, word by word.
//!
//! Both get the same file, whose constructors are taken out: what they change is not relocation; hoist as bytes, and once more as a file,
//! whose code is mapped. The copies stand at different addresses; a word that is relocated may differ by that, and by nothing else.

use elf_core::names::{
    DT_FINI, DT_FINI_ARRAY, DT_INIT, DT_INIT_ARRAY, DT_PLTGOT, DT_PREINIT_ARRAY, PT_DYNAMIC,
    STB_LOCAL, STT_OBJECT,
};
use elf_core::{Arch as _, File, Role, SymbolTable, find};
use elf_image::{AddressKind, Image};
use exec_host::Host;
use exec_host::library::LibraryLoader;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::path::Path;

/// What was compared.
#[derive(Debug, Default)]
pub(crate) struct Same {
    /// Bytes of segments.
    pub(crate) bytes: usize,
    /// Words that relocations fill.
    pub(crate) words: usize,
    /// Of these, those that say where threads have variables: they differ, as the blocks do.
    pub(crate) thread_local: usize,
    /// Those of functions that hoist has its own of: what registers for a thread's end, what finds unwinding tables.
    pub(crate) stood_for: usize,
    /// Bytes of variables that constructors of what the library needs have written in the loader's copy: names of what the loader opens with a
    /// library lead to that library first, and it had opened it before hoist did.
    pub(crate) written: usize,
    /// What differs: offset, hoist's word, the loader's, the relocation.
    pub(crate) different: Vec<String>,
}

/// A tag that no loader knows (of those for environments that the gABI leaves alone).
const NOTHING: usize = 0x6000_0ffe;
/// Bytes of an address.
const WORD: usize = size_of::<usize>();

/// The file without constructors and destructors.
fn without_constructors(bytes: &[u8]) -> Option<Vec<u8>> {
    let file = File::parse_segments(bytes).ok()?;
    let dynamic = file.segments().iter().find(|segment| segment.r#type == PT_DYNAMIC)?;
    let start = usize::try_from(dynamic.offset).ok()?;
    let mut bytes = bytes.to_vec();
    let rows = bytes.get_mut(start..)?.get_mut(..usize::try_from(dynamic.file_size).ok()?)?;
    for row in rows.chunks_exact_mut(2 * WORD) {
        let (tag, _) = row.split_first_chunk_mut::<WORD>()?;
        let gone = [DT_INIT, DT_INIT_ARRAY, DT_PREINIT_ARRAY, DT_FINI, DT_FINI_ARRAY];
        if gone.contains(&(usize::from_le_bytes(*tag) as u64)) {
            *tag = NOTHING.to_le_bytes();
        }
    }
    Some(bytes)
}

/// Where the dynamic loader has put a file, which stays, and the file with its path.
fn by_loader(bytes: &[u8]) -> Result<(u64, std::fs::File, String), String> {
    // SAFETY: a name that ends in NUL.
    let file = unsafe { libc::memfd_create(c"library".as_ptr(), 0) };
    if file < 0 {
        return Err(std::io::Error::last_os_error().to_string());
    }
    // SAFETY: the descriptor is new, and ours.
    let mut file = unsafe { std::fs::File::from_raw_fd(file) };
    file.write_all(bytes).map_err(|error| error.to_string())?;
    // not "self": the loader goes by names, and exec-host gives it such
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let name = CString::new(path.as_str()).unwrap_or_default();
    // SAFETY: the library has no constructors; those of libraries that it needs are the system's.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: an error has just been.
        let words = unsafe { CStr::from_ptr(libc::dlerror()) };
        return Err(words.to_string_lossy().into_owned());
    }
    let mut map: *const usize = core::ptr::null();
    // SAFETY: the handle is open; the first word of a link map is the bias.
    unsafe {
        libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast());
        Ok((map.read() as u64, file, path))
    }
}

/// `size` bytes at an address of this process.
fn memory<'m>(address: u64, size: u64) -> &'m [u8] {
    let start = core::ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the caller gives segments that are mapped and readable, and stay.
    unsafe { core::slice::from_raw_parts(start, size as usize) }
}

/// Whether the relocation at `address` is of a function that hoist has its own of.
fn stands_for(symbols: &Option<SymbolTable<'_>>, image: &Image<'_>, address: u64) -> bool {
    let own = [
        "__cxa_thread_atexit_impl",
        "__cxa_thread_atexit",
        "_dl_find_object",
        "dl_iterate_phdr",
        "dladdr",
        "dlclose",
        "dlinfo",
        "dlopen",
        "dlsym",
        "dlvsym",
    ];
    let mut records = image.relocations().filter_map(Result::ok).flatten();
    let record = records.find(|record| record.offset == address);
    let symbol = symbols.zip(record).and_then(|(table, record)| table.get(record.symbol).ok());
    let name = symbols.zip(symbol).and_then(|(table, symbol)| table.name_of(&symbol).ok());
    name.is_some_and(|name| own.iter().any(|own| name == *own))
}

/// Loads a file both ways.
///
/// # Errors
/// Who refuses it, and why.
pub(crate) fn compare(path: &Path) -> Result<Same, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let bytes = without_constructors(&bytes).ok_or("not a library")?;
    let by_loader = by_loader(&bytes).map_err(|error| format!("ld.so refuses: {error}"))?;
    let (bias, _file, path) = by_loader;
    // as it is before hoist tells unwinders of its tables, of which this may be one
    let theirs = Loaded { bias, segments: segments(&bytes, bias)? };
    // SAFETY: no constructors; those of what it needs have run.
    let library = unsafe { LibraryLoader::new().open(bytes.clone()) };
    let library = library.map_err(|error| format!("hoist refuses: {error}"))?;
    let mut same = differences(&bytes, library.bias(), &theirs)?;
    // what all copies share would be that one's
    drop(library);
    // SAFETY: as above; nobody else knows the file.
    let mapped = unsafe { LibraryLoader::new().open_file(&path) };
    let mapped = mapped.map_err(|error| format!("hoist refuses the file: {error}"))?;
    same.different.extend(differences(&bytes, mapped.bias(), &theirs)?.different);
    Ok(same)
}

/// A library where the dynamic loader has put it: what is added to addresses of its file, and the bytes of its segments.
struct Loaded {
    bias: u64,
    segments: Vec<Vec<u8>>,
}

/// The bytes that the segments of a library have in memory.
fn segments(bytes: &[u8], bias: u64) -> Result<Vec<Vec<u8>>, String> {
    let image = image(bytes)?;
    let start = bias + image.start();
    Ok(image.segments().map(|it| memory(start + it.offset, it.size).to_vec()).collect())
}

/// What a library says of itself.
fn image(bytes: &[u8]) -> Result<Image<'_>, String> {
    let file = File::parse_segments(bytes).map_err(|error| error.to_string())?;
    Image::parse(file, AddressKind::Virtual).map_err(|error| error.to_string())
}

/// Compares the copies of a library that hoist and the loader have: hoist's by what is added to addresses of its file.
fn differences(bytes: &[u8], ours: u64, theirs: &Loaded) -> Result<Same, String> {
    let refused = |error: elf_image::Error| error.to_string();
    let image = image(bytes)?;
    let mut places = BTreeMap::new();
    for table in image.relocations() {
        for record in table.map_err(refused)? {
            let kind = find(Host::KINDS, record.r#type).ok_or("an unknown relocation")?;
            places.insert(record.offset, kind);
            if matches!(kind.special, elf_core::Special::Descriptor { .. }) {
                places.insert(record.offset + WORD as u64, kind);
            }
        }
    }
    let symbols = image.exports().map_err(refused)?.map(|exports| exports.symbols());
    let shown = symbols.iter().flat_map(|table| table.symbols().iter()).filter(|symbol| {
        symbol.r#type() == STT_OBJECT && symbol.binding() != STB_LOCAL && !symbol.is_undefined()
    });
    let shown: Vec<_> = shown.map(|it| it.value..it.value.saturating_add(it.size)).collect();
    let mut same = Same { words: places.len(), ..Same::default() };
    let headers = image.file().segments();
    let dynamic = headers.iter().find(|segment| segment.r#type == PT_DYNAMIC);
    let dynamic = dynamic.map_or(0..0, |it| it.address..it.address + it.memory_size);
    // that of RISC-V writes two words for lazy binding, lazy or not
    let slots = image.dynamic().ok().flatten().and_then(|dynamic| dynamic.value(DT_PLTGOT));
    let slots = slots.filter(|_| cfg!(target_arch = "riscv64"));
    for (segment, right) in image.segments().zip(&theirs.segments) {
        let start = image.start() + segment.offset;
        let left = memory(ours + start, segment.size);
        same.bytes += left.len();
        if left == right.as_slice() {
            continue;
        }
        let mut at = 0;
        while at < left.len() {
            let address = start + at as u64;
            if let (Some(kind), Some(word)) = (places.get(&address), left.get(at..at + WORD)) {
                let number =
                    |bytes: &[u8]| usize::from_le_bytes(bytes.try_into().unwrap_or_default());
                let (own, other) =
                    (number(word), number(right.get(at..at + WORD).unwrap_or_default()));
                let roles = [Role::TlsModule, Role::TpOffset, Role::TlsDescFunction];
                let (from, to) = (ours as usize, theirs.bias as usize);
                let is_same = own == other || own.wrapping_sub(from) == other.wrapping_sub(to);
                if !is_same && roles.contains(&kind.value.of) {
                    same.thread_local += 1;
                } else if !is_same && stands_for(&symbols, &image, address) {
                    same.stood_for += 1;
                } else if !is_same {
                    same.different.push(format!("{address:#x} {} {own:#x} {other:#x}", kind.name));
                }
                at += WORD;
            } else {
                // the dynamic loader writes addresses into its own table
                let is_slot = slots.is_some_and(|slots| address.wrapping_sub(slots) < 16);
                let is_loaders = dynamic.contains(&address) || is_slot;
                let (own, other) = (left.get(at), right.get(at));
                let is_as_in_file = own == Some(segment.data.get(at).unwrap_or(&0));
                if own != other && !is_loaders {
                    if is_as_in_file && shown.iter().any(|it| it.contains(&address)) {
                        same.written += 1;
                    } else {
                        same.different.push(format!("{address:#x} {own:?} {other:?}"));
                    }
                }
                at += 1;
            }
        }
    }
    Ok(same)
}
