//! Programs in this process: what `execve` does, without a new process.
//!
//! A program is loaded as the kernel loads it: its segments, and those of the dynamic loader that it names (`PT_INTERP`). It gets a stack
//! with arguments, environment and auxiliary vector (psABI, "Process Initialization"), and everything from its entry on is its own
//! doing: it ends the process.

use crate::Host;
use crate::error::Error;
use crate::library::LibraryError;
use crate::machine;
use crate::memory::{Mapping, MappingOptions};
use core::ffi::c_ulong;
use elf_core::names::{PT_INTERP, PT_PHDR};
use elf_core::{Arch as _, File, SegmentFlags};
use elf_image::{Addresses, Image};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Bytes of the stack.
const STACK: u64 = 8 << 20;

/// A program in memory, and the dynamic loader that it wants.
#[derive(Debug)]
pub struct Program {
    image: Placed,
    interpreter: Option<Placed>,
}

/// A file in memory.
#[derive(Debug)]
struct Placed {
    #[expect(dead_code, reason = "the program is there")]
    memory: Mapping,
    bias: u64,
    entry: u64,
    /// Address and number of its program headers.
    headers: (u64, u64),
}

impl Program {
    /// Loads the program that `bytes` are: static, static PIE, or dynamic with the loader that it names.
    ///
    /// # Errors
    /// [`Error::Linked`], [`Error::File`] of the dynamic loader; [`Error::Map`] if its address is taken.
    pub fn load(bytes: &[u8]) -> Result<Self, Error> {
        let file = parse(bytes)?;
        let interpreter = file.segments().iter().find(|segment| segment.r#type == PT_INTERP);
        let interpreter = match interpreter {
            None => None,
            Some(segment) => {
                let name = file.segment_data(&segment).map_err(elf_image::Error::from);
                let name = name.map_err(LibraryError::from)?;
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                let path = Path::new(OsStr::from_bytes(name));
                let bytes = std::fs::read(path)
                    .map_err(|cause| Error::File { path: path.to_owned(), cause })?;
                Some(Placed::new(parse(&bytes)?)?)
            }
        };
        Ok(Self { image: Placed::new(file)?, interpreter })
    }

    /// Runs the program in the place of this one: it never returns. `arguments` begin with its name.
    ///
    /// # Safety
    /// Nothing else runs in this process; nobody relies on what it has, which is left as it is, open files, handlers of
    /// signals and all.
    pub unsafe fn start(self, arguments: &[CString], environment: &[CString]) -> Result<(), Error> {
        let mapping_options =
            MappingOptions { size: STACK, alignment: 16, ..MappingOptions::default() };
        let mut stack = Mapping::new(&mapping_options)?;
        let top = stack.address().wrapping_add(stack.size());
        let words = self.words(arguments, environment);
        let size = (words.len() as u64).saturating_mul(8);
        let pointer = top.saturating_sub(size) & !15;
        let offset = usize::try_from(pointer.wrapping_sub(stack.address())).unwrap_or(usize::MAX);
        let place = stack.bytes_mut().get_mut(offset..).unwrap_or_default();
        if (place.len() as u64) < size {
            return Err(Error::OutOfMemory { size });
        }
        for (place, word) in place.chunks_exact_mut(8).zip(&words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let entry = self.interpreter.as_ref().map_or(self.image.entry, |loader| loader.entry);
        core::mem::forget((self, stack));
        // SAFETY: the stack is as the psABI has it, and the program is in memory, which nobody gives back.
        unsafe { machine::enter_program(entry, pointer) }
    }

    /// What the stack begins with: number of arguments, their addresses, those of the environment, the auxiliary vector.
    fn words(&self, arguments: &[CString], environment: &[CString]) -> Vec<u64> {
        let leak = |text: &CString| text.clone().into_raw().expose_provenance() as u64;
        let mut words = vec![arguments.len() as u64];
        words.extend(arguments.iter().map(leak));
        words.push(0);
        words.extend(environment.iter().map(leak));
        words.push(0);
        let random = Box::leak(Box::new([0u8; 16]));
        // SAFETY: so many bytes are there. Without randomness they are zeros.
        let _ = unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
        let (headers, count) = self.image.headers;
        let own = [
            (libc::AT_PHDR, headers),
            (libc::AT_PHENT, 56),
            (libc::AT_PHNUM, count),
            (libc::AT_BASE, self.interpreter.as_ref().map_or(0, |loader| loader.bias)),
            (libc::AT_ENTRY, self.image.entry),
            (libc::AT_RANDOM, random.as_ptr().expose_provenance() as u64),
            (libc::AT_EXECFN, arguments.first().map_or(0, leak)),
            (libc::AT_SECURE, 0),
        ];
        for (tag, value) in own {
            words.extend([tag, value]);
        }
        // what the kernel has told this process holds for the program, too
        let passed = [
            libc::AT_SYSINFO_EHDR,
            libc::AT_HWCAP,
            libc::AT_HWCAP2,
            libc::AT_PLATFORM,
            libc::AT_PAGESZ,
            libc::AT_CLKTCK,
            libc::AT_UID,
            libc::AT_EUID,
            libc::AT_GID,
            libc::AT_EGID,
            libc::AT_MINSIGSTKSZ,
        ];
        for tag in passed {
            // SAFETY: asks only.
            let value: c_ulong = unsafe { libc::getauxval(tag) };
            if value != 0
                || [libc::AT_UID, libc::AT_EUID, libc::AT_GID, libc::AT_EGID].contains(&tag)
            {
                words.extend([tag, value]);
            }
        }
        words.extend([0, 0]);
        words
    }
}

fn parse(bytes: &[u8]) -> Result<File<'_>, LibraryError> {
    let file = File::parse_segments(bytes).map_err(elf_image::Error::from)?;
    let header = file.header();
    if header.machine != Host::MACHINE || !file.encoding().is_64() {
        let reason = format!("a program for machine {}, not {}", header.machine, Host::MACHINE);
        return Err(LibraryError::Refused { reason });
    }
    Ok(file)
}

impl Placed {
    fn new(file: File<'_>) -> Result<Self, Error> {
        let image = Image::parse(file, Addresses::Virtual).map_err(LibraryError::from)?;
        let page = rustix::param::page_size() as u64;
        let pages: Vec<_> = image.pages(page).map_err(LibraryError::from)?.collect();
        let before = image.start() & page.wrapping_sub(1);
        let size = pages.iter().map(|range| range.size).sum();
        let mapping_options =
            MappingOptions { size, alignment: image.alignment(), ..MappingOptions::default() };
        let mut memory = match image.is_fixed() {
            true => Mapping::fixed(image.start().wrapping_sub(before), size)?,
            false => Mapping::new(&mapping_options)?,
        };
        let base = memory.address().wrapping_add(before);
        let bias = image.bias(base).map_err(LibraryError::from)?;
        let start = usize::try_from(before).unwrap_or(0);
        let end = start.saturating_add(usize::try_from(image.size()).unwrap_or(0));
        let content = memory.bytes_mut().get_mut(start..end).unwrap_or_default();
        image.write_zeroed(content).map_err(LibraryError::from)?;
        for range in &pages {
            if !range.flags.contains(SegmentFlags::WRITE) {
                memory.set_permissions(range.offset, range.size, range.flags)?;
            }
        }
        let header = image.file().header();
        let of_segment = file.segments().iter().find(|it| it.r#type == PT_PHDR);
        let address = of_segment.map(|segment| segment.address).or_else(|| {
            file.segments().iter().find_map(|segment| {
                let from_start = header.program_headers.checked_sub(segment.offset)?;
                (from_start < segment.file_size).then(|| segment.address.wrapping_add(from_start))
            })
        });
        let headers = address.map_or(0, |address| address.wrapping_add(bias));
        let headers = (headers, header.program_header_count.into());
        Ok(Self { memory, bias, entry: header.entry.wrapping_add(bias), headers })
    }
}
