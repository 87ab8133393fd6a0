//! `calls`: is `fixtures/calls.toml` true? The system's linker and processor are asked, not hoist.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};

use crate::manifest::{self, Call, Program, Programs};
use crate::task::Run;
use crate::tool::{self, Tool, output};
use crate::value::{Argument, Scalar, hex, string};
use crate::workspace::Workspace;

/// Arguments of `calls`.
#[derive(clap::Args)]
pub(crate) struct Calls {
    /// Only builds with a file whose path contains one of these
    only: Vec<String>,
}

/// How programs of an architecture are linked and run here.
struct Arch {
    name: &'static str,
    /// Compiles the driver.
    compiler: Tool<'static>,
    /// Link it with the fixtures, each with its first arguments: the first that can, does.
    linkers: &'static [(Tool<'static>, &'static [&'static str])],
    /// What stands behind the fixtures: libraries that some of them want.
    libraries: &'static [&'static str],
    /// What runs the result, if this machine does not by itself.
    emulator: Option<Tool<'static>>,
}

const GCC: Tool<'_> = Tool::new("gcc-12", "gcc-12");
const CLANG: Tool<'_> = Tool::new("clang-19", "clang-19");
const I686_GCC: Tool<'_> = Tool::new("i686-linux-gnu-gcc", "gcc-i686-linux-gnu");
const RISCV64_GCC: Tool<'_> = Tool::new("riscv64-linux-gnu-gcc-12", "gcc-12-riscv64-linux-gnu");
const ARM_GCC: Tool<'_> = Tool::new("arm-linux-gnueabihf-gcc-12", "gcc-12-arm-linux-gnueabihf");
const AARCH64_GCC: Tool<'_> = Tool::new("aarch64-linux-gnu-gcc-12", "gcc-12-aarch64-linux-gnu");

/// Without position independence: fixtures that need low addresses get them, to the others it makes no difference.
const ARCHS: &[Arch] = &[
    Arch {
        name: "x86_64",
        compiler: GCC,
        // GNU ld 2.40 does not know SHT_CREL.
        linkers: &[
            (GCC, &["-no-pie", "-z", "noexecstack"]),
            (CLANG, &["--ld-path=ld.lld-19", "-no-pie", "-z", "noexecstack"]),
        ],
        libraries: &["-lstdc++", "-lm"],
        emulator: None,
    },
    Arch {
        name: "i386",
        compiler: I686_GCC,
        linkers: &[(I686_GCC, &["-static", "-no-pie", "-z", "noexecstack"])],
        libraries: &["-lm"],
        emulator: None,
    },
    Arch {
        name: "aarch64",
        compiler: AARCH64_GCC,
        // lld 19 does not know the GOTOFF relocations, GNU ld 2.40 not PLT32 and GOTPCREL32.
        linkers: &[
            (CLANG, &["--target=aarch64-linux-gnu", "-static", "--ld-path=ld.lld-19"]),
            (AARCH64_GCC, &["-static"]),
        ],
        libraries: &["-lstdc++", "-lm"],
        emulator: Some(Tool::new("qemu-aarch64", "qemu-user")),
    },
    Arch {
        name: "arm",
        compiler: ARM_GCC,
        linkers: &[(ARM_GCC, &["-static"])],
        libraries: &["-lstdc++", "-lm"],
        emulator: Some(Tool::new("qemu-arm", "qemu-user")),
    },
    Arch {
        name: "riscv64",
        compiler: RISCV64_GCC,
        // GNU ld 2.40 does not know TLS descriptors.
        linkers: &[
            (CLANG, &["--target=riscv64-linux-gnu", "-static", "--ld-path=ld.lld-19"]),
            (RISCV64_GCC, &["-static"]),
        ],
        libraries: &["-lstdc++", "-lm"],
        emulator: Some(Tool::new("qemu-riscv64", "qemu-user")),
    },
];

impl Run for Calls {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let home = workspace.fixtures();
        let programs: Programs = manifest::read(&home.join("calls.toml"))?;
        let scratch = workspace.scratch("calls")?;
        let (mut made, mut wrong, mut alone) = (0_usize, 0_usize, 0_usize);
        for (number, program) in programs.program.iter().enumerate() {
            let chosen: Vec<_> = program.builds.iter().filter(|build| self.wants(build)).collect();
            let left = program.calls.iter().filter(|call| !call.linked).count() * chosen.len();
            alone += left;
            if left == program.calls.len() * chosen.len() {
                continue;
            }
            let arch = ARCHS.iter().find(|arch| arch.name == program.arch);
            let arch =
                arch.with_context(|| format!("calls.toml: no architecture {}", program.arch))?;
            let linkers = arch.linkers.iter().map(|(linker, _)| *linker);
            tool::need(linkers.chain([arch.compiler]).chain(arch.emulator))?;
            let driver = arch.compile(program, &scratch.join(format!("driver-{number}")))?;
            for build in chosen {
                let executable = arch.link(&driver, build, &home, &scratch.join("program"))?;
                let calls = program.calls.iter().enumerate().filter(|(_, call)| call.linked);
                for (index, call) in calls {
                    made += 1;
                    let observed = arch.call(&executable, index)?;
                    let expected = Report::expected(call)?;
                    if observed != expected {
                        wrong += 1;
                        println!(
                            "{} in {}: expected {expected:?}, got {observed:?}",
                            call.function,
                            build.join(" ")
                        );
                    }
                }
            }
        }
        if made == 0 {
            bail!("no program of that name");
        }
        println!(
            "{made} calls made, {wrong} wrong, {alone} that no linker here can answer left out"
        );
        if wrong > 0 {
            bail!("{wrong} entries of calls.toml are wrong");
        }
        Ok(())
    }
}

