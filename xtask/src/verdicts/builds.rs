//! The builds of a program: every compiler, code model and level, for each architecture.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::board::{self, Board};
use crate::tool::{Tool, output};

/// An architecture: what makes programs of it here, and runs them.
pub(crate) struct Arch {
    /// Its name in `programs.toml` and the table.
    pub(crate) name: &'static str,
    /// Its target, for which hoist is built; none for this machine itself.
    pub(crate) target: Option<&'static str>,
    /// The features that hoist is built with, if not those that it has by itself.
    pub(crate) features: Option<&'static str>,
    pub(crate) compilers: &'static [Compiler],
    pub(crate) models: &'static [Model],
    /// Links programs.
    pub(crate) linker: Tool<'static>,
    /// What runs them, word by word, if this machine does not itself.
    pub(crate) runner: &'static [&'static str],
    /// Whether an `llvm-jitlink` here can run its code.
    pub(crate) jitlink: bool,
    /// The machine without an operating system that runs them.
    pub(crate) board: Option<Board>,
}

/// A compiler of C and of C++, or of Rust: the words of its command by language, none for one it does not know.
pub(crate) struct Compiler {
    pub(crate) name: &'static str,
    c: &'static [&'static str],
    cxx: &'static [&'static str],
    rust: &'static [&'static str],
    tool: Tool<'static>,
}

/// Position independence and code model.
pub(crate) struct Model {
    /// Its name in the table.
    pub(crate) name: &'static str,
    flags: &'static [&'static str],
    /// Its executables cannot be moved.
    fixed: bool,
}

/// Levels of optimisation; of boards the last one, too.
const LEVELS: &[&str] = &["O0", "O2", "Os"];

