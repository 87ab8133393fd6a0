//! Libraries of a test, loaded by us and by the dynamic loader.

use super::of_this_machine;
use exec_host::Error;
use exec_host::library::{Library, LibraryLoader, NeededLibrary};
use std::ffi::{CStr, CString, c_long};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Libraries of a test, in a folder of their own. Their names are nobody else's.
pub(crate) struct Libraries {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) test: &'static str,
}

impl Libraries {
    pub(crate) fn new(test: &'static str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), test }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(self.soname(name))
    }

    pub(crate) fn soname(&self, name: &str) -> String {
        format!("libhoist-{}-{name}.so", self.test)
    }

    /// Compiles C, or C++ if the options say so, to a library that needs others.
    pub(crate) fn add(&self, name: &str, source: &str, needed: &[&str], options: &[&str]) {
        let options = [&["-Wl,-rpath,$ORIGIN"], options].concat();
        self.add_plain(name, source, needed, &options);
    }

    /// The same, which says nothing of where to look for them.
    pub(crate) fn add_plain(&self, name: &str, source: &str, needed: &[&str], options: &[&str]) {
        let is_cxx = options.contains(&"-xc++");
        let input = self.folder.path().join(format!("{name}.c"));
        std::fs::write(&input, source).unwrap();
        let mut command = Command::new(of_this_machine(if is_cxx { "g++" } else { "gcc" }));
        command.args(["-O1", "-fPIC", "-shared", "-Wl,--no-as-needed"]);
        command.arg(format!("-Wl,-soname,{}", self.soname(name))).args(options).arg(input);
        command.arg("-xnone").args(needed.iter().map(|name| self.path(name)));
        let result = command.arg("-o").arg(self.path(name)).output().unwrap();
        assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    }

    /// Loads a library and what it needs of the folder out of bytes.
    pub(crate) fn ours(&self, name: &str) -> Result<Library, Error> {
        let source = |name: elf_core::Name<'_>| {
            let bytes = std::fs::read(self.folder.path().join(name.to_str()?)).ok()?;
            Some(NeededLibrary::bytes(bytes))
        };
        let bytes = std::fs::read(self.path(name)).unwrap();
        // SAFETY: the tests' libraries do no harm.
        unsafe { LibraryLoader::new().needed(source).open(bytes) }
    }

    /// What `probe` of a library gives: out of bytes, out of its file, and opened by the dynamic loader, which must be the same.
    pub(crate) fn probe(&self, name: &str) -> i64 {
        let ours = call_ours(&self.ours(name).unwrap());
        // SAFETY: as above.
        let file = unsafe { LibraryLoader::new().open_file(self.path(name)) }.unwrap();
        let file = call_ours(&file);
        let loader = Opened::new(&self.path(name)).unwrap().call();
        assert_eq!((ours, file), (loader, loader), "{}: {name}", self.test);
        ours
    }

    /// Both refuse it: our words.
    pub(crate) fn refused(&self, name: &str) -> String {
        assert!(Opened::new(&self.path(name)).is_err(), "the dynamic loader takes {name}");
        self.ours(name).unwrap_err().to_string()
    }
}

/// `long` is as long as a word.
pub(crate) fn wide(number: impl Into<i64>) -> i64 {
    number.into()
}

pub(crate) fn call_ours(library: &Library) -> i64 {
    // SAFETY: the tests' functions have this type.
    wide(unsafe { library.get::<unsafe extern "C" fn() -> c_long>("probe").unwrap()() })
}

/// One of the dynamic loader.
pub(crate) struct Opened(*mut core::ffi::c_void);

impl Opened {
    pub(crate) fn new(path: &Path) -> Result<Self, String> {
        Self::with(path, libc::RTLD_NOW | libc::RTLD_LOCAL)
    }

    pub(crate) fn with(path: &Path, flags: i32) -> Result<Self, String> {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the tests' libraries do no harm.
        let handle = unsafe { libc::dlopen(path.as_ptr(), flags) };
        if handle.is_null() {
            // SAFETY: there is an error.
            return Err(unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned());
        }
        Ok(Self(handle))
    }

    pub(crate) fn call(&self) -> i64 {
        // SAFETY: the handle is open.
        let probe = unsafe { libc::dlsym(self.0, c"probe".as_ptr()) };
        assert!(!probe.is_null());
        // SAFETY: the tests' functions have this type.
        wide(unsafe {
            core::mem::transmute::<*mut core::ffi::c_void, extern "C" fn() -> c_long>(probe)()
        })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: it is open.
        unsafe { libc::dlclose(self.0) };
    }
}

impl Libraries {
    /// What `probe` of a library gives out of bytes, with all that it needs, and opened by the dynamic loader, which must be the same.
    pub(crate) fn together(&self, name: &str) -> i64 {
        let ours = call_ours(&self.ours(name).unwrap());
        let loader = Opened::new(&self.path(name)).unwrap().call();
        assert_eq!(ours, loader, "{}: {name}", self.test);
        ours
    }

    /// A library whose constructor and destructor say so in a file.
    pub(crate) fn add_telling(&self, name: &str, needed: &[&str]) {
        self.add_referring(name, needed, &[]);
    }

    /// The same, with references to others that it may not need.
    pub(crate) fn add_referring(&self, name: &str, needed: &[&str], others: &[&str]) {
        let refers = |other: &&str| {
            format!("long of_{other}(void); long (*{name}_to_{other})(void) = of_{other};\n")
        };
        let references: String = others.iter().map(refers).collect();
        let log = self.folder.path().join("log");
        let source = format!(
            "#include <fcntl.h>\n#include <unistd.h>\n
             static void tell(const char *text) {{
                 int file = open(\"{}\", O_WRONLY | O_APPEND | O_CREAT, 0600);
                 if (write(file, text, {}) < 0) _exit(9);
                 close(file);
             }}
             __attribute__((constructor)) static void first(void) {{ tell(\"+{name} \"); }}
             __attribute__((destructor)) static void last(void) {{ tell(\"-{name} \"); }}
             long of_{name}(void) {{ return 1; }}
             {references}
             long probe(void) {{ return 1; }}",
            log.display(),
            name.len() + 2
        );
        self.add(name, &source, needed, &[]);
    }

    /// What was said since this was asked last.
    pub(crate) fn told(&self) -> String {
        let log = self.folder.path().join("log");
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let _ = std::fs::remove_file(log);
        text
    }
}

/// What `probe` gives of a library that is opened from its file, and by the dynamic loader.
pub(crate) fn of_file(libraries: &Libraries, name: &str) -> (i64, i64) {
    // SAFETY: the tests' libraries do no harm.
    let library = unsafe { LibraryLoader::new().open_file(libraries.path(name)) }.unwrap();
    let ours = call_ours(&library);
    drop(library);
    (ours, Opened::new(&libraries.path(name)).unwrap().call())
}
