//! The own loader without a GPU: images and shells of real cubins, read back.
#![cfg(feature = "driver")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use elf_core::Name;
use exec_nv::Error;
use exec_nv::own::{ENTRY_SIZE, OwnError, Plan, entry, shell};
use nvinfo::{Call, Cubin, LinkStage, Resources};

const BASE: u64 = 0x7f12_3400_0000;

/// The cubins among the fixtures that are linked, for architectures the own loader knows.
fn cubins() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut cubins: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "cubin"))
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .filter(|(_, bytes)| {
            let cubin = Cubin::parse(bytes).unwrap();
            cubin.target().stage == LinkStage::Linked && cubin.target().sm.unwrap() >= 70
        })
        .collect();
    cubins.sort();
    assert!(cubins.len() >= 10, "only {}", cubins.len());
    cubins
}

fn kernels(cubin: &Cubin<'_>) -> Vec<String> {
    cubin.kernels().map(|kernel| kernel.name().to_string()).collect()
}

fn needs(cubin: &Cubin<'_>, kernel: &str) -> Resources {
    cubin.kernel(Name(kernel.as_bytes())).unwrap().resources().unwrap()
}

/// Calls `check` with every shell: path, kernel, the kernel's cubin, the image, the shell.
fn each_shell(mut check: impl FnMut(&Path, &str, &Cubin<'_>, &Plan<'_>, &[u8], &[u8])) -> usize {
    let mut count = 0;
    for (path, bytes) in cubins() {
        let cubin = Cubin::parse(&bytes).unwrap();
        let plan = Plan::of(&bytes).unwrap();
        let image = plan.write(BASE).unwrap();
        for kernel in kernels(&cubin) {
            let shell = match shell(&plan, &image, BASE, &kernel) {
                Ok(shell) => shell,
                Err(Error::Own(OwnError::Textures { .. })) => {
                    let needs = needs(&cubin, &kernel);
                    assert!(needs.textures + needs.samplers + needs.surfaces > 0, "{kernel}");
                    continue;
                }
                // functions of the driver
                Err(Error::Own(OwnError::Undefined { symbol, .. })) => {
                    let kernels: &[&str] = match symbol.as_str() {
                        "vprintf" => &["only", "undefined"],
                        "malloc" => &["ka", "kb"],
                        "free" => &["kernel"],
                        _ => panic!("{}: {kernel}: {symbol}", path.display()),
                    };
                    assert!(kernels.contains(&&*kernel), "{kernel}: {symbol}");
                    continue;
                }
                Err(error) => panic!("{}: {kernel}: {error}", path.display()),
            };
            check(&path, &kernel, &cubin, &plan, &image, &shell);
            count += 1;
        }
    }
    count
}

fn calls(cubin: &Cubin<'_>) -> Vec<Call> {
    cubin.calls().unwrap().collect()
}

/// Symbols of a kernel and of all that it may get to, found by going over all calls until nothing is new.
fn reached(cubin: &Cubin<'_>, kernel: &str) -> Vec<u32> {
    let all = calls(cubin);
    let mut found = vec![cubin.kernel(Name(kernel.as_bytes())).unwrap().index()];
    loop {
        let before = found.len();
        for call in &all {
            let next: Vec<u32> = match *call {
                Call::Direct { caller, callee } | Call::MayReach { caller, callee }
                    if found.contains(&caller) =>
                {
                    vec![callee]
                }
                Call::Indirect { caller, prototype } if found.contains(&caller) => {
                    let of = |call: &Call| match *call {
                        Call::AddressTaken { function, prototype: its } if its == prototype => {
                            Some(function)
                        }
                        _ => None,
                    };
                    all.iter().filter_map(of).collect()
                }
                _ => continue,
            };
            for function in next {
                if !found.contains(&function) {
                    found.push(function);
                }
            }
        }
        if found.len() == before {
            found.remove(0);
            return found;
        }
    }
}

