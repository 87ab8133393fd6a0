//! Machine code as cuobjdump prints it, through nvdisasm.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anyhow::Result;
use fatbin::Sm;
use nvinfo::{Cubin, HeaderForm, Target, TargetSuffix, TextureMode};

use super::options::Request;
use crate::sass::{Code, DisasmOptions, Instruction, disassemble};

/// `-sass`.
pub(super) fn sass(
    bytes: &[u8],
    sm: Sm,
    request: &Request,
    seen: &mut BTreeSet<String>,
    out: &mut dyn Write,
) -> Result<()> {
    let cubin = Cubin::parse(bytes)?;
    let functions: Vec<_> = cubin
        .functions()
        .filter(|one| !one.is_subroutine() && request.wants_function(&one.name().to_string()))
        .collect();
    let suffix = if sm.suffix == fatbin::Suffix::Specific { "a" } else { "" };
    writeln!(out, "\n\tcode for sm_{}{suffix}", sm.number)?;
    let target = cubin.target();
    // of files in the older form only flags
    if request.functions.is_empty() && target.form != HeaderForm::V7 {
        writeln!(out, "\t.target\tsm_{}{suffix}\n", sm.number)?;
    }
    if functions.is_empty() {
        return Ok(());
    }
    let symbols: Vec<_> = functions.iter().map(nvinfo::Function::index).collect();
    let asked: &[u32] = if request.functions.is_empty() { &[] } else { &symbols };
    let options = DisasmOptions { padding: true, ..DisasmOptions::default() };
    let mut all = disassemble(bytes, asked, options)?;
    if request.sorted {
        all.sort_by(|one, other| one.name.cmp(&other.name));
    }
    let contents: BTreeMap<_, _> =
        functions.iter().map(|one| (one.name().to_string(), *one)).collect();
    let mut symbols: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for one in cubin.functions() {
        let symbol = (one.name().to_string(), one.symbol().value);
        symbols.entry(one.section()).or_default().push(symbol);
    }
    let shown = all.iter().filter_map(|code| {
        let function = *contents.get(&code.name)?;
        let symbols = symbols.get(&function.section()).map_or(&[][..], Vec::as_slice);
        Some((code, function, texts(code, symbols)))
    });
    let shown: Vec<_> = shown.collect();
    // offsets may be longer than the others, too
    let lengths = shown.iter().flat_map(|(code, _, texts)| {
        let lines = code.instructions.iter().zip(texts);
        lines.map(|(one, text)| start(one).len().saturating_add(length(text)))
    });
    let most = lengths.max().unwrap_or(0);
    for (code, function, texts) in &shown {
        if request.functions.contains(&code.name) {
            seen.insert(code.name.clone());
        }
        writeln!(out, "\t\tFunction : {}\n\t.headerflags\t@\"{}\"", code.name, flags(target))?;
        print(code, texts, most, function.code()?, out)?;
        writeln!(out, "\t\t..........\n\n")?;
    }
    Ok(())
}

/// What the file header says, in the words of its flags.
fn flags(target: &Target) -> String {
    let is_older = target.form == HeaderForm::V7;
    let texture = match target.texture_mode {
        TextureMode::Unified => "EF_CUDA_TEXMODE_UNIFIED",
        TextureMode::Independent => "EF_CUDA_TEXMODE_INDEPENDENT",
        TextureMode::NotRecorded => "",
    };
    let address = if target.is_64 { "EF_CUDA_64BIT_ADDRESS" } else { "" };
    let suffix = match target.suffix {
        TargetSuffix::Accelerated => "EF_CUDA_ACCELERATORS",
        _ => "",
    };
    let words = [texture, address].into_iter().filter(|_| is_older).chain([suffix]);
    let numbers = [
        target.sm.map(|sm| format!("EF_CUDA_SM{sm}")),
        target.virtual_sm.map(|sm| format!("EF_CUDA_VIRTUAL_SM(EF_CUDA_SM{sm})")),
    ];
    let words = words.filter(|word| !word.is_empty()).map(str::to_owned);
    words.chain(numbers.into_iter().flatten()).collect::<Vec<_>>().join(" ")
}

/// What a line begins with.
fn start(one: &Instruction) -> String {
    format!("        /*{:04x}*/", one.offset)
}

/// Instructions with their encodings, the offset and the text before these in `most` columns: half of each on a line of its own.
fn print(
    code: &Code,
    texts: &[String],
    most: usize,
    bytes: &[u8],
    out: &mut dyn Write,
) -> Result<()> {
    for (one, text) in code.instructions.iter().zip(texts) {
        let at = usize::try_from(one.offset).unwrap_or(usize::MAX);
        let word = |at: usize| {
            let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk::<8>());
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let offset = start(one);
        let rest = most.saturating_sub(offset.len());
        let (guard, text) = guarded(text);
        let (low, high) = (word(at), word(at.saturating_add(8)));
        writeln!(out, "{offset}{guard:>18} {text:<rest$}  /* {low:#018x} */")?;
        writeln!(out, "{:19}{:<most$}  /* {high:#018x} */", "", "")?;
    }
    Ok(())
}

/// How long an instruction is with its predicate: both count for the width of a column that only one of them stands in.
fn length(text: &str) -> usize {
    match guarded(text) {
        ("", text) => text.len(),
        (guard, text) => guard.len().saturating_add(1).saturating_add(text.len()),
    }
}

/// The predicate of an instruction, which stands before the column of instructions, and the rest.
fn guarded(text: &str) -> (&str, &str) {
    match text.split_once(' ') {
        Some((guard, rest)) if guard.starts_with('@') => (guard, rest.trim_start()),
        _ => ("", text),
    }
}

/// The instructions of a function, with offsets in place of labels and of `symbols` in its section: itself, and its subroutines.
fn texts(code: &Code, symbols: &[(String, u64)]) -> Vec<String> {
    let labels = code
        .instructions
        .iter()
        .flat_map(|one| one.labels.iter().map(|label| (label.as_str(), one.offset)));
    let symbols = symbols.iter().map(|(name, offset)| (name.as_str(), *offset));
    let labels: BTreeMap<_, _> = symbols.chain(labels).collect();
    code.instructions.iter().map(|one| text(one, &labels)).collect()
}

/// An instruction with offsets in place of labels.
fn text(one: &Instruction, labels: &BTreeMap<&str, u64>) -> String {
    // what nvdisasm says of it beside
    let text = one.text.split("(*\"").next().unwrap_or_default().trim_end();
    let mut parts = text.split("`(");
    let mut new = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(')').unwrap_or((part, ""));
        match labels.get(name) {
            Some(offset) => new.push_str(&format!("{offset:#x}{rest}")),
            None => new.push_str(&format!("`({name}){rest}")),
        }
    }
    let is_tight = one.is_tight && !one.text.contains("(*\"");
    new.push_str(if is_tight { ";" } else { " ;" });
    new
}
