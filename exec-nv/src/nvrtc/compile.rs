//! Sources that are compiled.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use std::ffi::CString;

use super::library::{Handle, Nvrtc};
use crate::error::Error;

/// What is compiled, and how.
#[derive(Clone, Copy, Debug)]
pub struct Compile<'a> {
    /// What messages call the source.
    pub name: &'a str,
    /// Number of the architecture that the code is for: a cubin for this one; if the compiler does not know it, PTX for the newest that it
    /// knows below.
    pub sm: u32,
    /// Options as on a command line, as `--std=c++17` or `-I/usr/include`. One of the architecture takes the place of `sm`.
    pub options: &'a [&'a str],
    /// Kernels as C++ names them (`scale<float>`), whose names in the code are wanted; templates are compiled for them.
    pub kernels: &'a [&'a str],
}

impl Default for Compile<'_> {
    fn default() -> Self {
        Self { name: "kernels.cu", sm: 80, options: &[], kernels: &[] }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct NvrtcOutput {
    /// A cubin, or PTX.
    pub code: Vec<u8>,
    /// What the compiler said: warnings.
    pub log: String,
    /// The names in the code of the kernels that were asked for, in their order.
    pub names: Vec<String>,
}

/// A program of the library, until this is dropped.
struct Program<'n> {
    nvrtc: &'n Nvrtc,
    handle: Handle,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        if self.handle.is_null() {
            return; // it was not made
        }
        // SAFETY: ours.
        let _ = unsafe { self.nvrtc.nvrtcDestroyProgram(&raw mut self.handle) };
    }
}

/// Asks for the size of something, and then for it.
type Size = unsafe fn(&Nvrtc, Handle, *mut usize) -> Result<(), Error>;
type Get = unsafe fn(&Nvrtc, Handle, *mut c_char) -> Result<(), Error>;

impl Program<'_> {
    fn bytes(&self, size: Size, get: Get) -> Result<Vec<u8>, Error> {
        let mut count = 0;
        // SAFETY: the place is ours, the program is there.
        unsafe { size(self.nvrtc, self.handle, &raw mut count)? };
        let mut bytes = vec![0; count];
        // SAFETY: there is room for so many.
        unsafe { get(self.nvrtc, self.handle, bytes.as_mut_ptr().cast())? };
        Ok(bytes)
    }

    fn log(&self) -> String {
        let log = self.bytes(Nvrtc::nvrtcGetProgramLogSize, Nvrtc::nvrtcGetProgramLog);
        let log = log.unwrap_or_default();
        String::from_utf8_lossy(&log).trim_matches(['\0', '\n', ' ']).to_owned()
    }
}

/// Text for C.
fn text(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::Name)
}

/// Whether an option says which architecture.
fn is_architecture(option: &str) -> bool {
    ["-arch", "--gpu-architecture"].iter().any(|name| option.starts_with(name))
}

impl Nvrtc {
    /// Compiles CUDA C++.
    ///
    /// # Errors
    /// [`Error::Compiler`] with what the compiler says of the source; [`Error::Name`] of a NUL inside a text.
    pub fn compile(&self, source: &str, request: &Compile<'_>) -> Result<NvrtcOutput, Error> {
        let (source, name) = (text(source)?, text(request.name)?);
        let mut program = Program { nvrtc: self, handle: ptr::null_mut() };
        let none = ptr::null();
        // SAFETY: the place is ours, the texts end in NUL; there are no headers.
        unsafe {
            let place = &raw mut program.handle;
            self.nvrtcCreateProgram(place, source.as_ptr(), name.as_ptr(), 0, none, ptr::null())?;
        }
        let kernels =
            request.kernels.iter().map(|name| text(name)).collect::<Result<Vec<_>, _>>()?;
        for kernel in &kernels {
            // SAFETY: the program is there, the text ends in NUL.
            unsafe { self.nvrtcAddNameExpression(program.handle, kernel.as_ptr())? };
        }
        let mut options =
            request.options.iter().map(|option| text(option)).collect::<Result<Vec<_>, _>>()?;
        if !request.options.iter().any(|option| is_architecture(option)) {
            options.push(text(&self.architecture(request.sm)?)?);
        }
        let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: as many options as said, each of which ends in NUL.
        unsafe { self.nvrtcCompileProgram(program.handle, count, pointers.as_ptr()) }.map_err(
            |error| match error {
                Error::Compiler { function, code, text, .. } => {
                    Error::Compiler { function, code, text, log: program.log() }
                }
                error => error,
            },
        )?;
        let mut code = program.bytes(Nvrtc::nvrtcGetCUBINSize, Nvrtc::nvrtcGetCUBIN)?;
        if code.is_empty() {
            code = program.bytes(Nvrtc::nvrtcGetPTXSize, Nvrtc::nvrtcGetPTX)?;
            // its NUL is no part of the text
            code.truncate(code.iter().position(|&byte| byte == 0).unwrap_or(code.len()));
        }
        let names = kernels.iter().map(|kernel| self.lowered(&program, kernel));
        let names = names.collect::<Result<_, _>>()?;
        Ok(NvrtcOutput { code, log: program.log(), names })
    }

    /// The option for an architecture.
    fn architecture(&self, sm: u32) -> Result<String, Error> {
        let known = self.architectures()?;
        let below = known.iter().copied().filter(|&one| one <= sm).max();
        Ok(match below {
            Some(one) if one != sm => format!("--gpu-architecture=compute_{one}"),
            // of one that is too old, the compiler says what it knows
            _ => format!("--gpu-architecture=sm_{sm}"),
        })
    }

    fn lowered(&self, program: &Program<'_>, kernel: &CStr) -> Result<String, Error> {
        let mut lowered = ptr::null();
        // SAFETY: the place is ours; the text that comes is the program's.
        unsafe {
            self.nvrtcGetLoweredName(program.handle, kernel.as_ptr(), &raw mut lowered)?;
            if lowered.is_null() {
                return Ok(kernel.to_string_lossy().into_owned());
            }
            Ok(CStr::from_ptr(lowered).to_string_lossy().into_owned())
        }
    }
}