const fn model(name: &'static str, flags: &'static [&'static str], fixed: bool) -> Model {
    Model { name, flags, fixed }
}

/// A Cortex-M by name: clang's target, the folder of its part of the C++ library, models of its own, and the machine.
macro_rules! cortex {
    ($name:literal, $target:literal, $library:literal, [$($model:expr),*], $board:expr) => {
        Arch {
            name: $name,
            target: None,
            features: None,
            compilers: &[
                Compiler {
                    name: "gcc-12",
                    c: &["arm-none-eabi-gcc", concat!("-mcpu=", $name), "-mthumb"],
                    cxx: &["arm-none-eabi-g++", concat!("-mcpu=", $name), "-mthumb"],
                    rust: &[],
                    tool: board::GCC,
                },
                cortex!(clang "clang-14", "clang++-14", $name, $target, $library),
                cortex!(clang "clang-19", "clang++-19", $name, $target, $library),
            ],
            models: &[
                model("plain", &[], true),
                model("long", &["-mlong-calls"], true),
                model("pic", &["-fPIC"], true),
                model("ropi", &["-fropi"], true),
                model("pure-code", &["-mpure-code"], true),
                $($model),*
            ],
            linker: board::GCC,
            runner: &[],
            jitlink: false,
            board: Some($board),
        }
    };
    (clang $c:literal, $cxx:literal, $name:literal, $target:literal, $library:literal) => {
        Compiler {
            name: $c,
            c: &[
                $c,
                concat!("--target=", $target),
                concat!("-mcpu=", $name),
                "-isystem/usr/include/newlib",
            ],
            cxx: &[
                $cxx,
                concat!("--target=", $target),
                concat!("-mcpu=", $name),
                "-nostdinc++",
                "-isystem/usr/include/newlib/c++/12.2.1",
                concat!("-isystem/usr/include/newlib/c++/12.2.1/arm-none-eabi/", $library),
                "-isystem/usr/include/newlib",
            ],
            rust: &[],
            tool: Tool::new($cxx, $c),
        }
    };
}

/// What rustc calls an option of C compilers for position independence or the code model.
fn rust_flag(flag: &str) -> String {
    match flag.strip_prefix("-mcmodel=") {
        Some(model) => format!("-Ccode-model={model}"),
        None => match flag {
            "-fPIC" => "-Crelocation-model=pic".to_owned(),
            "-fPIE" => "-Crelocation-model=pie".to_owned(),
            _ => "-Crelocation-model=static".to_owned(),
        },
    }
}

/// All of them.
pub(crate) const ARCHS: &[Arch] = &[
    Arch {
        name: "x86_64",
        target: None,
        features: None,
        compilers: &[
            Compiler {
                name: "gcc-12",
                c: &["gcc-12"],
                cxx: &["g++-12"],
                rust: &[],
                tool: Tool::new("g++-12", "g++-12"),
            },
            Compiler {
                name: "clang-14",
                c: &["clang-14"],
                cxx: &["clang++-14"],
                rust: &[],
                tool: Tool::new("clang++-14", "clang-14"),
            },
            Compiler {
                name: "clang-19",
                c: &["clang-19"],
                cxx: &["clang++-19"],
                rust: &[],
                tool: Tool::new("clang++-19", "clang-19"),
            },
            Compiler {
                name: "rustc",
                c: &[],
                cxx: &[],
                rust: &["rustc"],
                tool: Tool::new("rustc", "rustc"),
            },
        ],
        models: &[
            model("pic", &["-fPIC"], false),
            model("pic-medium", &["-fPIC", "-mcmodel=medium"], false),
            model("pic-large", &["-fPIC", "-mcmodel=large"], false),
            model("pie", &["-fPIE"], false),
            model("nopic", &["-fno-pic"], true),
            model("nopic-medium", &["-fno-pic", "-mcmodel=medium"], true),
            model("nopic-large", &["-fno-pic", "-mcmodel=large"], true),
        ],
        linker: Tool::new("g++-12", "g++-12"),
        runner: &[],
        jitlink: true,
        board: None,
    },
    Arch {
        name: "aarch64",
        target: Some("aarch64-unknown-linux-gnu"),
        features: None,
        compilers: &[
            Compiler {
                name: "gcc-12",
                c: &["aarch64-linux-gnu-gcc-12"],
                cxx: &["aarch64-linux-gnu-g++-12"],
                rust: &[],
                tool: Tool::new("aarch64-linux-gnu-g++-12", "g++-12-aarch64-linux-gnu"),
            },
            Compiler {
                name: "clang-14",
                c: &["clang-14", "--target=aarch64-linux-gnu"],
                cxx: &["clang++-14", "--target=aarch64-linux-gnu"],
                rust: &[],
                tool: Tool::new("clang++-14", "clang-14"),
            },
            Compiler {
                name: "clang-19",
                c: &["clang-19", "--target=aarch64-linux-gnu"],
                cxx: &["clang++-19", "--target=aarch64-linux-gnu"],
                rust: &[],
                tool: Tool::new("clang++-19", "clang-19"),
            },
        ],
        models: &[
            model("pic", &["-fPIC"], false),
            model("pic-tiny", &["-fPIC", "-mcmodel=tiny"], false),
            model("pie", &["-fPIE"], false),
            model("nopic", &["-fno-pic"], true),
            model("nopic-tiny", &["-fno-pic", "-mcmodel=tiny"], true),
            model("nopic-large", &["-fno-pic", "-mcmodel=large"], true),
        ],
        linker: Tool::new("aarch64-linux-gnu-g++-12", "g++-12-aarch64-linux-gnu"),
        runner: &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
        jitlink: false,
        board: None,
    },
    Arch {
        name: "riscv64",
        target: Some("riscv64gc-unknown-linux-gnu"),
        features: None,
        compilers: &[
            Compiler {
                name: "gcc-12",
                c: &["riscv64-linux-gnu-gcc-12"],
                cxx: &["riscv64-linux-gnu-g++-12"],
                rust: &[],
                tool: Tool::new("riscv64-linux-gnu-g++-12", "g++-12-riscv64-linux-gnu"),
            },
            Compiler {
                name: "clang-14",
                c: &["clang-14", "--target=riscv64-linux-gnu"],
                cxx: &["clang++-14", "--target=riscv64-linux-gnu"],
                rust: &[],
                tool: Tool::new("clang++-14", "clang-14"),
            },
            Compiler {
                name: "clang-19",
                c: &["clang-19", "--target=riscv64-linux-gnu"],
                cxx: &["clang++-19", "--target=riscv64-linux-gnu"],
                rust: &[],
                tool: Tool::new("clang++-19", "clang-19"),
            },
        ],
        models: &[
            model("pic", &["-fPIC"], false),
            model("pic-stays", &["-fPIC", "-mno-relax"], false),
            model("pic-long", &["-fPIC", "-march=rv64g", "-mabi=lp64d"], false),
            model("pic-plain", &["-fPIC", "-march=rv64g", "-mabi=lp64d", "-mno-relax"], false),
            model("pie", &["-fPIE"], false),
            model("medlow", &["-fno-pic", "-mcmodel=medlow"], true),
            model("medlow-stays", &["-fno-pic", "-mcmodel=medlow", "-mno-relax"], true),
            model(
                "medlow-long",
                &["-fno-pic", "-mcmodel=medlow", "-march=rv64g", "-mabi=lp64d"],
                true,
            ),
            model(
                "medlow-plain",
                &["-fno-pic", "-mcmodel=medlow", "-march=rv64g", "-mabi=lp64d", "-mno-relax"],
                true,
            ),
            model("medany", &["-fno-pic", "-mcmodel=medany"], true),
            model("medany-stays", &["-fno-pic", "-mcmodel=medany", "-mno-relax"], true),
            model(
                "medany-long",
                &["-fno-pic", "-mcmodel=medany", "-march=rv64g", "-mabi=lp64d"],
                true,
            ),
            model(
                "medany-plain",
                &["-fno-pic", "-mcmodel=medany", "-march=rv64g", "-mabi=lp64d", "-mno-relax"],
                true,
            ),
        ],
        linker: Tool::new("riscv64-linux-gnu-g++-12", "g++-12-riscv64-linux-gnu"),
        runner: &["qemu-riscv64", "-L", "/usr/riscv64-linux-gnu"],
        jitlink: false,
        board: None,
    },
    Arch {
        name: "arm",
        target: Some("armv7-unknown-linux-gnueabihf"),
        // GPUs and processes share addresses of 64 bits
        features: Some("jit"),
        compilers: &[
            Compiler {
                name: "gcc-12",
                c: &["arm-linux-gnueabihf-gcc-12"],
                cxx: &["arm-linux-gnueabihf-g++-12"],
                rust: &[],
                tool: Tool::new("arm-linux-gnueabihf-g++-12", "g++-12-arm-linux-gnueabihf"),
            },
            Compiler {
                name: "clang-14",
                c: &["clang-14", "--target=armv7a-linux-gnueabihf"],
                cxx: &["clang++-14", "--target=armv7a-linux-gnueabihf"],
                rust: &[],
                tool: Tool::new("clang++-14", "clang-14"),
            },
            Compiler {
                name: "clang-19",
                c: &["clang-19", "--target=armv7a-linux-gnueabihf"],
                cxx: &["clang++-19", "--target=armv7a-linux-gnueabihf"],
                rust: &[],
                tool: Tool::new("clang++-19", "clang-19"),
            },
        ],
        models: &[
            model("arm-pic", &["-marm", "-fPIC"], false),
            model("thumb-pic", &["-mthumb", "-fPIC"], false),
            model("thumb-pie", &["-mthumb", "-fPIE"], false),
            model("arm-nopic", &["-marm", "-fno-pic"], true),
            model("thumb-nopic", &["-mthumb", "-fno-pic"], true),
            model("arm-long", &["-marm", "-fno-pic", "-mlong-calls"], true),
            model("thumb-long", &["-mthumb", "-fno-pic", "-mlong-calls"], true),
        ],
        linker: Tool::new("arm-linux-gnueabihf-g++-12", "g++-12-arm-linux-gnueabihf"),
        runner: &["qemu-arm", "-L", "/usr/arm-linux-gnueabihf"],
        jitlink: false,
        board: None,
    },
    cortex!(
        "cortex-m0",
        "thumbv6m-none-eabi",
        "thumb/v6-m/nofp",
        [],
        Board {
            processor: "cortex-m0",
            // as many bytes as programs with a C library want
            machine: &["-M", "microbit", "-global", "nrf51-soc.sram-size=0x1000000"],
            flash: 0,
            ram: 0x2000_0000,
            ram_size: 0x100_0000,
        }
    ),
    cortex!(
        "cortex-m4",
        "thumbv7em-none-eabi",
        "thumb/v7e-m/nofp",
        [model("hard", &["-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"], true)],
        Board {
            processor: "cortex-m4",
            machine: &["-M", "mps2-an386"],
            flash: 0,
            ram: 0x2100_0000,
            ram_size: 0x100_0000,
        }
    ),
    cortex!(
        "cortex-m33",
        "thumbv8m.main-none-eabi",
        "thumb/v8-m.main/nofp",
        [model("hard", &["-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"], true)],
        Board {
            processor: "cortex-m33",
            machine: &["-M", "mps2-an505"],
            flash: 0x1000_0000,
            ram: 0x3800_0000,
            ram_size: 0x40_0000,
        }
    ),
];

impl Model {
    /// The flags by which a compiler chooses among the builds of its libraries.
    pub(crate) fn multilib(&self) -> impl Iterator<Item = &'static str> {
        self.flags.iter().copied().filter(|flag| flag.starts_with("-mf"))
    }
}

