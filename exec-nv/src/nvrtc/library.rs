//! NVRTC's functions.

use core::error::Error as _;
use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use core::mem::ManuallyDrop;
use std::path::Path;

use fatbin::CudaVersion;
use libloading::Library;

use crate::error::Error;

/// Names of the library, in the order they are tried: all versions from 11.2 to 11.8 have one.
const NAMES: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];

/// A program that is being compiled: the library's.
pub(super) type Handle = *mut core::ffi::c_void;

/// Declares the functions, all of which must be there, and their calls.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        #[expect(non_snake_case, reason = "names are NVRTC's")]
        struct Functions {
            nvrtcGetErrorString: unsafe extern "C" fn(u32) -> *const c_char,
            $($name: unsafe extern "C" fn($($type),*) -> u32,)*
        }

        impl Functions {
            fn find(library: &Library) -> Option<Self> {
                // SAFETY: these are the types that NVRTC documents.
                unsafe {
                    Some(Self {
                        nvrtcGetErrorString: *library.get(b"nvrtcGetErrorString\0").ok()?,
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes()).ok()?,)*
                    })
                }
            }
        }

        #[expect(non_snake_case, reason = "names are NVRTC's")]
        impl Nvrtc {
            $(
                /// # Safety
                /// What NVRTC asks for.
                pub(super) unsafe fn $name(&self, $($argument: $type),*) -> Result<(), Error> {
                    // SAFETY: as the caller says.
                    match unsafe { (self.functions.$name)($($argument),*) } {
                        0 => Ok(()),
                        code => Err(Error::Compiler {
                            function: stringify!($name),
                            code,
                            text: self.text(code),
                            log: String::new(),
                        }),
                    }
                }
            )*
        }
    };
}

functions! {
    nvrtcVersion(major: *mut c_int, minor: *mut c_int);
    nvrtcGetNumSupportedArchs(count: *mut c_int);
    nvrtcGetSupportedArchs(all: *mut c_int);
    nvrtcCreateProgram(
        program: *mut Handle, source: *const c_char, name: *const c_char, count: c_int, headers: *const *const c_char,
        names: *const *const c_char
    );
    nvrtcDestroyProgram(program: *mut Handle);
    nvrtcAddNameExpression(program: Handle, name: *const c_char);
    nvrtcGetLoweredName(program: Handle, name: *const c_char, lowered: *mut *const c_char);
    nvrtcCompileProgram(program: Handle, count: c_int, options: *const *const c_char);
    nvrtcGetProgramLogSize(program: Handle, size: *mut usize);
    nvrtcGetProgramLog(program: Handle, log: *mut c_char);
    nvrtcGetCUBINSize(program: Handle, size: *mut usize);
    nvrtcGetCUBIN(program: Handle, code: *mut c_char);
    nvrtcGetPTXSize(program: Handle, size: *mut usize);
    nvrtcGetPTX(program: Handle, code: *mut c_char);
}

/// NVIDIA's compiler of CUDA C++ at run time (NVRTC), found when it is asked for.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use exec_nv::{Compile, Nvrtc};
///
/// let source = r#"extern "C" __global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }"#;
/// let compiled = Nvrtc::open()?.compile(source, &Compile { sm: 90, ..Compile::default() })?;
/// println!("{} bytes of code; {}", compiled.code.len(), compiled.log);
/// # Ok(())
/// # }
/// ```
pub struct Nvrtc {
    functions: Functions,
    /// Kept for the life of the process: it has threads of its own.
    _library: ManuallyDrop<Library>,
}

impl Nvrtc {
    /// Opens the library.
    ///
    /// # Errors
    /// [`Error::NoCompiler`] with what the dynamic loader says of each name.
    pub fn open() -> Result<Self, Error> {
        let mut tried = Vec::new();
        for name in NAMES {
            // SAFETY: a library of these names is NVRTC.
            match unsafe { Self::open_at(Path::new(name)) } {
                Err(Error::NoCompiler { tried: one }) => tried.extend(one),
                outcome => return outcome,
            }
        }
        Err(Error::NoCompiler { tried })
    }

    /// Opens the library at `path`.
    ///
    /// # Errors
    /// [`Error::NoCompiler`], of a library without its functions too.
    ///
    /// # Safety
    /// The library's constructors run, and its functions are NVRTC's.
    pub unsafe fn open_at(path: &Path) -> Result<Self, Error> {
        let failed = |cause| Error::NoCompiler { tried: vec![(path.display().to_string(), cause)] };
        // SAFETY: the caller guarantees it.
        let library = unsafe { Library::new(path) }.map_err(|error| {
            failed(error.source().map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        let library = ManuallyDrop::new(library);
        let functions = Functions::find(&library)
            .ok_or_else(|| failed("not all functions of NVRTC are there".into()))?;
        Ok(Self { functions, _library: library })
    }

    /// The version of CUDA that it is of.
    ///
    /// # Errors
    /// What it says.
    pub fn version(&self) -> Result<CudaVersion, Error> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the places are ours.
        unsafe { self.nvrtcVersion(&raw mut major, &raw mut minor)? };
        let number = |found: c_int| u16::try_from(found).unwrap_or(0);
        Ok(CudaVersion::new(number(major), number(minor)))
    }

    /// Numbers of the architectures that it compiles for, rising.
    ///
    /// # Errors
    /// What it says.
    pub fn architectures(&self) -> Result<Vec<u32>, Error> {
        let mut count: c_int = 0;
        // SAFETY: the place is ours.
        unsafe { self.nvrtcGetNumSupportedArchs(&raw mut count)? };
        let mut all: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: there is room for so many.
        unsafe { self.nvrtcGetSupportedArchs(all.as_mut_ptr())? };
        Ok(all.into_iter().filter_map(|one| u32::try_from(one).ok()).collect())
    }

    fn text(&self, code: u32) -> String {
        // SAFETY: gives a text that is never freed, or null.
        let text = unsafe { (self.functions.nvrtcGetErrorString)(code) };
        if text.is_null() {
            return String::from("an error that it has no name for");
        }
        // SAFETY: as said.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nvrtc").finish_non_exhaustive()
    }
}
