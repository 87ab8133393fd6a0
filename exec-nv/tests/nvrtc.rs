//! NVIDIA's compiler as a library: on a stub of it, and on itself where it is.
#![cfg(feature = "driver")]
#![expect(clippy::unwrap_used, reason = "a test")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::process::Command;

use exec_nv::{Compile, Error, Nvrtc};
use libloading::Library;
use tempfile::TempDir;

/// The stub, one for a test.
struct Stub {
    library: Library,
    path: PathBuf,
    _folder: TempDir,
}

fn stub(test: &str) -> Option<Stub> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libnvrtc.so.13");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stub/libnvrtc.c");
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args(["-D_GNU_SOURCE", "-shared", "-fPIC", "-w", "-o"]).arg(&path).arg(source);
    let Ok(status) = compiler.status() else {
        println!("skipped: {test}: needs a C compiler");
        return None;
    };
    assert!(status.success(), "the stub does not compile");
    // SAFETY: our own library, which does nothing when it is loaded.
    let Ok(library) = (unsafe { Library::new(&path) }) else {
        println!("skipped: {test}: needs a C compiler for the machine that runs it");
        return None;
    };
    Some(Stub { library, path, _folder: folder })
}

impl Stub {
    fn open(&self) -> Nvrtc {
        // SAFETY: it has functions of these types.
        unsafe { Nvrtc::open_at(&self.path) }.unwrap()
    }

    fn fail(&self, function: &str) {
        let function = CString::new(function).unwrap();
        // SAFETY: of this type in the stub.
        unsafe {
            type Fail = unsafe extern "C" fn(*const c_char);
            self.library.get::<Fail>(b"stub_nvrtc_fail\0").unwrap()(function.as_ptr());
        }
    }

    /// The calls since this was asked last.
    fn calls(&self) -> Vec<String> {
        // SAFETY: of these types in the stub.
        unsafe {
            type Text = unsafe extern "C" fn() -> *const c_char;
            let text = self.library.get::<Text>(b"stub_nvrtc_text\0").unwrap()();
            let text = CStr::from_ptr(text).to_str().unwrap().to_owned();
            self.library.get::<unsafe extern "C" fn()>(b"stub_nvrtc_forget\0").unwrap()();
            text.lines().map(String::from).collect()
        }
    }

    /// Programs that were not destroyed.
    fn left(&self) -> c_int {
        // SAFETY: of this type in the stub.
        unsafe {
            self.library.get::<unsafe extern "C" fn() -> c_int>(b"stub_nvrtc_left\0").unwrap()()
        }
    }
}

#[test]
fn sources_become_code_and_errors_have_the_log() {
    let Some(stub) = stub("sources_become_code_and_errors_have_the_log") else { return };
    let nvrtc = stub.open();
    assert_eq!(nvrtc.version().unwrap().to_string(), "13.0");
    assert_eq!(nvrtc.architectures().unwrap(), [75, 80, 90]);
    stub.calls();
    let request = Compile {
        name: "one.cu",
        sm: 90,
        options: &["--std=c++17"],
        kernels: &["scale<float>", "plain"],
    };
    let compiled = nvrtc.compile("source", &request).unwrap();
    assert_eq!((compiled.code, compiled.log), (b"CUBIN".to_vec(), String::new()));
    assert_eq!(compiled.names, ["scaleIfloat>", "plain"]);
    assert_eq!(
        stub.calls(),
        [
            "nvrtcCreateProgram one.cu 0",
            "nvrtcAddNameExpression program 1 scale<float>",
            "nvrtcAddNameExpression program 1 plain",
            "nvrtcGetNumSupportedArchs",
            "nvrtcGetSupportedArchs",
            "nvrtcCompileProgram program 1 --std=c++17 --gpu-architecture=sm_90",
            "nvrtcGetCUBINSize program 1",
            "nvrtcGetCUBIN program 1",
            "nvrtcGetLoweredName program 1 scale<float>",
            "nvrtcGetLoweredName program 1 plain",
            "nvrtcGetProgramLogSize program 1",
            "nvrtcGetProgramLog program 1",
            "nvrtcDestroyProgram program 1",
        ]
    );
    // one that the compiler does not know yet has PTX for the newest below; what is said stands
    let compiled = nvrtc.compile("", &Compile { sm: 120, ..Compile::default() }).unwrap();
    assert_eq!(compiled.code, b".version 8.0");
    assert!(
        stub.calls()
            .contains(&"nvrtcCompileProgram program 2 --gpu-architecture=compute_90".into())
    );
    let said = Compile { options: &["-arch=sm_75"], ..Compile::default() };
    nvrtc.compile("", &said).unwrap();
    assert!(stub.calls().contains(&"nvrtcCompileProgram program 3 -arch=sm_75".into()));
    let error = nvrtc.compile("wrong", &Compile::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "nvrtcCompileProgram: NVRTC_ERROR_COMPILATION (6)\nkernels.cu(1): error: what is wrong\n\n1 error detected"
    );
    assert!(matches!(nvrtc.compile("a\0b", &Compile::default()), Err(Error::Name)));
    assert_eq!(stub.left(), 0);
}

