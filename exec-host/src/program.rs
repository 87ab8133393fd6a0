//! Programs in this process: what `execve` does, without a new process.
//!
//! A program is loaded as the kernel loads it: its segments, and those of the dynamic loader that it names (`PT_INTERP`). It gets a stack
//! with arguments, environment and auxiliary vector (psABI, "Process Initialization"), and everything from its entry on is its own
//! doing: it ends the process.

mod description;
mod executable;
mod origin;
mod stack;

use crate::Host;
use crate::budget::image_limit;
use crate::error::Error;
use crate::library::LibraryError;
use crate::machine;
use crate::mapped_image::MappedImage;
use crate::memory::Mapping;
use crate::module::Module;
use crate::word;
use core::ffi::{CStr, c_char, c_int};
use core::mem::MaybeUninit;
use description::Description;
use elf_core::names::{PT_INTERP, PT_PHDR};
use elf_core::{Arch as _, File, SegmentFlags};
use elf_image::{AddressKind, Image};
use exec_core::{FileError, NamedFiles};
use origin::OriginText;
use stack::Stack;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

pub use crate::start::StartBlock;
pub use executable::set_executable;

/// Runs the constructors of a program that was loaded as objects, then its `main`, and gives what that returns: the exit status. The
/// environment of this process (`environ`) is that of the block from then on.
///
/// Nobody goes up the stack beyond `main`: the thread ends there if it is to end (`pthread_exit`), and an exception that nobody catches
/// ends the process as it does in a linked program.
///
/// # Errors
/// [`Error::NoSymbol`] or [`Error::NotFunction`] if there is no `main`; constructors have run then.
///
/// # Safety
/// As for [`Module::initialize_as`]; `main` is one, and sound to call in this process. Nothing that this thread's callers have is needed if it
/// does not return. No other thread asks for the environment meanwhile.
pub unsafe fn run_main<B: AsRef<[u8]>>(
    module: &Module<B>,
    start: &StartBlock,
) -> Result<c_int, Error> {
    unsafe extern "C" {
        static mut environ: *const *const c_char;
    }
    let (count, arguments) = (start.count(), start.arguments());
    // SAFETY: as the caller guarantees; a block stays.
    unsafe {
        environ = start.environment();
        module.initialize_as(count, arguments);
    }
    let main = module.function("main")?;
    // SAFETY: as above.
    Ok(unsafe { machine::call_main(main, count, arguments, start.environment()) })
}

/// Has the C library call this process by another name in messages (`program_invocation_name`, `err`, `assert`), as it does a program that
/// is started by it. Code that has a copy of the name from a [copy relocation](crate::Process::copy_relocations) keeps that.
///
/// # Safety
/// No other thread asks for the name meanwhile.
pub unsafe fn set_invocation_name(name: &CStr) {
    unsafe extern "C" {
        static mut program_invocation_name: *mut c_char;
        static mut program_invocation_short_name: *mut c_char;
    }
    // it is never given back
    let long = CString::from(name).into_raw();
    let bytes = name.to_bytes();
    let folders =
        bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash.saturating_add(1));
    // SAFETY: the caller guarantees that nobody reads them; the short name is within the long one.
    unsafe {
        program_invocation_name = long;
        program_invocation_short_name = long.wrapping_add(folders);
    }
}

/// A program in memory, and the dynamic loader that it wants.
///
/// ```
/// use exec_host::program::LoadedProgram;
///
/// // what refuses a program says why, and nothing stays in memory
/// let error = LoadedProgram::load(b"#!/bin/sh").unwrap_err();
/// assert!(error.to_string().contains("not an ELF file"), "{error}");
///
/// # #[cfg(target_arch = "x86_64")] { // in emulators there is no dynamic loader at the path that programs name
/// let program = LoadedProgram::load(&std::fs::read("/proc/self/exe")?)?;
/// if std::env::var_os("RUN_IT_AGAIN").is_some() {
///     // SAFETY: nothing else runs here; the program takes the place of this one.
///     unsafe { program.start(&[c"again".into()], &[])? };
/// }
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LoadedProgram {
    image: Placed,
    interpreter: Option<Placed>,
}

/// A file in memory.
#[derive(Debug)]
struct Placed {
    memory: Mapping,
    bias: u64,
    entry: u64,
    /// Address and number of its program headers.
    headers: (u64, u64),
    origins: Vec<OriginText>,
}

