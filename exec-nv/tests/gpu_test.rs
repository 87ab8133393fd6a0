//! The script of `cargo xtask gpu-test` and its steps where there is no GPU: on the stub, where no result can be right, and without
//! any driver.
#![cfg(feature = "driver")]
#![expect(clippy::unwrap_used, reason = "a test")]

mod stub;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nvinfo::{Cubin, Instructions};
use stub::stub;
use tempfile::TempDir;

/// The example, which cargo builds when it builds all tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/gpu_test")
}

/// Whether the example is there; if not, says that the test is skipped.
fn is_built(test: &str) -> bool {
    if cfg!(not(target_arch = "x86_64")) {
        println!("skipped: {test}: bundles are made for x86-64");
        return false;
    }
    let found = program().exists();
    if !found {
        println!(
            "skipped: {test}: needs the example gpu_test, which `cargo test` builds without `--test`"
        );
    }
    found
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Versions of CUDA that there are kernels of.
const VERSIONS: [&str; 4] = ["12.0", "12.4", "12.8", "13.0"];

/// A folder as `cargo xtask gpu-test --bundle` makes it, without hoist.
fn bundle() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: PathBuf| {
        std::fs::copy(&from, folder.path().join(from.file_name().unwrap())).unwrap()
    };
    copy(program());
    std::fs::copy(program(), folder.path().join("gpu_test_static")).unwrap();
    copy(sources().join("exec-nv/gpu-test/run.sh"));
    copy(sources().join("exec-nv/gpu-test/compare.py"));
    for version in VERSIONS {
        for file in ["gpu-V-sm_90.fatbin", "gpu-V-ptx.fatbin", "gpu_linked-V-sm_90.cubin"] {
            copy(sources().join("fixtures/cuda").join(file.replace('V', version)));
        }
    }
    for sm in [80, 100, 120] {
        copy(sources().join(format!("fixtures/cuda/gpu-13.5-sm_{sm}.fatbin")));
    }
    let linked = sources().join("fixtures/cuda/gpu_linked-13.0-sm_90.cubin");
    std::fs::copy(linked, folder.path().join("gpu_linked-hoist-sm_90.cubin")).unwrap();
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(folder: &Path, output: &Path, environment: &[(&str, &str)]) -> Output {
    let mut script = Command::new("sh");
    script.arg(folder.join("run.sh")).arg(output).envs(environment.iter().copied());
    script.output().unwrap()
}

#[test]
fn without_a_gpu_the_script_says_so() {
    if !is_built("without_a_gpu_the_script_says_so") {
        return;
    }
    let (folder, output) = (bundle(), tempfile::tempdir().unwrap());
    let done = run(folder.path(), output.path(), &[("GPU_TEST_SECONDS", "60")]);
    if done.status.code() != Some(2) {
        println!("skipped: without_a_gpu_the_script_says_so: needs a machine without a GPU");
        return;
    }
    let words = text(&done.stdout);
    assert!(words.starts_with("no GPU: no CUDA driver library; libcuda.so.1: "), "{words}");
    assert!(std::fs::read_to_string(output.path().join("report.md")).unwrap().ends_with(&words));
}

/// Steps that measure much, or search this machine for libraries.
const LONG: [&str; 6] = [
    "real_library",
    "speed_load_small",
    "speed_load_large",
    "speed_launch",
    "speed_allocation",
    "speed_copies",
];

#[test]
fn on_the_stub_no_step_crashes_and_wrong_numbers_are_told() {
    let name = "on_the_stub_no_step_crashes_and_wrong_numbers_are_told";
    let Some(stub) = stub(name).filter(|_| is_built(name)) else { return };
    let folder = bundle();
    let listed = Command::new(program()).arg("list").output().unwrap();
    let mut rows = Vec::new();
    for line in text(&listed.stdout).lines() {
        let (name, seconds) = line.split_once(' ').unwrap();
        assert!((1..=90).contains(&seconds.parse::<u32>().unwrap()));
        if LONG.contains(&name) {
            continue;
        }
        let mut step = Command::new(program());
        step.arg(name).arg(folder.path()).env("LD_LIBRARY_PATH", stub.folder());
        let done = step.output().unwrap();
        let found = text(&done.stdout);
        assert!(matches!(done.status.code(), Some(0 | 1)), "{name}: {}{found}", text(&done.stderr));
        assert!(found.lines().all(|row| row.starts_with("| ") && row.ends_with(" |")), "{found}");
        rows.extend(found.lines().map(String::from));
    }
    let row = |start: &str| rows.iter().find(|row| row.starts_with(start)).unwrap().as_str();
    assert_eq!(
        row("| vector_add | own |"),
        "| vector_add | own | FAILED | number 1 is Some(0.0), expected Some(1.5) |"
    );
    assert_eq!(row("| printf | own |").split(" | ").nth(2), Some("ok"));
    assert!(row("| device |").contains("Stub of a GPU 0, sm_90"), "{}", row("| device |"));
    // every step of the ladder, and memory of every kind, gets as far as the launch
    for step in
        rows.iter().filter(|row| row.starts_with("| ladder_") || row.starts_with("| code_in"))
    {
        assert!(
            step.ends_with("| FAILED | number 1 is Some(0.0), expected Some(2.0) |")
                || step.starts_with("| code_in_virtual |"),
            "{step}"
        );
    }
    assert_eq!(rows.iter().filter(|row| row.starts_with("| ladder_")).count(), 9);
    assert_eq!(rows.iter().filter(|row| row.starts_with("| code_in_")).count(), 5);
    let ready = row("| speed_ready |");
    assert!(
        ready.contains("| ok |") && ready.contains(" kernels ready to launch: own "),
        "{ready}"
    );
    // what the layer has is asked for, up to the first wrong number
    for (step, words) in [
        ("graphs", "Driver, built: number 0 is Some(-1.0), expected Some(0.0)"),
        ("launch_attributes", "number 0 is Some(0), expected Some(101)"),
        ("library", "number 1 is Some(0.0), expected Some(1.5)"),
        ("tensor_map", "box at 0, 0: number 0 is Some(-1), expected Some(0)"),
        ("virtual_memory", "number 0 is Some(0), expected Some(3)"),
        ("occupancy", " of 520 differ: vector_add of 1 threads and 0 bytes 8, not 32"),
        ("pool", "MiB used and reserved: "),
        ("processes", "the other process: "),
        ("assertion", "an assert that does not hold was no error"),
    ] {
        let row = row(&format!("| {step} |  | FAILED |"));
        assert!(row.contains(words), "{row}");
    }
    assert!(row("| events |").contains("| ok | 100 launches between two marks: "));
    assert!(row("| peers |").contains("| ok | left out: one GPU"));
    // launches of every kernel were made, with both loaders
    for loader in ["driver", "own"] {
        for step in ["cluster_neighbours", "grid_sync", "largest_parameters", "hoist_link_across"] {
            let row = row(&format!("| {step} | {loader} |"));
            assert!(row.contains("FAILED") && row.contains("expected Some("), "{row}");
        }
    }
}

#[test]
fn older_drivers_are_given_older_code() {
    let name = "older_drivers_are_given_older_code";
    let Some(stub) = stub(name).filter(|_| is_built(name)) else { return };
    let folder = bundle();
    for (driver, version) in [
        ("12000", "12.0"),
        ("12030", "12.0"),
        ("12040", "12.4"),
        ("12070", "12.4"),
        ("12090", "12.8"),
        ("13000", "13.0"),
        ("13020", "13.0"),
    ] {
        let rows = |name: &str| {
            let mut step = Command::new(program());
            step.arg(name).arg(folder.path()).env("LD_LIBRARY_PATH", stub.folder());
            text(&step.env("HOIST_STUB_VERSION", driver).output().unwrap().stdout)
        };
        let device = rows("device");
        assert!(device.contains(&format!(" with gpu-{version}-sm_90.fatbin, ")), "{device}");
        // the code is loaded by both, and launched
        for step in ["vector_add", "nvlink_across", "ladder_9_renumbered", "ptx"] {
            let found = rows(step);
            let launched = |row: &str| row.contains("number ") && row.contains("expected Some(");
            assert!(found.lines().all(launched) && !found.is_empty(), "{driver}: {found}");
        }
        let large = rows("largest_parameters");
        assert_eq!(large.contains("| ok | left out: CUDA 12."), version == "12.0", "{large}");
    }
}

#[test]
fn other_devices_are_given_their_code() {
    let name = "other_devices_are_given_their_code";
    let Some(stub) = stub(name).filter(|_| is_built(name)) else { return };
    let folder = bundle();
    for (device, sm) in
        [("80", 80), ("86", 80), ("89", 80), ("100", 100), ("103", 100), ("120", 120)]
    {
        let rows = |name: &str| {
            let mut step = Command::new(program());
            step.arg(name).arg(folder.path()).env("LD_LIBRARY_PATH", stub.folder());
            text(&step.env("HOIST_STUB_SM", device).output().unwrap().stdout)
        };
        let found = rows("device");
        assert!(found.contains(&format!(" with gpu-13.5-sm_{sm}.fatbin, ")), "{found}");
        let found = rows("vector_add");
        let launched = |row: &str| row.contains("number 1 is Some(0.0), expected Some(1.5)");
        assert!(found.lines().count() == 2 && found.lines().all(launched), "{device}: {found}");
    }
}

/// The whole script with two functions of the driver that ruin the process which calls them.
#[test]
fn what_a_step_breaks_is_that_steps_loss_alone() {
    let name = "what_a_step_breaks_is_that_steps_loss_alone";
    let Some(stub) = stub(name).filter(|_| is_built(name)) else { return };
    let (folder, output) = (bundle(), tempfile::tempdir().unwrap());
    let libraries = stub.folder().to_str().unwrap();
    let ruin = [
        ("LD_LIBRARY_PATH", libraries),
        ("GPU_TEST_STEP_SECONDS", "3"),
        ("HOIST_STUB_ABORT", "cuMemAllocManaged"),
        ("HOIST_STUB_HANG", "cuLinkCreate_v2"),
        ("HOIST_STUB_VERSION", "12040"),
    ];
    let done = run(folder.path(), output.path(), &ruin);
    assert_eq!(done.status.code(), Some(1), "{}{}", text(&done.stdout), text(&done.stderr));
    let report = std::fs::read_to_string(output.path().join("report.md")).unwrap();
    let start = |name: &str| report.lines().filter(|row| row.starts_with(name)).count();
    let listed = text(&Command::new(program()).arg("list").output().unwrap().stdout);
    for line in listed.lines() {
        let (name, _) = line.split_once(' ').unwrap();
        assert!(start(&format!("| {name} | ")) > 0, "nothing of {name} in {report}");
    }
    for row in [
        "| code_in_managed | | CRASHED | exit status 134: ",
        "| ptx_trampoline | | TIMEOUT | no end within 3 s |",
        "| reduce | own | FAILED | ",
        "| fault | ",
        "| speed_ready | ",
        "| hoist launch | driver | FAILED | ",
        "| hoist launch | raw | FAILED | ",
        "## Beside PyTorch and CuPy, exit status ",
    ] {
        assert!(start(row) > 0, "no {row} in {report}");
    }
    // the command line is given what this driver takes
    let log = std::fs::read_to_string(output.path().join("log.txt")).unwrap();
    assert!(log.contains("/gpu-12.4-sm_90.fatbin vector_add "), "{log}");
    assert!(log.contains("/gpu_test_static raw_copies "), "{log}");
    // both of the program's loaders were asked, the second after the first had failed
    assert_eq!(start("| vector_add | driver | FAILED | "), 1, "{report}");
    let of = |words: &[&str]| {
        let word = |row: &str| row.split('|').nth(3).map(str::trim).unwrap_or_default().to_owned();
        report.lines().filter(|row| words.contains(&word(row).as_str())).count()
    };
    let bad = of(&["FAILED", "TIMEOUT", "CRASHED", "SKIPPED"]);
    assert!(report.ends_with(&format!("\n{} ok, {bad} not\n", of(&["ok"]))), "{report}");
}

#[test]
fn a_driver_that_ends_every_process_still_has_a_report() {
    let name = "a_driver_that_ends_every_process_still_has_a_report";
    let Some(stub) = stub(name).filter(|_| is_built(name)) else { return };
    let (folder, output) = (bundle(), tempfile::tempdir().unwrap());
    let libraries = stub.folder().to_str().unwrap();
    let ruin = [("LD_LIBRARY_PATH", libraries), ("HOIST_STUB_ABORT", "cuInit")];
    let done = run(folder.path(), output.path(), &ruin);
    assert_eq!(done.status.code(), Some(1), "{}{}", text(&done.stdout), text(&done.stderr));
    let report = text(&done.stdout);
    let crashed = report.lines().filter(|row| row.contains(" | CRASHED | exit status 134"));
    let listed = text(&Command::new(program()).arg("list").output().unwrap().stdout);
    let steps = listed.lines().filter(|line| !line.starts_with("raw_")).count();
    // and the loads once more, as they come
    assert_eq!(crashed.count(), steps + 1, "{report}");
}

#[test]
fn no_step_begins_when_the_time_is_over() {
    let name = "no_step_begins_when_the_time_is_over";
    let Some(stub) = stub(name).filter(|_| is_built(name)) else { return };
    let (folder, output) = (bundle(), tempfile::tempdir().unwrap());
    let libraries = stub.folder().to_str().unwrap();
    let none = [("LD_LIBRARY_PATH", libraries), ("GPU_TEST_SECONDS", "0")];
    let done = run(folder.path(), output.path(), &none);
    assert_eq!(done.status.code(), Some(1), "{}{}", text(&done.stdout), text(&done.stderr));
    let report = text(&done.stdout);
    assert!(report.contains("| gpu_test list | | SKIPPED | no time left |"), "{report}");
    assert!(!output.path().join("recorded.txt").exists());
    assert!(report.contains("| raw_queues | | SKIPPED | no time left |"), "{report}");
}

/// The cubins of the ladder: what each step loads where the kernels are of this version of CUDA.
fn ladder(version: &str) -> Vec<(String, Vec<u8>, TempDir)> {
    let out = tempfile::tempdir().unwrap();
    let mut write = Command::new(program());
    let file = sources().join(format!("fixtures/cuda/gpu-{version}-sm_90.fatbin"));
    write.arg("cubins").arg(file).arg("90").arg(out.path());
    let done = write.output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    let mut cubins = Vec::new();
    for file in std::fs::read_dir(out.path()).unwrap() {
        let file = file.unwrap();
        if file.path().extension().is_none_or(|extension| extension != "cubin") {
            continue;
        }
        let bytes = std::fs::read(file.path()).unwrap();
        let name = file.file_name().into_string().unwrap();
        cubins.push((name, bytes, tempfile::tempdir().unwrap()));
    }
    cubins.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(cubins.len(), 9);
    cubins
}

#[test]
fn every_step_of_the_ladder_has_the_kernels_needs() {
    if !is_built("every_step_of_the_ladder_has_the_kernels_needs") {
        return;
    }
    let needs = |bytes: &[u8]| {
        let cubin = Cubin::parse(bytes).unwrap();
        cubin.kernel("vector_add".into()).unwrap().resources().unwrap()
    };
    let nulls = |bytes: &[u8]| {
        let cubin = Cubin::parse(bytes).unwrap();
        let symbols = cubin.symbols_named().skip(1);
        let symbols = symbols.filter(|(_, symbol, _)| *symbol == Default::default()).count();
        let sections = cubin.file().sections().into_iter();
        (sections.filter(|section| section.r#type == 0).count(), symbols)
    };
    for version in VERSIONS {
        let ladder = ladder(version);
        let first = needs(&ladder[0].1);
        for (name, bytes, _) in &ladder {
            let found = needs(bytes);
            assert_eq!(found.registers, first.registers, "{version} {name}");
            assert_eq!(found.parameter_size, first.parameter_size, "{version} {name}");
            let bank = |needs: &nvinfo::Resources| {
                needs.parameter_bank.map(|bank| (bank.offset, bank.size))
            };
            assert_eq!(bank(&found), bank(&first), "{version} {name}");
            let memory = |needs: &nvinfo::Resources| (needs.shared, needs.stack);
            assert_eq!(memory(&found), memory(&first), "{version} {name}");
        }
        // section 0, and what is in front of the notes of CUDA 13
        assert_eq!(nulls(&ladder[8].1), (if version == "13.0" { 2 } else { 1 }, 0), "{version}");
        let (sections, symbols) = nulls(&ladder[6].1);
        assert!(sections > 50 && symbols > 50, "{version}: {sections} sections, {symbols} symbols");
    }
}

#[test]
fn nvdisasm_and_cuobjdump_read_every_step_of_the_ladder() {
    let name = "nvdisasm_and_cuobjdump_read_every_step_of_the_ladder";
    if !is_built(name) {
        return;
    }
    // of the versions the first and the last: a process of each tool for each step
    let all = std::env::var_os("HOIST_NVIDIA_TOOLS").is_some();
    let versions = if all { &VERSIONS[..] } else { &[VERSIONS[0], VERSIONS[3]] };
    for version in versions.iter().copied() {
        for (tool, option) in [("nvdisasm", "-c"), ("cuobjdump", "-elf")] {
            for (step, (name, bytes, folder)) in ladder(version).into_iter().enumerate() {
                let file = folder.path().join("step.cubin");
                std::fs::write(&file, bytes).unwrap();
                let Ok(done) = Command::new(tool).arg(option).arg(&file).output() else {
                    println!(
                        "skipped: nvdisasm_and_cuobjdump_read_every_step_of_the_ladder: needs nvdisasm and cuobjdump"
                    );
                    return;
                };
                if step == 0 && version != "13.0" && !done.status.success() {
                    // NVIDIA's own cubin is too old for it
                    break;
                }
                let said = text(&done.stdout);
                assert!(done.status.success(), "{tool} {version} {name}: {}", text_of(&done));
                assert!(said.contains(".text.vector_add"), "{tool} {version} {name}: {said}");
            }
        }
    }
}

/// What the driver is to link is what NVIDIA's tools link: calls that get to any address.
#[test]
fn ptxas_and_nvlink_take_the_ptx_of_steps() {
    if !is_built("ptxas_and_nvlink_take_the_ptx_of_steps") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let mut write = Command::new(program());
    let file = sources().join("fixtures/cuda/gpu-13.0-sm_90.fatbin");
    write.arg("cubins").arg(file).arg("90").arg(out.path());
    assert!(write.output().unwrap().status.success());
    let (object, cubin) = (out.path().join("object.o"), out.path().join("linked.cubin"));
    if Command::new("ptxas").arg("--version").output().is_err() {
        println!("skipped: ptxas_and_nvlink_take_the_ptx_of_steps: needs ptxas");
        return;
    }
    for arch in ["sm_75", "sm_90", "sm_100", "sm_120"] {
        let others = [("asserts", "sm_75"), ("box_of_tensor", "sm_90")];
        for (text, _) in others.iter().filter(|(_, first)| arch != "sm_75" || *first == arch) {
            let source = out.path().join(text).with_extension("ptx");
            let mut ptxas = Command::new("ptxas");
            let done = ptxas.args(["-arch", arch]).arg(source).arg("-o").arg(&cubin).output();
            assert!(done.is_ok_and(|done| done.status.success()), "{text} for {arch}");
        }
        for (text, kernel) in [("trampoline", "trampoline"), ("driver_code", "enter")] {
            let source = out.path().join(text).with_extension("ptx");
            let mut ptxas = Command::new("ptxas");
            ptxas.args(["-c", "-arch", arch]).arg(source).arg("-o").arg(&object);
            let mut nvlink = Command::new("nvlink");
            nvlink.args(["-arch", arch]).arg(&object).arg("-o").arg(&cubin);
            for tool in [&mut ptxas, &mut nvlink] {
                let done = tool.output().unwrap();
                assert!(done.status.success(), "{text}: {}", text_of(&done));
            }
            let bytes = std::fs::read(&cubin).unwrap();
            let linked = Cubin::parse(&bytes).unwrap();
            let code = linked.kernel(kernel.into()).unwrap().code().unwrap();
            let opcodes = (0..code.len() as u32).step_by(16);
            let calls: Vec<u16> = opcodes
                .filter_map(|at| Instructions::Volta.opcode(code, at))
                .filter(|opcode| matches!(opcode, 0x343..=0x346))
                .collect();
            assert_eq!(calls, [0x343], "{text} for {arch}");
        }
    }
}

/// What a tool said.
fn text_of(done: &Output) -> String {
    text(&done.stderr) + &text(&done.stdout)
}
