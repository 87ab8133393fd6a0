//! The stub of the CUDA driver's library, built by the C compiler of this machine: one library of its own for every test.
#![allow(dead_code, reason = "each test uses a part")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use exec_nv::{Driver, NvDevice, NvOptions};
use libloading::Library;
use tempfile::TempDir;

/// A driver that records.
pub(crate) struct Stub {
    library: Library,
    path: PathBuf,
    _folder: TempDir,
}

/// The stub's bytes; without a C compiler there are none.
fn built() -> Option<&'static [u8]> {
    static BUILT: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let build = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stub/libcuda.c");
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libcuda.so.1");
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        compiler.args(["-D_GNU_SOURCE", "-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(source);
        let status = compiler.status().ok()?;
        assert!(status.success(), "the stub does not compile");
        Some(std::fs::read(library).unwrap())
    };
    BUILT.get_or_init(build).as_deref()
}

/// A file of the fixtures.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(name);
    std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display())).unwrap()
}

/// Kernels for most tests.
pub(crate) const KERNELS: &str = "cuda/kernels-13.5-sm_90a.cubin";

/// A stub for this test, or `None` with the words that say that the test is skipped.
pub(crate) fn stub(test: &str) -> Option<Stub> {
    let Some(bytes) = built() else {
        println!("skipped: {test}: needs a C compiler");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libcuda.so.1");
    std::fs::write(&path, bytes).unwrap();
    // SAFETY: our own library, which does nothing when it is loaded.
    let Ok(library) = (unsafe { Library::new(&path) }) else {
        println!("skipped: {test}: needs a C compiler for the machine that runs it");
        return None;
    };
    Some(Stub { library, path, _folder: folder })
}

impl Stub {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap()
    }

    pub(crate) fn driver(&self) -> Result<Arc<Driver>, exec_nv::Error> {
        // SAFETY: the stub has functions of these types.
        unsafe { Driver::open_at(&self.path) }.map(Arc::new)
    }

    pub(crate) fn device(&self) -> Result<NvDevice, exec_nv::Error> {
        NvDevice::open(&self.driver()?, 0, NvOptions::default())
    }

    /// The `at`-th call of `function` from now on fails.
    pub(crate) fn fail(&self, function: &str, code: c_int, at: c_int) {
        let function = CString::new(function).unwrap();
        // SAFETY: of this type in the stub.
        unsafe {
            let fail = self
                .library
                .get::<unsafe extern "C" fn(*const c_char, c_int, c_int)>(b"stub_fail\0")
                .unwrap();
            fail(function.as_ptr(), code, at);
        }
    }

    /// Runs `what` during the next call of `function`, which has to come while this runs `then`.
    pub(crate) fn during<F: FnMut()>(&self, function: &str, mut what: F, then: impl FnOnce()) {
        unsafe extern "C" fn call<F: FnMut()>(what: *mut c_void) {
            // SAFETY: it is that function, which is there.
            unsafe { (*what.cast::<F>())() }
        }
        type During =
            unsafe extern "C" fn(*const c_char, unsafe extern "C" fn(*mut c_void), *mut c_void);
        let name = CString::new(function).unwrap();
        // SAFETY: of this type in the stub; `what` outlives the call.
        unsafe {
            let during = self.library.get::<During>(b"stub_during\0").unwrap();
            during(name.as_ptr(), call::<F>, (&raw mut what).cast());
        }
        then();
    }

    /// Be a driver of this version, with so many devices (-1 for none) of this architecture.
    pub(crate) fn be(&self, version: c_int, devices: c_int, sm: c_int) {
        // SAFETY: of this type in the stub.
        unsafe {
            type Be = unsafe extern "C" fn(c_int, c_int, c_int);
            self.library.get::<Be>(b"stub_be\0").unwrap()(version, devices, sm);
        }
    }

    /// Be a driver where the host may touch managed memory while kernels run, or one where it may not.
    pub(crate) fn concurrent(&self, is: bool) {
        // SAFETY: of this type in the stub.
        unsafe {
            type Concurrent = unsafe extern "C" fn(c_int);
            self.library.get::<Concurrent>(b"stub_concurrent\0").unwrap()(is.into());
        }
    }

    fn text_of(&self, function: &[u8]) -> String {
        // SAFETY: of this type in the stub.
        unsafe {
            let text =
                self.library.get::<unsafe extern "C" fn() -> *const c_char>(function).unwrap();
            CStr::from_ptr(text()).to_str().unwrap().to_owned()
        }
    }

    /// The calls so far, one a line.
    pub(crate) fn calls(&self) -> String {
        self.text_of(b"stub_text\0")
    }

    /// The calls so far of one function: what is behind its name.
    pub(crate) fn calls_of(&self, function: &str) -> Vec<String> {
        let words = self.calls();
        let lines = words.lines().filter_map(|line| line.strip_prefix(function));
        lines
            .filter(|rest| rest.is_empty() || rest.starts_with(' '))
            .map(|rest| rest.trim().into())
            .collect()
    }

    /// Forget what was not given back.
    pub(crate) fn clear(&self) {
        // SAFETY: of this type in the stub.
        unsafe { self.library.get::<unsafe extern "C" fn()>(b"stub_clear\0").unwrap()() };
    }

    /// Forget the calls so far.
    pub(crate) fn forget(&self) {
        // SAFETY: of this type in the stub.
        unsafe { self.library.get::<unsafe extern "C" fn()>(b"stub_forget\0").unwrap()() };
    }

    /// What was not given back.
    pub(crate) fn left(&self) -> String {
        self.text_of(b"stub_left\0")
    }
}