impl LoadedProgram {
    /// Loads the program that `bytes` are: static, static PIE, or dynamic with the loader that it names. Its image may have 16 GiB and 64 times
    /// the size of its file.
    ///
    /// # Errors
    /// As [`load_within`](Self::load_within).
    pub fn load(bytes: &[u8]) -> Result<Self, Error> {
        Self::load_within(bytes, image_limit(bytes.len() as u64))
    }

    /// The same, with an image of at most `limit` bytes.
    ///
    /// # Errors
    /// [`Error::Linked`]; [`Error::File`] or [`Error::Named`] of the dynamic loader; [`Error::Map`] if its address is taken; [`Error::WriteExecute`].
    pub fn load_within(bytes: &[u8], limit: u64) -> Result<Self, Error> {
        let file = parse(bytes)?;
        let interpreter = file.segments().iter().find(|segment| segment.r#type == PT_INTERP);
        let interpreter = match interpreter {
            None => None,
            Some(segment) => {
                let name = file.segment_data(&segment).map_err(elf_image::Error::from);
                let name = name.map_err(LibraryError::from)?;
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                let path = Path::new(OsStr::from_bytes(name));
                let bytes =
                    NamedFiles::of(path).anywhere(true).read(path).map_err(
                        |error| match error {
                            FileError::System { path, cause } => Error::File { path, cause },
                            error => Error::Named(error),
                        },
                    )?;
                let placed = parse(&bytes).map_err(Error::from);
                let placed =
                    placed.and_then(|file| Placed::new(file, image_limit(bytes.len() as u64)));
                Some(placed.map_err(|error| {
                    match error {
                        // its dynamic loader's fault, which is not the program
                        Error::Linked(error) => LibraryError::Needed {
                            name: path.display().to_string(),
                            cause: error.to_string(),
                        }
                        .into(),
                        error => error,
                    }
                })?)
            }
        };
        Ok(Self { image: Placed::new(file, limit)?, interpreter })
    }

    /// The folder that the program is in: `$ORIGIN` stands for it where the program says where its libraries are (`DT_RUNPATH`). Its dynamic
    /// loader takes that of this process's program otherwise, also where this one's name has `:` or `$`, which mean something else there.
    #[must_use]
    pub fn origin(self, folder: impl AsRef<Path>) -> Self {
        let can_be_said =
            !folder.as_ref().as_os_str().as_bytes().iter().any(|it| b":$".contains(it));
        for text in self.image.origins.iter().filter(|_| can_be_said) {
            let (offset, word) = text.of(folder.as_ref());
            self.image.memory.store(offset, &word);
        }
        self
    }

    /// Runs the program in the place of this one: it never returns. `arguments` begin with its name. As with `execve`, handlers of signals
    /// go, what is ignored stays so, and files stay open.
    ///
    /// # Safety
    /// Nothing else runs in this process, and nobody relies on what it has.
    pub unsafe fn start(self, arguments: &[CString], environment: &[CString]) -> Result<(), Error> {
        let mut stack = Stack::new()?;
        let name = arguments.first().map_or(0, StartBlock::leak);
        let auxiliary = self.auxiliary(name);
        let words = StartBlock::new(arguments, environment, &auxiliary).words();
        let size = (words.len() as u64).saturating_mul(word::SIZE);
        let size = size.checked_next_multiple_of(16).unwrap_or(u64::MAX);
        let pointer = stack.top().wrapping_sub(size);
        let place = stack.last_mut(size).ok_or(Error::OutOfMemory { size })?;
        for (place, word) in place.chunks_exact_mut(word::SIZE as usize).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        describe(pointer, words, auxiliary.len(), arguments, environment);
        let entry = self.interpreter.as_ref().map_or(self.image.entry, |loader| loader.entry);
        stack.leave()?;
        core::mem::forget(self);
        reset_signals();
        // the thread has the name of the program's file; the system cuts it
        let file = arguments.first().map_or(&b""[..], |name| name.to_bytes());
        let file = file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let _ = CString::new(file).map(|file| rustix::thread::set_name(&file));
        // SAFETY: the stack is as the psABI has it, and the program is in memory, which nobody gives back.
        unsafe { machine::enter_program(entry, pointer) }
    }

    /// The auxiliary vector: what the kernel has told this process holds for the program, too, but for where it is. Its name is at `name`.
    fn auxiliary(&self, name: u64) -> Vec<(u64, u64)> {
        let random = Box::leak(Box::new([0u8; 16]));
        // without randomness they are zeros
        let _ = rustix::rand::getrandom(&mut *random, rustix::rand::GetRandomFlags::empty());
        let (headers, count) = self.image.headers;
        let own = [
            (libc::AT_PHDR, headers),
            (libc::AT_PHENT, size_of::<word::ProgramHeader>() as u64),
            (libc::AT_PHNUM, count),
            (libc::AT_BASE, self.interpreter.as_ref().map_or(0, |loader| loader.bias)),
            (libc::AT_ENTRY, self.image.entry),
            (libc::AT_RANDOM, random.as_ptr().expose_provenance() as u64),
            (libc::AT_EXECFN, name),
            (libc::AT_SECURE, 0),
        ];
        let own = own.map(|(r#type, value)| (word::wide(r#type), value));
        let is_own = |r#type| own.iter().any(|(own, _)| *own == r#type);
        let passed = StartBlock::auxiliary_of_process().into_iter();
        own.into_iter().chain(passed.filter(|(r#type, _)| !is_own(*r#type))).collect()
    }
}

/// Has the system say of this process what it would if it had been started with this block on its stack. It may not be as new as that; the
/// program runs in any case.
fn describe(
    stack: u64,
    words: &[usize],
    auxiliary: usize,
    arguments: &[CString],
    environment: &[CString],
) {
    let Ok(mut description) = Description::of_process() else { return };
    let size =
        |texts: &[CString]| texts.iter().map(|text| text.count_bytes() as u64 + 1).sum::<u64>();
    // the texts stand one behind the other
    if let Some(first) = words.get(1).map(|first| *first as u64).filter(|_| !arguments.is_empty()) {
        let end = first.wrapping_add(size(arguments));
        description.arguments = first..end;
        description.environment = end..end.wrapping_add(size(environment));
    }
    // with the entry that ends it
    let size = (auxiliary as u64).saturating_add(1).saturating_mul(2 * word::SIZE);
    let end = stack.wrapping_add((words.len() as u64).saturating_mul(word::SIZE));
    description.auxiliary = Some(end.wrapping_sub(size)..end);
    if description.tell().is_err() {
        description.auxiliary = None;
        let _ = description.tell();
    }
}

/// Has signals do what they do in a new program: nobody of this one is there to handle them.
fn reset_signals() {
    /// The last signal of Linux.
    const LAST: i32 = 64;
    for signal in 1..=LAST {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a null pointer changes nothing, and the result is written to a variable of ours, which is valid zeroed.
        let mut action = unsafe {
            libc::sigaction(signal, core::ptr::null(), action.as_mut_ptr());
            action.assume_init()
        };
        if ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction) {
            (action.sa_sigaction, action.sa_flags) = (libc::SIG_DFL, 0);
            // SAFETY: the default is no code of ours.
            unsafe { libc::sigaction(signal, &raw const action, core::ptr::null_mut()) };
        }
    }
    let none = libc::stack_t {
        ss_sp: core::ptr::null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: libc::MINSIGSTKSZ,
    };
    // SAFETY: no handler runs that is on that stack.
    unsafe { libc::sigaltstack(&raw const none, core::ptr::null_mut()) };
}

fn parse(bytes: &[u8]) -> Result<File<'_>, LibraryError> {
    let file = File::parse_segments(bytes).map_err(elf_image::Error::from)?;
    let header = file.header();
    if header.machine != Host::MACHINE {
        let reason = format!("a program for machine {}, not {}", header.machine, Host::MACHINE);
        return Err(LibraryError::Refused { reason });
    }
    if file.encoding().is_64() != word::IS_64 {
        let bits = if word::IS_64 { "32 bits, not 64" } else { "64 bits, not 32" };
        let reason = format!("a program with addresses of {bits}");
        return Err(LibraryError::Refused { reason });
    }
    if file.encoding().is_big_endian() {
        return Err(LibraryError::Refused {
            reason: String::from("a program with big-endian data"),
        });
    }
    Ok(file)
}

impl Placed {
    fn new(file: File<'_>, limit: u64) -> Result<Self, Error> {
        let image = Image::parse(file, AddressKind::Virtual).map_err(LibraryError::from)?;
        if image.stack().is_some_and(|stack| stack.contains(SegmentFlags::EXECUTE)) {
            let reason = String::from("a program that wants to execute its stack");
            return Err(LibraryError::Refused { reason }.into());
        }
        let mut mapped = MappedImage::new(&image, None, limit)?;
        mapped.protect(false)?;
        let origins = origin::texts(&file, &mapped, image.start());
        let MappedImage { memory, bias, .. } = mapped;
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
        Ok(Self { memory, bias, entry: header.entry.wrapping_add(bias), headers, origins })
    }
}
