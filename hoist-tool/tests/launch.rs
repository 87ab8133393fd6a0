//! `hoist launch` and `hoist devices`, as they are typed, on the stub of the driver that `exec-nv` is tested with.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder with the stub, for the dynamic loader to find.
struct Setup(TempDir);

impl Setup {
    fn new(test: &str) -> Option<Self> {
        let setup = Self(TempDir::new().unwrap());
        if setup.add("libcuda.c", "libcuda.so.1").is_none() {
            println!("skipped: {test}: needs a C compiler");
            return None;
        }
        Some(setup)
    }

    /// Compiles another stub into the folder.
    fn add(&self, source: &str, name: &str) -> Option<PathBuf> {
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../exec-nv/tests/stub").join(source);
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        compiler.args(["-D_GNU_SOURCE", "-shared", "-fPIC", "-w", "-o"]);
        let path = self.0.path().join(name);
        let status = compiler.arg(&path).arg(source).status().ok()?;
        assert!(status.success());
        Some(path)
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("log")
    }

    /// Calls hoist: what it prints, and the launches that the stub saw.
    fn hoist(&self, words: &[&str], environment: &[(&str, &str)]) -> (Output, Vec<String>) {
        let _ = std::fs::remove_file(self.log());
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        command.args(words).env("LD_LIBRARY_PATH", self.0.path()).env("HOIST_STUB_LOG", self.log());
        let output = command.envs(environment.iter().copied()).output().unwrap();
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let launches = log.lines().filter(|line| line.starts_with("cuLaunch")).map(String::from);
        (output, launches.collect())
    }
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn fixture(name: &str) -> String {
    format!("{}/../fixtures/cuda/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn without_a_driver_there_is_one_line() {
    // an empty folder hides no driver of this machine: only where there is none the words are known
    let output = Command::new(env!("CARGO_BIN_EXE_hoist")).arg("devices").output().unwrap();
    if output.status.success() {
        println!("skipped: without_a_driver_there_is_one_line: needs a machine without a GPU");
        return;
    }
    let error = error(&output);
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(
        error.starts_with("hoist: no CUDA driver library; libcuda.so.1: ") || error.contains("GPU"),
        "{error}"
    );
}

#[test]
fn without_a_kernel_driver_there_is_one_line() {
    if Path::new("/dev/nvidiactl").exists() {
        println!(
            "skipped: without_a_kernel_driver_there_is_one_line: needs a machine without a GPU"
        );
        return;
    }
    let file = fixture("kernels-13.5-sm_90a.cubin");
    let hoist = |words: &[&str]| {
        error(&Command::new(env!("CARGO_BIN_EXE_hoist")).args(words).output().unwrap())
    };
    let expected = "/dev/nvidiactl cannot be opened: errno 2\n";
    assert_eq!(hoist(&["devices", "--raw"]), format!("hoist: {expected}"));
    assert_eq!(
        hoist(&["launch", &file, "globals", "--loader", "raw"]),
        format!("hoist: step Open: {expected}")
    );
}

#[test]
fn devices_are_listed() {
    let Some(setup) = Setup::new("devices_are_listed") else { return };
    let (output, _) = setup.hoist(&["devices"], &[("HOIST_STUB_DEVICES", "2")]);
    let table = text(&output);
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(
        table.starts_with("driver: CUDA 13.0\n") && table.contains("Stub of a GPU 1  sm_90"),
        "{table}"
    );
    let (output, _) = setup.hoist(&["devices", "--json"], &[]);
    let report: serde_json::Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!(report.pointer("/driver_cuda").unwrap(), "13.0");
    assert_eq!(report.pointer("/devices/0/shared_opt_in").unwrap(), 232_448);
    let (output, _) = setup.hoist(&["devices"], &[("HOIST_STUB_DEVICES", "0")]);
    assert_eq!(error(&output), "hoist: the driver knows no GPU\n");
    let (output, _) = setup.hoist(&["devices"], &[("HOIST_STUB_VERSION", "11040")]);
    assert_eq!(error(&output), "hoist: the driver has CUDA 11.4, 12.0 is needed\n");
}

#[test]
fn arguments_go_to_the_kernel_and_buffers_come_back() {
    let Some(setup) = Setup::new("arguments_go_to_the_kernel_and_buffers_come_back") else {
        return;
    };
    let file = fixture("kernels-13.5-sm_90a.cubin");
    for loader in ["driver", "own"] {
        let words = [
            "launch",
            &file,
            "local_memory",
            "buf:i32:1,2,3",
            "u32:7",
            "--grid",
            "4,2",
            "--block",
            "32",
            "--shared",
            "1024",
            "--show-buffers",
            "--loader",
            loader,
        ];
        let (output, launches) = setup.hoist(&words, &[]);
        // the stub runs nothing: what comes back is what went there
        assert_eq!(text(&output), "buf:i32:1,2,3\n");
        let launch = launches.first().unwrap();
        assert!(
            launch.starts_with("cuLaunchKernel local_memory 4x2x1 32x1x1 1024 stream 1 0:(memory "),
            "{launch}"
        );
        assert!(launch.ends_with(" 8:07000000"), "{launch}");
        let words = [
            "launch",
            &file,
            "globals",
            "--cluster",
            "2",
            "--grid",
            "2",
            "--cooperative",
            "--loader",
            loader,
        ];
        let (output, launches) = setup.hoist(&words, &[]);
        assert_eq!(text(&output), "");
        assert_eq!(
            launches,
            ["cuLaunchKernelEx globals 2x1x1 1x1x1 0 stream 1 attribute 2 cluster 2x1x1"]
        );
    }
    let words = [
        "launch",
        &file,
        "local_memory",
        "zeros:f32:2",
        "u32:7",
        "--block",
        "32",
        "--repeat",
        "3",
        "--json",
    ];
    let (output, launches) = setup.hoist(&words, &[]);
    let report: serde_json::Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!(launches.len(), 3);
    assert_eq!(report.pointer("/nanoseconds/2").unwrap(), 1_500_000);
    assert_eq!(report.pointer("/buffers/0").unwrap(), "buf:f32:0,0");
}

#[test]
fn what_cannot_be_is_one_line() {
    let Some(setup) = Setup::new("what_cannot_be_is_one_line") else { return };
    let file = fixture("kernels-13.5-sm_90a.cubin");
    let other = fixture("kernels-13.5-sm_80.cubin");
    let ptx = fixture("kernels.ptx");
    for (words, expected) in [
        (
            &["launch", &file, "local_memory", "u32:7", "--block", "32"][..],
            "local_memory: cannot launch: 1 arguments, expected 2",
        ),
        (
            &["launch", &file, "globals", "--block", "2000"],
            "globals: cannot launch: a block of 2000x1x1",
        ),
        (&["launch", &file, "nothing"], "no kernel nothing: there are subroutine, local_memory"),
        (
            &["launch", &other, "globals"],
            "no code for sm_90 with CUDA 13.0: there is machine code for sm_80",
        ),
        (
            &["launch", &ptx, "globals", "--loader", "own"],
            "own loader: PTX, which takes the driver's loader",
        ),
    ] {
        let (output, launches) = setup.hoist(words, &[]);
        let error = error(&output);
        assert!(error.contains(expected), "{words:?}: {error}");
        assert_eq!((error.lines().count(), launches.len()), (1, 0), "{error}");
    }
    let failing = [("HOIST_STUB_FAIL", "cuModuleLoadDataEx:218")];
    let (output, _) = setup.hoist(&["launch", &ptx, "globals"], &failing);
    assert!(error(&output).contains("ptxas stub: line 1; what is wrong"), "{}", error(&output));
}

#[test]
fn sources_are_compiled_where_there_is_a_compiler() {
    let Some(setup) = Setup::new("sources_are_compiled_where_there_is_a_compiler") else { return };
    let source = setup.0.path().join("one.cu");
    std::fs::write(&source, "a source").unwrap();
    let source = source.to_str().unwrap();
    let (output, _) = setup.hoist(&["launch", source, "globals"], &[]);
    // a machine may have one
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        words.starts_with("hoist: no NVRTC, which compiles CUDA C++; libnvrtc.so.13: ")
            || words.contains("nvrtcCompileProgram: "),
        "{words}"
    );
    setup.add("libnvrtc.c", "libnvrtc.so.13").unwrap();
    let cubin = fixture("kernels-13.5-sm_90a.cubin");
    let environment = [("HOIST_STUB_CUBIN", cubin.as_str())];
    for loader in ["driver", "own"] {
        let words = ["launch", source, "globals", "--nvrtc-option", "-DX=1", "--loader", loader];
        let (output, launches) = setup.hoist(&words, &environment);
        assert_eq!(text(&output), "");
        assert_eq!(launches, ["cuLaunchKernel globals 1x1x1 1x1x1 0 stream 1"]);
        let log = std::fs::read_to_string(setup.log()).unwrap();
        assert!(
            log.contains("nvrtcCompileProgram program 1 -DX=1 --gpu-architecture=sm_90\n"),
            "{log}"
        );
    }
    std::fs::write(source, "what is wrong").unwrap();
    let (output, launches) = setup.hoist(&["launch", source, "globals"], &environment);
    let words = error(&output);
    assert!(words.contains("one.cu: nvrtcCompileProgram: NVRTC_ERROR_COMPILATION (6)"), "{words}");
    assert!(words.contains("kernels.cu(1): error: what is wrong"), "{words}");
    assert_eq!(launches, [""; 0]);
}

#[test]
fn profilers_are_told_of_ranges() {
    let Some(setup) = Setup::new("profilers_are_told_of_ranges") else { return };
    let tool = setup.add("nvtx_tool.c", "tool.so").unwrap();
    let file = fixture("kernels-13.5-sm_90a.cubin");
    let told = |kind: &str| {
        let path = tool.to_str().unwrap();
        let environment = [("NVTX_INJECTION64_PATH", path), ("HOIST_STUB_NVTX", kind)];
        let (output, launches) = setup.hoist(&["launch", &file, "globals"], &environment);
        assert_eq!((text(&output), launches.len()), (String::new(), 1));
        let log = std::fs::read_to_string(setup.log()).unwrap();
        let wanted = |line: &&str| line.starts_with("nvtx ") || line.starts_with("cuLaunch");
        let lines = log.lines().filter(wanted).map(|line| line.trim_end().to_owned());
        lines.collect::<Vec<_>>()
    };
    let launch = "cuLaunchKernel globals 1x1x1 1x1x1 0 stream 1";
    assert_eq!(
        told("plain"),
        ["nvtx begin", "nvtx push load", "nvtx pop", "nvtx push globals", launch, "nvtx pop"]
    );
    assert_eq!(
        told("domains"),
        [
            "nvtx begin",
            "nvtx domain push load",
            "nvtx domain pop",
            "nvtx domain push globals",
            launch,
            "nvtx domain pop"
        ]
    );
    // a tool that wants none, and one that is not there, are no reason not to launch
    assert_eq!(told("none"), [launch]);
    std::fs::remove_file(&tool).unwrap();
    assert_eq!(told("plain"), [launch]);
}