impl Arch {
    /// What must be installed.
    pub(crate) fn tools(&self) -> impl Iterator<Item = Tool<'static>> {
        let runner = self.runner.first().map(|program| Tool::new(program, "qemu-user"));
        let board = self.board.iter().flat_map(|_| [board::EMULATOR, board::PEER]);
        let compilers = self.compilers.iter().map(|compiler| compiler.tool);
        compilers.chain([self.linker]).chain(runner).chain(board)
    }

    /// The levels of optimisation that are tried.
    pub(crate) fn levels(&self) -> &'static [&'static str] {
        match self.board {
            Some(_) => LEVELS,
            None => LEVELS.split_last().map_or(LEVELS, |(_, others)| others),
        }
    }

    /// What compiles C for it.
    pub(crate) fn c_compiler(&self) -> Option<&'static str> {
        self.compilers.iter().find_map(|compiler| compiler.c.first().copied())
    }

    /// A command that runs `program`.
    pub(crate) fn command(&self, program: &Path) -> Command {
        match self.runner {
            [] => Command::new(program),
            [runner, arguments @ ..] => {
                let mut command = Command::new(runner);
                command.args(arguments).arg(program);
                command
            }
        }
    }

    /// The archives that every linker searches at the end: parts of programs that no library of the process has.
    ///
    /// # Errors
    /// If the linker does not say where they are.
    pub(crate) fn archives(&self) -> Result<Vec<PathBuf>> {
        let path = |name: &str| -> Result<PathBuf> {
            let mut command = Command::new(self.linker.program);
            let output = output(command.arg(format!("-print-file-name={name}")))?;
            Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
        };
        Ok(vec![path("libc_nonshared.a")?, path("libgcc.a")?])
    }

    /// Links `objects` to `program` for the result that all others are compared with.
    ///
    /// # Errors
    /// If they cannot be linked.
    pub(crate) fn link(&self, model: &Model, objects: &[PathBuf], program: &Path) -> Result<()> {
        let mut command = Command::new(self.linker.program);
        command.arg(if model.fixed { "-no-pie" } else { "-pie" });
        command.args(objects).args(["-pthread", "-lm", "-z", "noexecstack", "-o"]).arg(program);
        output(&mut command).map(drop)
    }
}

