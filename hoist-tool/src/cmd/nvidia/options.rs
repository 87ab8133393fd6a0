//! Options of cuobjdump.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use fatbin::{EntryKind, Sm};

/// What is dumped of each file of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dump {
    Elf,
    Symbols,
    Resources,
    Sass,
    Ptx,
}

/// What is asked for.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) files: Vec<PathBuf>,
    pub(super) all: bool,
    pub(super) sorted: bool,
    pub(super) list_elf: bool,
    pub(super) list_ptx: bool,
    pub(super) extract_elf: Vec<String>,
    pub(super) extract_ptx: Vec<String>,
    pub(super) dumps: Vec<Dump>,
    pub(super) functions: Vec<String>,
    arch: Vec<Sm>,
}

/// Long and short names, what becomes of each, and what it is for.
const OPTIONS: [(&str, &str, Choice, &str); 12] = [
    ("--all-fatbin", "-all", Choice::All, "what is to be linked, too"),
    ("--sort-functions", "-sort", Choice::Sort, "functions of -sass by name"),
    ("--list-elf", "-lelf", Choice::ListElf, "names of cubins"),
    ("--list-ptx", "-lptx", Choice::ListPtx, "names of PTX"),
    ("--extract-elf", "-xelf", Choice::ExtractElf, "<part>,... or all: writes cubins to files"),
    ("--extract-ptx", "-xptx", Choice::ExtractPtx, "<part>,... or all: writes PTX to files"),
    ("--dump-elf", "-elf", Choice::Dump(Dump::Elf), "what cubins hold"),
    ("--dump-elf-symbols", "-symbols", Choice::Dump(Dump::Symbols), "symbols of cubins"),
    ("--dump-resource-usage", "-res-usage", Choice::Dump(Dump::Resources), "registers, memory"),
    ("--dump-sass", "-sass", Choice::Dump(Dump::Sass), "machine code, through nvdisasm"),
    ("--dump-ptx", "-ptx", Choice::Dump(Dump::Ptx), "PTX"),
    ("--function", "-fun", Choice::Functions, "<name>,...: these functions alone"),
];

/// The release of NVIDIA's tools whose options and output these are.
const RELEASE: [&str; 2] = ["13.5", "13.5.37"];

/// The options that both tools have besides.
const COMMON: [(&str, &str, &str); 3] = [
    ("--gpu-architecture", "-arch", "<arch>: code for this one"),
    ("--help", "-h", "this text"),
    ("--version", "-V", "the release of CUDA that it answers like"),
];

/// What is printed for `--version` and `--help`; nothing if neither is asked for.
pub(super) fn told(tool: &str, words: &[String], own: &[(&str, &str, &str)]) -> Option<String> {
    let asks = |names: [&str; 2]| words.iter().any(|word| names.contains(&word.as_str()));
    if asks(["--version", "-V"]) {
        let [release, version] = RELEASE;
        let hoist = env!("CARGO_PKG_VERSION");
        return Some(format!(
            "{tool}: hoist {hoist}, with options and output of NVIDIA's\n\
             Cuda compilation tools, release {release}, V{version}\n"
        ));
    }
    if !asks(["--help", "-h"]) {
        return None;
    }
    let mut text = format!("Usage  : {tool} [options] <file>\n\nOptions\n=======\n\n");
    for (long, short, what) in own.iter().chain(&COMMON) {
        text.push_str(&format!("{long:<24} ({short:<11}  {what}\n", short = format!("{short})")));
    }
    Some(text)
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    All,
    Sort,
    ListElf,
    ListPtx,
    ExtractElf,
    ExtractPtx,
    Dump(Dump),
    Functions,
}

/// The words of an option with a value: `-arch sm_90` and `-arch=sm_90`.
pub(super) fn value<'w>(
    inline: Option<&'w str>,
    rest: &mut impl Iterator<Item = &'w String>,
    name: &str,
) -> Result<&'w str> {
    inline.or_else(|| rest.next().map(String::as_str)).with_context(|| format!("{name}: no value"))
}

impl Request {
    /// What is printed instead of an answer, for `--help` and `--version`.
    pub(super) fn told(words: &[String]) -> Option<String> {
        let own: Vec<_> =
            OPTIONS.iter().map(|(long, short, _, what)| (*long, *short, *what)).collect();
        told("cuobjdump", words, &own)
    }

    pub(super) fn parse(words: &[String]) -> Result<Self> {
        let mut request = Self::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if !word.starts_with('-') || word == "-" {
                request.files.push(word.into());
                continue;
            }
            let (name, inline) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word.as_str(), None),
            };
            if name == "-arch" || name == "--gpu-architecture" {
                let text = value(inline, &mut rest, name)?;
                let sm = text.parse().map_err(|error| anyhow::anyhow!("{name} {text}: {error}"))?;
                request.arch.push(sm);
                continue;
            }
            let found = OPTIONS.iter().find(|(long, short, ..)| *long == name || *short == name);
            let Some((_, _, option, _)) = found else { return refused("cuobjdump", name) };
            let mut names = || -> Result<Vec<String>> {
                Ok(value(inline, &mut rest, name)?.split(',').map(str::to_owned).collect())
            };
            match option {
                Choice::All => request.all = true,
                Choice::Sort => request.sorted = true,
                Choice::ListElf => request.list_elf = true,
                Choice::ListPtx => request.list_ptx = true,
                Choice::ExtractElf => request.extract_elf.extend(names()?),
                Choice::ExtractPtx => request.extract_ptx.extend(names()?),
                Choice::Dump(dump) => request.dumps.push(*dump),
                Choice::Functions => request.functions.extend(names()?),
            }
        }
        request.dumps.sort_unstable();
        request.dumps.dedup();
        let asks = request.is_list() || request.is_extraction() || !request.dumps.is_empty();
        if request.files.is_empty() {
            bail!("cuobjdump: no input file");
        }
        if !asks {
            // as cuobjdump, which tells then what entries there are
            request.dumps = Vec::new();
        }
        Ok(request)
    }

    pub(super) const fn is_list(&self) -> bool {
        self.list_elf || self.list_ptx
    }

    pub(super) const fn is_extraction(&self) -> bool {
        !self.extract_elf.is_empty() || !self.extract_ptx.is_empty()
    }

    /// Whether code for this architecture is meant: by number alone, whatever the suffixes, as cuobjdump has it.
    pub(super) fn wants(&self, sm: Sm) -> bool {
        self.arch.is_empty() || self.arch.iter().any(|arch| arch.number == sm.number)
    }

    /// Whether the function is one of those that are named, or none is.
    pub(super) fn wants_function(&self, name: &str) -> bool {
        self.functions.is_empty() || self.functions.iter().any(|one| one == name)
    }

    pub(super) fn dumps_functions(&self) -> bool {
        self.dumps.iter().any(|dump| matches!(dump, Dump::Sass | Dump::Resources))
    }

    /// Whether the code of entries of this kind is looked at, not only their headers.
    pub(super) fn needs_bytes(&self, kind: EntryKind) -> bool {
        if self.is_list() {
            return false;
        }
        match kind {
            EntryKind::Ptx => !self.extract_ptx.is_empty() || self.dumps.contains(&Dump::Ptx),
            _ => !self.extract_elf.is_empty() || self.dumps.iter().any(|dump| *dump != Dump::Ptx),
        }
    }
}

/// Refuses an option by its name.
pub(super) fn refused<T>(tool: &str, word: &str) -> Result<T> {
    bail!("{tool}: option {word} is not taken")
}
