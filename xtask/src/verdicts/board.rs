//! Cortex-M machines of the emulator: a program linked for an address is put into their RAM, beside firmware that starts it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::trial::{Ran, Verdict};
use crate::bare::LLD;
use crate::tool::{Tool, output};
use crate::workspace::Workspace;

pub(crate) const EMULATOR: Tool<'_> = Tool::new("qemu-system-arm", "qemu-system-arm");
pub(crate) const GCC: Tool<'_> = Tool::new("arm-none-eabi-g++", "libstdc++-arm-none-eabi-newlib");
/// What makes the table's other column.
pub(crate) const PEER: Tool<'_> = LLD;

/// Where programs start: in `image.c`.
const START: &str = "image_start";
/// What the C library is in, and what that needs.
const LIBRARIES: [&str; 4] = ["libstdc++.a", "libm.a", "libc.a", "libgcc.a"];
/// Where in RAM programs begin.
const OFFSET: u32 = 0x10_0000;

/// A machine.
pub(crate) struct Board {
    /// What GCC calls the processor.
    pub(crate) processor: &'static str,
    /// What the emulator calls the machine.
    pub(crate) machine: &'static [&'static str],
    /// Where it starts.
    pub(crate) flash: u32,
    pub(crate) ram: u32,
    pub(crate) ram_size: u32,
}

/// A machine with its firmware.
pub(crate) struct Ready {
    board: &'static Board,
    firmware: PathBuf,
    /// The sources of every program there.
    pub(crate) sources: [PathBuf; 1],
    /// The functions of the firmware, as `NAME=ADDRESS`.
    functions: Vec<String>,
}

/// Of the map that `hoist link` writes.
#[derive(Deserialize)]
struct Map {
    symbols: Vec<Symbol>,
}

#[derive(Deserialize)]
struct Symbol {
    name: String,
    address: u32,
}

