//! The CUDA driver's library, found at run time.

use core::error::Error as _;
use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr;
use std::path::Path;

use fatbin::CudaVersion;
use libloading::Library;

use crate::error::Error;
use crate::functions::{Functions, NAMES as FUNCTIONS};

/// Names of the library, in the order they are tried.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// The oldest version of CUDA whose driver has all that is needed.
const OLDEST: CudaVersion = CudaVersion::new(12, 0);

/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: u32 = 100;

/// Which library of this process a driver is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct DriverId(Option<usize>);

/// The CUDA driver, initialised.
pub struct Driver {
    functions: Functions,
    version: CudaVersion,
    /// Kept for the life of the process: the driver has threads and exit handlers of its own, and a process in which its code is
    /// unmapped before those have run crashes.
    _library: ManuallyDrop<Library>,
}

impl Driver {
    /// Opens the driver's library and initialises it.
    ///
    /// # Errors
    /// [`Error::NoLibrary`], [`Error::OldDriver`], [`Error::NoDevice`]; [`Error::NoDriverFunction`] if the library is no
    /// driver; [`Error::Driver`].
    pub fn open() -> Result<Self, Error> {
        // SAFETY: a library of these names is the driver.
        unsafe { Self::of(&NAMES.map(Path::new)) }
    }

    /// The same with the library at `path`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Safety
    /// The library's constructors run, and its functions are those of the CUDA driver API.
    pub unsafe fn open_at(path: &Path) -> Result<Self, Error> {
        // SAFETY: the caller guarantees the library.
        unsafe { Self::of(&[path]) }
    }

    /// The first library of these that is there.
    ///
    /// # Safety
    /// As for [`open_at`](Self::open_at), of each.
    unsafe fn of(paths: &[&Path]) -> Result<Self, Error> {
        let mut tried = Vec::new();
        for path in paths {
            // SAFETY: the caller guarantees it.
            match unsafe { Library::new(*path) } {
                Ok(library) => return Self::start(library),
                Err(error) => {
                    // the reason is what the dynamic loader says below
                    let cause =
                        error.source().map_or_else(|| error.to_string(), ToString::to_string);
                    tried.push((path.display().to_string(), cause));
                }
            }
        }
        Err(Error::NoLibrary { tried })
    }

    fn start(library: Library) -> Result<Self, Error> {
        let functions = Functions::find(&library);
        let library = ManuallyDrop::new(library);
        let mut driver = Self { functions, version: CudaVersion::new(0, 0), _library: library };
        let mut version: c_int = 0;
        // SAFETY: the place is ours.
        unsafe { driver.cuDriverGetVersion(&raw mut version)? };
        let version = u16::try_from(version).unwrap_or(0);
        driver.version = CudaVersion::new(version / 1000, version % 1000 / 10);
        if driver.version < OLDEST {
            return Err(Error::OldDriver { found: driver.version, needed: OLDEST });
        }
        // SAFETY: may be called at any time.
        match unsafe { driver.cuInit(0) } {
            Err(Error::Driver { code: NO_DEVICE, .. }) => return Err(Error::NoDevice),
            outcome => outcome?,
        }
        Ok(driver)
    }

    /// The functions of the driver API that this crate may call, by their names in the library.
    pub const FUNCTIONS: &[&str] = FUNCTIONS;

    /// The version of CUDA that the driver has.
    #[must_use]
    pub const fn version(&self) -> CudaVersion {
        self.version
    }

    /// How many devices there are.
    ///
    /// # Errors
    /// What the driver says.
    pub fn device_count(&self) -> Result<u32, Error> {
        let mut count: c_int = 0;
        // SAFETY: the place is ours.
        unsafe { self.cuDeviceGetCount(&raw mut count)? };
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// The same of all that are of one library in this process.
    pub(crate) fn id(&self) -> DriverId {
        DriverId(self.functions.cuInit.map(|function| function as usize))
    }

    pub(crate) const fn functions(&self) -> &Functions {
        &self.functions
    }

    /// What a function's result means.
    pub(crate) fn failure(&self, function: &'static str, code: u32) -> Error {
        type Lookup = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;
        let ask = |lookup: Option<Lookup>| {
            let mut text = ptr::null();
            // SAFETY: writes a pointer to a text that is never freed, or null.
            let found = unsafe { lookup?(code, &raw mut text) } == 0 && !text.is_null();
            // SAFETY: as said.
            found.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let name = ask(self.functions.cuGetErrorName);
        let text = match (name, ask(self.functions.cuGetErrorString)) {
            (Some(name), Some(text)) => format!("{name}, {text}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => match code {
                710 => String::from("CUDA_ERROR_ASSERT, an assert of a kernel did not hold"),
                _ => String::from("an error that the driver has no name for"),
            },
        };
        Error::Driver { function, code, text }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("version", &self.version).finish_non_exhaustive()
    }
}