#[test]
fn each_function_that_fails_is_named_and_no_program_is_left() {
    let name = "each_function_that_fails_is_named_and_no_program_is_left";
    let Some(stub) = stub(name) else { return };
    let nvrtc = stub.open();
    let all = |sm| {
        nvrtc.version()?;
        nvrtc.compile("", &Compile { sm, kernels: &["plain"], ..Compile::default() })
    };
    for function in [
        "nvrtcVersion",
        "nvrtcGetNumSupportedArchs",
        "nvrtcGetSupportedArchs",
        "nvrtcCreateProgram",
        "nvrtcAddNameExpression",
        "nvrtcCompileProgram",
        "nvrtcGetCUBINSize",
        "nvrtcGetCUBIN",
        "nvrtcGetPTXSize",
        "nvrtcGetPTX",
        "nvrtcGetLoweredName",
    ] {
        stub.fail(function);
        let error = all(if function.contains("PTX") { 100 } else { 80 }).unwrap_err();
        let expected = format!("{function}: NVRTC_ERROR_INTERNAL_ERROR (11)");
        assert_eq!(error.to_string(), expected);
        assert_eq!(stub.left(), 0, "{function}");
    }
    // without a log the code is there all the same
    stub.fail("nvrtcGetProgramLog");
    assert_eq!(all(80).unwrap().log, "");
    // SAFETY: not there; without functions of NVRTC.
    let errors = unsafe {
        ["/there/is/no/libnvrtc.so", "libm.so.6"]
            .map(|path| Nvrtc::open_at(Path::new(path)).unwrap_err())
    };
    let [missing, other] = errors.map(|error| error.to_string());
    assert!(missing.starts_with("no NVRTC, which compiles CUDA C++; /there/is/no/libnvrtc.so: "));
    assert!(other.ends_with("libm.so.6: not all functions of NVRTC are there"), "{other}");
}

#[test]
fn it_is_looked_for_by_the_names_of_all_its_versions() {
    // where one of them is, there is nothing to be told
    if let Err(error) = Nvrtc::open() {
        for name in ["libnvrtc.so.13: ", "libnvrtc.so.12: ", "libnvrtc.so.11.2: ", "libnvrtc.so: "]
        {
            assert!(error.to_string().contains(&format!("; {name}")), "{error}");
        }
    }
}

#[test]
fn the_compiler_itself() {
    let Some(path) = std::env::var_os("HOIST_NVRTC") else {
        println!("skipped: the_compiler_itself: needs NVRTC's library in HOIST_NVRTC");
        return;
    };
    // SAFETY: who sets the variable says that it is NVRTC.
    let nvrtc = unsafe { Nvrtc::open_at(Path::new(&path)) }.unwrap();
    let source = "template <typename T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }\n\
                  extern \"C\" __global__ void plain(int *x) { *x = 7; }";
    let request = Compile { sm: 90, kernels: &["scale<float>"], ..Compile::default() };
    let compiled = nvrtc.compile(source, &request).unwrap();
    assert_eq!(compiled.names, ["_Z5scaleIfEvPT_S0_"]);
    let cubin = nvinfo::Cubin::parse(&compiled.code).unwrap();
    let mut kernels: Vec<_> = cubin.kernels().map(|kernel| kernel.name().to_string()).collect();
    kernels.sort();
    assert_eq!(kernels, ["_Z5scaleIfEvPT_S0_", "plain"]);
    // newer than any: PTX for the newest that it knows
    let ptx = nvrtc.compile(source, &Compile { sm: 999, ..Compile::default() }).unwrap();
    assert!(String::from_utf8_lossy(&ptx.code).contains(".visible .entry plain("));
    let error = nvrtc.compile("__global__ void f() { x; }", &Compile::default()).unwrap_err();
    assert!(
        error.to_string().contains("kernels.cu(1): error: identifier \"x\" is undefined"),
        "{error}"
    );
}
