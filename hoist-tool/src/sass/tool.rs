//! nvdisasm: where it is, and how it is asked.

use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail};

use super::code::{Code, parse};
use crate::printable::Printable;

/// What is to be told beside instructions.
#[derive(Clone, Copy, Debug, Default)]
pub struct DisasmOptions {
    /// How many registers are live.
    pub live: bool,
    /// Lines of the source.
    pub lines: bool,
}

/// Functions that are named to nvdisasm: more are asked for by asking for all.
const NAMED: usize = 500;

/// Where a tool of the CUDA toolkit is: what the environment's `variable` names, or in PATH, CUDA_HOME/bin, CUDA_PATH/bin, or in
/// the packages of the Python on PATH.
#[must_use]
pub fn find_tool(name: &str, variable: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from);
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os);
    let homes = homes.map(|home| Path::new(&home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(homes);
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    let mut usual = named.into_iter().chain(folders.map(|folder| folder.join(&file)));
    usual.find(|path| path.is_file()).or_else(|| {
        let inside = |folder: &PathBuf| {
            let below = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
            below.map(|entry| entry.path().join("bin").join(&file)).find(|path| path.is_file())
        };
        packages().iter().find_map(inside)
    })
}

/// Folders of NVIDIA's packages of Python: `nvidia` in `site-packages`.
fn packages() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut command = Command::new("python3");
        command.args(["-c", "import nvidia; print(*nvidia.__path__, sep='\\n')"]);
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(PathBuf::from).collect()
    })
}

/// The code of functions of a cubin, by the numbers of their symbols; of all, if there are none. One process, whatever their
/// number; two, if both live registers and lines are asked for.
///
/// # Errors
/// If nvdisasm is not installed, or what it says is wrong.
pub fn disassemble(cubin: &[u8], symbols: &[u32], options: DisasmOptions) -> Result<Vec<Code>> {
    let mut code = parse(&run(
        cubin,
        symbols,
        if options.live { &["-plr", "-lrm", "count"] } else { &["-gi"] },
        options,
    )?);
    if options.live && options.lines {
        let with_lines = parse(&run(cubin, symbols, &["-gi"], options)?);
        for (one, other) in code.iter_mut().zip(with_lines) {
            for (one, other) in one.instructions.iter_mut().zip(other.instructions) {
                one.source = other.source;
            }
        }
    }
    code.iter_mut().for_each(Code::trim);
    if !options.lines {
        let all = code.iter_mut().flat_map(|code| &mut code.instructions);
        all.for_each(|one| one.source.clear());
    }
    Ok(code)
}

fn run(cubin: &[u8], symbols: &[u32], words: &[&str], options: DisasmOptions) -> Result<String> {
    let numbers: Vec<_> = symbols.iter().map(|index| format!("{index:#x}")).collect();
    let numbers = numbers.join(",");
    let mut all = vec!["-c"];
    if options.lines || options.live {
        all.extend(words);
    }
    if !symbols.is_empty() && symbols.len() <= NAMED {
        all.extend(["-fun", &numbers]);
    }
    nvdisasm(cubin, &all)
}

/// What nvdisasm prints of a cubin, or of code, with these options.
///
/// # Errors
/// If nvdisasm is not installed, or refuses.
pub fn nvdisasm(bytes: &[u8], words: &[&str]) -> Result<String> {
    let Some(tool) = find_tool("nvdisasm", "NVDISASM") else {
        bail!(
            "nvdisasm is not installed: it shows machine code of CUDA, and comes with the CUDA toolkit (NVDISASM may name it) and \
             with the Python package nvidia-cuda-nvdisasm"
        );
    };
    let mut file = tempfile::NamedTempFile::new().context("a temporary file")?;
    file.write_all(bytes).context("a temporary file")?;
    let mut command = Command::new(&tool);
    let output = command.args(words).arg(file.path()).stdin(Stdio::null()).output();
    let output = output.with_context(|| tool.display().to_string())?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("nvdisasm: {}", Printable::from(text.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