/// The calls of a kernel and of what it reaches, which begins with the kernel's own.
fn kept(all: &[Call], reached: &[u32], kernel: u32) -> Vec<Call> {
    let is_there = |function: u32| function == kernel || reached.contains(&function);
    let is_kept = |call: &&Call| match **call {
        Call::Direct { caller, callee } | Call::MayReach { caller, callee } => {
            is_there(caller) && is_there(callee)
        }
        Call::AddressTaken { function, .. } => is_there(function),
        Call::Indirect { caller, .. } => is_there(caller),
        _ => panic!("{call:?}"),
    };
    all.iter().filter(is_kept).copied().collect()
}

/// What a driver must know to reserve enough stack: who calls whom, through pointers too, and how much each takes.
#[test]
fn shells_of_kernels_that_call_keep_what_they_reach() {
    let bytes = read("calls-13.5-sm_90.cubin");
    let plan = Plan::of(&bytes).unwrap();
    let image = plan.write(BASE).unwrap();
    let of = |kernel: &str| {
        let shell = shell(&plan, &image, BASE, kernel).unwrap();
        let cubin = Cubin::parse(&shell).unwrap();
        let name = |index| cubin.symbol(index).unwrap().1.to_string();
        let calls = calls(&cubin).into_iter().map(|call| match call {
            Call::Direct { caller, callee } => format!("{} -> {}", name(caller), name(callee)),
            Call::AddressTaken { function, prototype } => {
                format!("&{} {}", name(function), cubin.prototype(prototype).unwrap())
            }
            Call::Indirect { caller, prototype } => {
                format!("{} -> {}", name(caller), cubin.prototype(prototype).unwrap())
            }
            other => format!("{other:?}"),
        });
        let calls: Vec<String> = calls.collect();
        let functions = cubin.functions().map(|function| function.name().to_string());
        (calls.join(", "), functions.collect::<Vec<_>>().join(" "))
    };
    let (calls, functions) = of("recurses");
    assert_eq!(calls, "recurses -> recursive, recursive -> other, recursive -> recursive");
    assert_eq!(functions, "recurses recursive other");
    let (calls, functions) = of("indirect");
    assert_eq!(calls, "deep -> other, &deep #ii, &triple #ii, indirect -> #ii");
    assert_eq!(functions, "indirect other deep triple");
}

#[test]
fn a_shell_asks_for_what_its_kernel_asks_for() {
    let count = each_shell(|path, kernel, cubin, plan, image, shell| {
        let label = format!("{}: {kernel}", path.display());
        let ours = Cubin::parse(shell).unwrap();
        assert_eq!(kernels(&ours), [kernel], "{label}");
        assert_eq!(ours.target(), cubin.target(), "{label}");
        let (mut expected, found) = (needs(cubin, kernel), needs(&ours, kernel));
        expected.code_size = ENTRY_SIZE as u64;
        assert_eq!(found, expected, "{label}");
        let parameters = |cubin: &Cubin<'_>| {
            let kernel = cubin.kernel(Name(kernel.as_bytes())).unwrap();
            kernel.parameters().unwrap().map(Result::unwrap).collect::<Vec<_>>()
        };
        assert_eq!(parameters(&ours), parameters(cubin), "{label}");
        // the code goes on where the kernel is
        let function = cubin.kernel(Name(kernel.as_bytes())).unwrap();
        let place = plan.section(function.section()).unwrap() + function.symbol().value;
        let code = ours.kernel(Name(kernel.as_bytes())).unwrap().code().unwrap();
        assert_eq!(code, entry(BASE + place), "{label}");
        // constants are those of the image
        let text = function.section();
        for bank in
            cubin.constant_banks().filter(|bank| bank.owner.is_none_or(|owner| owner == text))
        {
            let header = ours.file().section(bank.section).unwrap();
            let start = plan.section(bank.section).unwrap() as usize;
            let bytes = ours.file().section_data(&header).unwrap();
            assert_eq!(bytes, &image[start..start + bytes.len()], "{label}: bank {}", bank.bank);
        }
        // of the others only what the kernel may get to
        let size = ours.file().sections().iter().filter(|one| one.flags.bits() & 4 != 0).count();
        let reached = reached(cubin, kernel);
        // a function may have two names
        let defined = reached.iter().map(|&function| cubin.symbol(function).unwrap().0);
        let defined = defined.filter(|symbol| !symbol.is_undefined()).map(|symbol| symbol.shndx);
        let sections = defined.collect::<BTreeSet<_>>().len();
        assert_eq!(size, 1 + sections, "{label}: sections of code");
        assert_eq!(
            calls(&ours),
            kept(&calls(cubin), &reached, function.index()),
            "{label}: the call graph"
        );
        let numbers: Vec<u8> = ours
            .kernel(Name(kernel.as_bytes()))
            .unwrap()
            .attributes()
            .unwrap()
            .map(|row| row.unwrap().number)
            .collect();
        assert!(!numbers.contains(&0x28) && !numbers.contains(&0x29), "{label}: {numbers:x?}");
    });
    assert!(count >= 50, "{count} shells");
}