/// What is put into RAM.
enum Image<'a> {
    /// A linked file, which says where to.
    Linked(&'a Path),
    /// Bytes for [`Board::base`], and where they start.
    Bytes(&'a Path, u32),
}

impl Board {
    const fn base(&self) -> u32 {
        self.ram + OFFSET
    }

    /// The compiler for the processor.
    fn gcc(&self) -> Command {
        let mut command = Command::new(GCC.program);
        command.args([&format!("-mcpu={}", self.processor), "-mthumb"]);
        command
    }

    /// Builds the firmware from its source in `home`.
    ///
    /// # Errors
    /// If it does not build.
    pub(crate) fn ready(&'static self, home: &Path, workspace: &Workspace) -> Result<Ready> {
        let home = home.join("cortex-m");
        let firmware = workspace.kept("cortex-m")?.join(format!("{}.elf", self.processor));
        let Self { flash, ram, ram_size, .. } = self;
        let mut command = self.gcc();
        command.args(["-xc", "-Os", "-w", "-ffreestanding", "-nostdlib"]);
        command.args([format!("-DRAM={ram:#x}"), format!("-DRAM_SIZE={ram_size:#x}")]);
        let text = flash + 0x100;
        command.arg(format!("-Wl,--section-start=.vectors={flash:#x},-Ttext={text:#x},-e,_exit"));
        command.arg(home.join("firmware.c")).arg("-o").arg(&firmware);
        output(&mut command)?;
        let names = output(Command::new("arm-none-eabi-nm").arg(&firmware))?;
        let functions = String::from_utf8(names.stdout)?.lines().filter_map(function).collect();
        Ok(Ready { board: self, firmware, sources: [home.join("image.c")], functions })
    }
}

/// `NAME=ADDRESS` of a line of `nm` about a global function, the address with T.
fn function(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let address = u32::from_str_radix(words.next()?, 16).ok()?;
    (words.next()? == "T").then_some(())?;
    Some(format!("{}={:#x}", words.next()?, address | 1))
}

impl Ready {
    /// Links `objects` to `program` by GCC's linker.
    ///
    /// # Errors
    /// If they cannot be linked.
    pub(crate) fn link(
        &self,
        multilib: &[&str],
        objects: &[PathBuf],
        program: &Path,
    ) -> Result<()> {
        let mut command = self.board.gcc();
        let base = self.board.base();
        let firmware = self.firmware.display();
        command.args(multilib).arg("-nostartfiles").args(objects).arg(format!(
            "-Wl,-e,{START},-Ttext-segment={base:#x},-R,{firmware},--no-warn-rwx-segments"
        ));
        output(command.arg("-o").arg(program)).map(drop)
    }

    /// Runs a linked program.
    ///
    /// # Errors
    /// If the emulator cannot be run.
    pub(crate) fn linked(&self, program: &Path) -> Result<Ran> {
        self.run(&Image::Linked(program))
    }

    /// What hoist makes of them.
    ///
    /// # Errors
    /// If it, or the emulator, cannot be run.
    pub(crate) fn hoist(
        &self,
        hoist: &Path,
        multilib: &[&str],
        objects: &[PathBuf],
        folder: &Path,
        expected: &str,
    ) -> Result<Verdict> {
        let (image, map) = (folder.join("image"), folder.join("map"));
        let mut command = Command::new(hoist);
        command.arg("link").args(objects).args(self.archives(multilib)?).arg("--group");
        command.args(["--base", &self.board.base().to_string()]);
        for function in &self.functions {
            command.args(["--define", function]);
        }
        let linked = Ran::of(command.arg("-o").arg(&image).arg("--map").arg(&map))?;
        if !linked.is_good() {
            return Ok(linked.judge(expected, "hoist: "));
        }
        let map: Map = serde_json::from_slice(&fs::read(map)?)?;
        let start = map.symbols.iter().find(|symbol| symbol.name == START);
        let start = start.context("the map lacks the start")?.address | 1;
        Ok(self.run(&Image::Bytes(&image, start))?.judge(expected, "hoist: "))
    }

    /// What lld makes of them.
    ///
    /// # Errors
    /// If it, or the emulator, cannot be run.
    pub(crate) fn lld(
        &self,
        multilib: &[&str],
        objects: &[PathBuf],
        folder: &Path,
        expected: &str,
    ) -> Result<Verdict> {
        let program = folder.join("peer");
        let mut command = Command::new(PEER.program);
        command.args([&format!("--image-base={:#x}", self.board.base()), "-e", START]);
        // as its drivers for machines without an operating system say
        command.arg("--target2=rel").arg("--just-symbols").arg(&self.firmware).args(objects);
        command.arg("--start-group").args(self.archives(multilib)?).arg("--end-group");
        let linked = Ran::of(command.arg("-o").arg(&program))?;
        if !linked.is_good() {
            return Ok(linked.judge(expected, "error: "));
        }
        Ok(self.run(&Image::Linked(&program))?.judge(expected, "error: "))
    }

    /// The C library and what it needs.
    fn archives(&self, multilib: &[&str]) -> Result<Vec<PathBuf>> {
        let path = |name: &&str| -> Result<PathBuf> {
            let mut command = self.board.gcc();
            command.args(multilib).arg(format!("-print-file-name={name}"));
            Ok(PathBuf::from(String::from_utf8(output(&mut command)?.stdout)?.trim()))
        };
        LIBRARIES.iter().map(path).collect()
    }

    fn run(&self, image: &Image<'_>) -> Result<Ran> {
        let Board { machine, ram, ram_size, .. } = self.board;
        let (file, start) = match image {
            Image::Linked(program) => (format!("file={}", program.display()), entry(program)?),
            Image::Bytes(bytes, start) => {
                let base = self.board.base();
                (format!("file={},addr={base:#x},force-raw=on", bytes.display()), *start)
            }
        };
        let heap = ram + ram_size / 4 * 3;
        let word = |at: u32, value: u32| {
            [
                OsString::from("-device"),
                format!("loader,addr={at:#x},data={value:#x},data-len=4").into(),
            ]
        };
        let mut command = Command::new(EMULATOR.program);
        command.args(*machine).args(["-display", "none", "-monitor", "none", "-serial", "none"]);
        command.args(["-nic", "none", "-chardev", "stdio,id=host"]);
        command.args(["-semihosting-config", "enable=on,target=native,chardev=host"]);
        command.arg("-kernel").arg(&self.firmware).args(["-device", &format!("loader,{file}")]);
        command.args(word(*ram, start)).args(word(ram + 4, heap));
        Ran::of(&mut command)
    }
}

/// `e_entry` of a linked program.
fn entry(program: &Path) -> Result<u32> {
    let file = fs::read(program)?;
    let file = elf_core::File::parse(&file)?;
    Ok(u32::try_from(file.header().entry)?)
}
