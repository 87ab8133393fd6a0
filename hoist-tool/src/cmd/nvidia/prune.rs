//! Options of nvprune.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use super::options::{refused, told, value};
use crate::cmd::fatbin::keep::{Keep, keep};
use crate::cmd::fatbin::prune::Prune;

/// Answers as nvprune does: `-arch sm_90 -o OUT FILE`, `-gencode arch=compute_90,code=[sm_90,compute_90]`.
#[derive(Debug, clap::Args)]
pub struct Nvprune {
    /// Options and the file of nvprune.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    words: Vec<String>,
}

/// Long and short names of its options, and what each is for.
const OPTIONS: [(&str, &str, &str); 3] = [
    ("--generate-code", "-gencode", "arch=<arch>,code=[<code>,...]: what is kept"),
    ("--gpu-code", "-code", "<code>,...: what is kept"),
    ("--output-file", "-o", "<file>: where to"),
];

impl Nvprune {
    /// Writes the file; prints nothing, as nvprune does, but for `--help` and `--version`.
    ///
    /// # Errors
    /// If an option is not taken, nothing would be left, or the file cannot be changed.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        if let Some(text) = told("nvprune", &self.words, &OPTIONS) {
            return Ok(out.write_all(text.as_bytes())?);
        }
        let (mut file, mut output) = (None, None);
        let mut kept: Vec<Keep> = Vec::new();
        let mut rest = self.words.iter();
        let word = |text: &str| keep(text).map_err(|error| anyhow::anyhow!("{text}: {error}"));
        while let Some(next) = rest.next() {
            if !next.starts_with('-') {
                if file.replace(PathBuf::from(next)).is_some() {
                    bail!("nvprune: takes one file");
                }
                continue;
            }
            let (name, inline) = match next.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (next.as_str(), None),
            };
            match name {
                "-arch" | "--gpu-architecture" => {
                    kept.push(word(value(inline, &mut rest, name)?)?);
                }
                "-gencode" | "--generate-code" => {
                    let text = value(inline, &mut rest, name)?;
                    let (_, codes) = text.split_once("code=").context("-gencode without code=")?;
                    let codes = codes.trim_matches(['"', '\'', '[', ']']).split(',');
                    kept.extend(codes.map(word).collect::<Result<Vec<_>>>()?);
                }
                "-code" | "--gpu-code" => {
                    let codes = value(inline, &mut rest, name)?.split(',');
                    kept.extend(codes.map(word).collect::<Result<Vec<_>>>()?);
                }
                "-o" | "--output-file" => {
                    output = Some(PathBuf::from(value(inline, &mut rest, name)?));
                }
                name => return refused("nvprune", name),
            }
        }
        let file = file.context("nvprune: no input file")?;
        let output = output.context("nvprune: -o names no file")?;
        if kept.is_empty() {
            bail!("nvprune: -arch or -gencode says what is to be kept");
        }
        Prune::new(file, output, kept).run(&mut std::io::sink())
    }
}