impl Calls {
    fn wants(&self, build: &[String]) -> bool {
        self.only.is_empty()
            || build.iter().any(|file| self.only.iter().any(|word| file.contains(word.as_str())))
    }
}

impl Arch {
    /// Compiles the driver of `program` to the object `path`.o.
    fn compile(&self, program: &Program, path: &Path) -> Result<PathBuf> {
        let (source, object) = (path.with_extension("c"), path.with_extension("o"));
        std::fs::write(&source, driver(program)?)?;
        output(
            Command::new(self.compiler.program)
                .args(["-c", "-O0", "-w", "-o"])
                .arg(&object)
                .arg(&source),
        )?;
        Ok(object)
    }

    /// Links `driver` with the files of `build` to `executable`.
    fn link(
        &self,
        driver: &Path,
        build: &[String],
        home: &Path,
        executable: &Path,
    ) -> Result<PathBuf> {
        let mut outcome = Err(anyhow!("there is no linker"));
        for (linker, first) in self.linkers {
            let mut command = Command::new(linker.program);
            command.args(*first).arg("-o").arg(executable).arg(driver);
            command.args(build.iter().map(|file| home.join(file))).args(self.libraries);
            outcome = output(&mut command);
            if outcome.is_ok() {
                break;
            }
        }
        outcome.with_context(|| format!("cannot link {}", build.join(" ")))?;
        Ok(executable.to_owned())
    }

    /// Makes the call with number `index`.
    fn call(&self, executable: &Path, index: usize) -> Result<Report> {
        let mut command = match self.emulator {
            None => Command::new(executable),
            Some(emulator) => {
                let mut command = Command::new(emulator.program);
                command.arg(executable);
                command
            }
        };
        let output = output(command.arg(index.to_string()))?;
        let report = String::from_utf8(output.stderr)?;
        let mut lines = report.lines().map(str::to_owned);
        Ok(Report {
            returned: lines.next().unwrap_or_default(),
            buffers: lines.collect(),
            printed: String::from_utf8(output.stdout)?,
        })
    }
}

/// What came of a call; values are bytes in hexadecimal, in the order of memory.
#[derive(Debug, PartialEq, Eq)]
struct Report {
    returned: String,
    buffers: Vec<String>,
    printed: String,
}

impl Report {
    /// What calls.toml says.
    fn expected(call: &Call) -> Result<Self> {
        let returned = match (call.ret.as_str(), &call.expect) {
            ("void", None) => String::new(),
            ("void", Some(_)) => bail!("{}: void is not to be expected", call.function),
            (_, None) => bail!("{}: no expectation", call.function),
            (name, Some(text)) => hex(&Scalar::named(name)?.bytes(text)?),
        };
        let mut buffers = Vec::new();
        for word in &call.buffers {
            match Argument::parse(word)? {
                Argument::Buffer(_, bytes) => buffers.push(hex(&bytes)),
                _ => bail!("{}: {word} is no buffer", call.function),
            }
        }
        // Without the field, buffers that are only read are expected back as they were given.
        if call.buffers.is_empty() {
            for word in &call.args {
                if let Argument::Buffer(_, bytes) = Argument::parse(word)? {
                    buffers.push(hex(&bytes));
                }
            }
        }
        Ok(Self { returned, buffers, printed: call.prints.clone() })
    }
}

/// A C program that makes the call whose number is its argument, and reports on standard error: the value, then buffers.
fn driver(program: &Program) -> Result<String> {
    let mut declarations = String::new();
    let mut cases = String::new();
    for (index, call) in program.calls.iter().enumerate() {
        let arguments: Result<Vec<Argument>> =
            call.args.iter().map(|word| Argument::parse(word)).collect();
        let arguments = arguments.with_context(|| format!("calls.toml: {}", call.function))?;
        let returned = if call.ret == "void" { "void" } else { Scalar::named(&call.ret)?.c };
        let parameters: Vec<String> = arguments.iter().map(Argument::parameter).collect();
        let parameters =
            if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
        let function = string(&call.function);
        writeln!(
            declarations,
            "extern {returned} call_{index}({parameters}) __asm__({function});"
        )?;

        let (mut before, mut after, mut values) = (String::new(), String::new(), Vec::new());
        for (at, argument) in arguments.iter().enumerate() {
            let name = format!("buffer_{index}_{at}");
            values.push(argument.expression(&name));
            if let Argument::Buffer(_, bytes) = argument {
                let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
                write!(
                    before,
                    "_Alignas(16) static unsigned char {name}[] = {{{}}}; ",
                    bytes.join(",")
                )?;
                write!(after, "report({name}, sizeof {name}); ")?;
            }
        }
        let values = values.join(", ");
        if call.ret == "void" {
            writeln!(
                cases,
                "case {index}: {{ {before}call_{index}({values}); report(0, 0); {after}break; }}"
            )?;
        } else {
            writeln!(
                cases,
                "case {index}: {{ {before}{returned} value = call_{index}({values}); report(&value, sizeof value); \
                 {after}break; }}"
            )?;
        }
    }
    Ok(format!(
        "#include <stdio.h>\n#include <stdlib.h>\n{declarations}\
         static void report(const void *at, unsigned long size) {{\n\
         for (unsigned long i = 0; i < size; i++) fprintf(stderr, \"%02x\", ((const unsigned char *)at)[i]);\n\
         fputc('\\n', stderr);\n}}\n\
         int main(int count, char **words) {{\nswitch (count > 1 ? atoi(words[1]) : -1) {{\n{cases}\
         default: return 2;\n}}\nreturn 0;\n}}\n"
    ))
}