impl Compiler {
    /// Whether what it makes are archives, not objects.
    pub(crate) const fn makes_archives(&self) -> bool {
        !self.rust.is_empty()
    }

    /// Compiles `source` to `object`, or, of Rust, to an archive with all that it uses of the standard library: `None` if the
    /// compiler does not know the language or the model.
    ///
    /// # Errors
    /// If the compiler cannot be run.
    pub(crate) fn compile(
        &self,
        (model, level): (&Model, &str),
        flags: &[String],
        source: &Path,
        object: &Path,
    ) -> Result<Option<()>> {
        let (words, language) = match source.extension().and_then(OsStr::to_str) {
            Some("rs") => (self.rust, "--edition=2024"),
            Some("cpp") => (self.cxx, "-std=c++17"),
            _ => (self.c, "-std=gnu17"),
        };
        let Some((program, target)) = words.split_first() else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(target).arg(language);
        if self.makes_archives() {
            let level = level.trim_start_matches('O');
            command.args(["-Awarnings", "--crate-type=staticlib", &format!("-Copt-level={level}")]);
            command.args(model.flags.iter().map(|flag| rust_flag(flag))).args(flags);
        } else {
            command.args(["-w", &format!("-{level}"), "-c"]).args(model.flags).args(flags);
        }
        command.arg(source).arg("-o").arg(object);
        let output = command.output().with_context(|| format!("cannot run {program}"))?;
        Ok(output.status.success().then_some(()))
    }
}