/// Whether a tool of the CUDA toolkit is on PATH.
fn is_there(name: &str) -> bool {
    // an emulated program is told only by the status that there is no such tool
    Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success())
}

#[test]
fn nvdisasm_and_cuobjdump_read_shells() {
    let tools = ["nvdisasm", "cuobjdump"];
    if !tools.iter().all(|name| is_there(name)) {
        println!("skipped: nvdisasm_and_cuobjdump_read_shells: needs nvdisasm and cuobjdump");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shell.cubin");
    let all = std::env::var_os("HOIST_NVIDIA_TOOLS").is_some();
    let mut files = BTreeSet::new();
    let mut count = 0;
    each_shell(|path, kernel, _, _, _, shell| {
        // of the kernels of a file the first: each is a process of each tool
        if !files.insert(path.to_owned()) && !all {
            return;
        }
        count += 1;
        let label = format!("{}: {kernel}", path.display());
        std::fs::write(&file, shell).unwrap();
        let run = |name: &str, options: &[&str]| {
            let output = Command::new(name).args(options).arg(&file).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{label}: {name}: {complaint}{text}");
            text
        };
        let code = run("nvdisasm", &["-c"]);
        let instructions = ["MOV R2, ", "MOV R3, ", "CALL.ABS.NOINC R2", "EXIT", "BRA "];
        let mut rest = code.as_str();
        for instruction in instructions {
            let at =
                rest.find(instruction).unwrap_or_else(|| panic!("{label}: {instruction}: {code}"));
            rest = &rest[at..];
        }
        let listed = run("cuobjdump", &["-elf"]);
        assert!(listed.contains(&format!(".text.{kernel}")), "{label}: {listed}");
    });
    assert!(count >= 10, "{count} shells");
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda").join(name))
        .unwrap()
}

fn word(image: &[u8], offset: u64) -> u64 {
    u64::from_le_bytes(image[offset as usize..][..8].try_into().unwrap())
}

/// What a driver's loader would put there: worked out from names alone.
#[test]
fn addresses_are_those_of_what_is_named() {
    let bytes = read("gpu_linked-13.0-sm_90.cubin");
    let plan = Plan::of(&bytes).unwrap();
    let image = plan.write(BASE).unwrap();
    let cubin = Cubin::parse(&bytes).unwrap();
    let place = |part: &str| {
        let functions = cubin.functions().map(|function| function.name().to_string());
        let name = functions.chain([part.to_owned()]).find(|name| name.contains(part)).unwrap();
        plan.variable(&name).unwrap().0
    };
    // `changes` of gpu_b.cu: pointers to functions
    let changes = plan.variable("changes").unwrap();
    assert_eq!(changes.1, 24);
    for (index, function) in ["7add_one", "5halve", "_Z5shifti"].into_iter().enumerate() {
        assert_eq!(
            word(&image, changes.0 + 8 * index as u64),
            BASE + place(function),
            "{function}"
        );
    }
    assert_eq!(image[plan.variable("total").unwrap().0 as usize..][..4], 5u32.to_le_bytes());
    // `read_total` has the address of `total` by halves, in bits 32 to 63 of two instructions
    let total = BASE + plan.variable("total").unwrap().0;
    let code = cubin.kernel("read_total".into()).unwrap().section();
    let of_code = |section: &elf_core::SectionHeader| section.info == code;
    let rows = cubin.file().sections().iter().filter(of_code);
    let rows = rows.filter_map(|section| cubin.file().relocations(&section).unwrap()).flatten();
    let mut halves: Vec<_> = rows
        .map(|record| {
            let instruction = word(&image, place("read_total") + record.offset);
            (reloc_cuda::row(record.r#type).unwrap().kind.name, instruction >> 32)
        })
        .collect();
    halves.sort_unstable();
    let expected =
        [("R_CUDA_ABS32_HI_32", total >> 32), ("R_CUDA_ABS32_LO_32", total & 0xffff_ffff)];
    assert_eq!(halves, expected);

    // the whole program: `pointer` of gpu.cu, and addresses in bank 4, the driver's function left open
    let file = read("gpu-13.0-sm_90.fatbin");
    let device = fatbin::TargetDevice { sm: 90, driver: fatbin::CudaVersion::new(13, 0) };
    let images = exec_nv::KernelImage::find(&file, device, Some("says")).unwrap();
    let plan = Plan::of(images[0].bytes()).unwrap();
    let image = plan.write(BASE).unwrap();
    let cubin = Cubin::parse(images[0].bytes()).unwrap();
    let address = |name: &str| BASE + plan.variable(name).unwrap().0;
    assert_eq!(word(&image, plan.variable("pointer").unwrap().0), address("counter"));
    let bank = cubin.constant_banks().find(|bank| bank.bank == 4).unwrap().section;
    let start = plan.section(bank).unwrap();
    let section = cubin
        .file()
        .sections()
        .iter()
        .find(|one| one.info == bank && cubin.file().relocations(one).unwrap().is_some());
    let mut open = 0;
    for record in cubin.file().relocations(&section.unwrap()).unwrap().unwrap() {
        let (symbol, name) = cubin.symbol(record.symbol).unwrap();
        let found = word(&image, start + record.offset);
        if symbol.is_undefined() {
            assert_eq!((name.to_string().as_str(), found), ("vprintf", 0));
            open += 1;
        } else {
            let addend = record.addend.unwrap() as u64;
            assert_eq!(found, address(&name.to_string()) + addend, "{name}");
        }
    }
    assert_eq!(open, 1);
    // the shell leaves that one to the driver
    let shell = shell(&plan, &image, BASE, "says").unwrap();
    let ours = Cubin::parse(&shell).unwrap();
    let left: Vec<String> = ours
        .file()
        .sections()
        .iter()
        .filter_map(|section| ours.file().relocations(&section).unwrap())
        .flatten()
        .map(|record| ours.symbol(record.symbol).unwrap().1.to_string())
        .collect();
    assert_eq!(left, ["vprintf"]);
    assert!(shell.len() < images[0].bytes().len() / 5, "{}", shell.len());
}

#[test]
fn an_image_moves_by_its_base_alone() {
    for (path, bytes) in cubins() {
        let plan = Plan::of(&bytes).unwrap();
        let (one, other) = (plan.write(BASE).unwrap(), plan.write(BASE + 0x1_0000_0000).unwrap());
        assert_eq!(one, plan.write(BASE).unwrap());
        // what differs are parts of addresses: never more than the relocations can fill
        let differ = one.iter().zip(&other).filter(|(one, other)| one != other).count();
        let cubin = Cubin::parse(&bytes).unwrap();
        let relocations: usize = cubin
            .file()
            .sections()
            .iter()
            .filter_map(|section| cubin.file().relocations(&section).unwrap())
            .map(|rows| rows.len())
            .sum();
        assert!(differ <= relocations * 8, "{}: {differ} of {relocations}", path.display());
    }
}

#[test]
fn what_only_the_driver_knows_is_refused_by_name() {
    let old = std::fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda/kernels-11.8-sm_61.cubin"),
    );
    assert_eq!(
        Plan::of(&old.unwrap()).unwrap_err().to_string(),
        "own loader: code for sm_61, where the own loader begins with sm_70"
    );
}

#[test]
fn damaged_cubins_are_errors() {
    let of_kernels = |(path, _): &(PathBuf, _)| path.ends_with("kernels-13.5-sm_80.cubin");
    let (_, bytes) = cubins().into_iter().find(of_kernels).unwrap();
    let cubin = Cubin::parse(&bytes).unwrap();
    let kernel = kernels(&cubin).swap_remove(0);
    let load = |bytes: &[u8]| -> Result<Vec<u8>, Error> {
        let plan = Plan::of(bytes)?;
        // a changed size may be anything: no image of it is needed to see that nothing panics
        if plan.memory_size() > 1 << 24 {
            return Ok(Vec::new());
        }
        shell(&plan, &plan.write(BASE)?, BASE, &kernel)
    };
    load(&bytes).unwrap();
    for size in (0..bytes.len()).step_by(61) {
        let _ = load(&bytes[..size]);
    }
    let mut state = 1u64;
    for _ in 0..500 {
        let mut damaged = bytes.clone();
        for _ in 0..4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 33) as usize % damaged.len();
            damaged[at] = (state >> 24) as u8;
        }
        let _ = load(&damaged);
    }
}

/// Kernels of one cubin that are tried.
const SOME: usize = 20;

#[test]
fn shells_of_shipped_libraries() {
    let Some(folder) = std::env::var_os("HOIST_CUDA_LIBRARIES") else {
        println!("skipped: shells_of_shipped_libraries: needs libraries in HOIST_CUDA_LIBRARIES");
        return;
    };
    let (mut cubins, mut shells, mut refused) = (0, 0, std::collections::BTreeMap::new());
    for file in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for found in fatbin::walk(&bytes, fatbin::Search::default()).flatten() {
            let fatbin::Container::Region(region) = found.container else { continue };
            for entry in region.entries().flatten() {
                if !entry.kind().is_machine_code() || !(70..=121).contains(&entry.sm().number) {
                    continue;
                }
                let Ok(bytes) = entry.unpack(1 << 28) else { continue };
                let cubin = Cubin::parse(&bytes).unwrap();
                if cubin.target().stage != LinkStage::Linked {
                    continue;
                }
                cubins += 1;
                let mut refuse = |error: Error| {
                    let words = error.to_string();
                    let kind = words.split(" the ").nth(1).map_or(words.clone(), String::from);
                    *refused.entry(kind).or_insert(0) += 1;
                };
                let plan = match Plan::of(&bytes) {
                    Ok(plan) => plan,
                    Err(error) => {
                        refuse(error);
                        continue;
                    }
                };
                let image = plan.write(BASE).unwrap();
                for kernel in kernels(&cubin).into_iter().take(SOME) {
                    let shell = match shell(&plan, &image, BASE, &kernel) {
                        Ok(shell) => shell,
                        Err(error) => {
                            refuse(error);
                            continue;
                        }
                    };
                    let mut expected = needs(&cubin, &kernel);
                    expected.code_size = ENTRY_SIZE as u64;
                    assert_eq!(
                        needs(&Cubin::parse(&shell).unwrap(), &kernel),
                        expected,
                        "{kernel}"
                    );
                    shells += 1;
                }
            }
        }
    }
    println!("{cubins} cubins, {shells} shells, refused: {refused:#?}");
    assert!(shells > 0);
}
