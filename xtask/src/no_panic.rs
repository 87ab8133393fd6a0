//! `no-panic`: no entry point of the lower crates can reach the panic handler, none allocates, and this is their stack.
//!
//! Every public function becomes a root of one bare image (see [`api`]), compiled with overflow checks. The panic handler refers
//! to a symbol that nobody defines: if it is reachable, the image does not link. Then it is linked with the symbol defined, and
//! the ways to it are told, with lines of the source.
//!
//! It is a property of the optimised image: without optimisation the library's own checks remain. It says nothing of loops
//! that do not end, nor of what a caller supplies.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::api::{self, ByHand, Root};
use crate::bare::{self, Toolchain, Wrapper};
use crate::image::Image;
use crate::layers::is_lower;
use crate::packages::packages;
use crate::task::Run;
use crate::tool::{self, Tool, output};
use crate::workspace::Workspace;

/// Arguments of `no-panic`.
#[derive(clap::Args)]
pub(crate) struct NoPanic {
    /// The machine of the image
    #[arg(long, default_value = "x86_64-unknown-none")]
    target: String,
    /// Show the stack of every entry point, not only of the deepest
    #[arg(long)]
    stack: bool,
}

/// Symbols that the roots need and that a caller would bring.
pub(crate) const GIVEN: &str = "outside";
/// The symbol that nobody defines.
pub(crate) const PANIC: &str = "a_panic_is_reachable";
/// What an allocating program refers to.
const ALLOCATOR: &[&str] = &["__rust_alloc", "__rust_realloc", "__rust_dealloc", "__rdl_alloc"];
/// Entry points told by default.
const SHOWN: usize = 12;

const SYMBOLIZER: Tool<'_> = Tool::new("llvm-symbolizer-19", "llvm-19");

impl Run for NoPanic {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let crates = crates(workspace)?;
        let crates: Vec<&str> = crates.iter().map(String::as_str).collect();
        let home = workspace.root().join("xtask").join("no-panic");
        let by_hand: ByHand = crate::manifest::read(&home.join("by-hand.toml"))?;
        let roots = api::roots(workspace, &crates, &by_hand)?;
        let image = prove(workspace, "no-panic", &self.target, &crates, &roots)?;
        let functions = image.nodes.iter().filter(|node| node.code).count();
        println!(
            "{}: {} calls of {} public functions in {} crates reach no panic and no allocator; {functions} functions in the image",
            self.target,
            roots.len(),
            paths(&roots),
            crates.len()
        );
        for exempt in &by_hand.exempt {
            println!("left out: {exempt}");
        }
        self.tell_stack(&image, &roots);
        Ok(())
    }
}

impl NoPanic {
    fn tell_stack(&self, image: &Image, roots: &[Root]) {
        let mut rows: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
        for (number, root) in roots.iter().enumerate() {
            let Some(at) = image.named(&symbol(number)) else { continue };
            let stack = image.stack(at);
            let mark = match (stack.recursive, stack.partial) {
                (true, _) => " and more: recursive",
                (false, true) => " *",
                (false, false) => "",
            };
            let row = rows.entry(&root.path).or_default();
            *row = (*row).max((stack.bytes, mark));
        }
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_by_key(|(path, (bytes, _))| (std::cmp::Reverse(*bytes), *path));
        println!(
            "stack in bytes by the compiler's own figures, callees and the call itself included, what the caller supplies left out:"
        );
        let count = if self.stack { rows.len() } else { SHOWN };
        for (path, (bytes, mark)) in rows.iter().take(count) {
            println!("{bytes:>8}  {path}{mark}");
        }
        let unknown: BTreeSet<&str> = image.without_frame().collect();
        if !unknown.is_empty() {
            let first: Vec<&str> = unknown.iter().copied().take(4).collect();
            let (count, first) = (unknown.len(), first.join(", "));
            println!(
                "       *  and functions of the compiler's library, {count} of unknown frame: {first}, .."
            );
        }
        if rows.len() > count {
            println!(
                "          and {} entry points with less; all of them: --stack",
                rows.len() - count
            );
        }
    }
}

/// The crates whose entry points are examined: the lower ones. The list of architectures has no code of its own.
pub(crate) fn crates(workspace: &Workspace) -> Result<Vec<String>> {
    let names = packages(workspace)?.into_iter().map(|package| package.name);
    Ok(names.filter(|name| is_lower(name) && name != "archs").collect())
}

/// Builds an image of `roots` and returns it.
///
/// # Errors
/// If a panic or an allocator can be reached: from where.
pub(crate) fn prove(
    workspace: &Workspace,
    name: &str,
    target: &str,
    crates: &[&str],
    roots: &[Root],
) -> Result<Image> {
    tool::need([bare::LLD])?;
    let toolchain = Toolchain::of(target)?;
    let harness = workspace.root().join("xtask").join("no-panic");
    let read = |file: &str| -> Result<String> {
        let path = harness.join(file);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let wrapper = Wrapper {
        name,
        crates,
        features: None,
        sources: &[("lib.rs", library(crates, roots)), ("harness.rs", read("harness.rs")?)],
        profile: "opt-level = 3\noverflow-checks = true\ndebug = \"line-tables-only\"",
        flags: "-Z emit-stack-sizes",
    };
    let library = wrapper.build(workspace, &toolchain, target)?;
    let symbols: Vec<String> = (0..roots.len()).map(symbol).collect();
    let folder = workspace.scratch(&format!("{name}-image"))?;
    let image = folder.join("image");
    let linked = bare::link(&library, &symbols, &BTreeMap::from([(GIVEN, 0)]), &image);
    let Err(error) = linked else {
        let image = Image::read(&image)?;
        let found: Vec<&str> = ALLOCATOR.iter().flat_map(|part| image.symbols_with(part)).collect();
        if !found.is_empty() {
            bail!("the image allocates: {}", found.join(", "));
        }
        return Ok(image);
    };
    if !format!("{error:#}").contains(PANIC) {
        return Err(error);
    }
    let defined = BTreeMap::from([(GIVEN, 0), (PANIC, 0)]);
    bare::link(&library, &symbols, &defined, &image)?;
    bail!("{}", culprits(&image, roots)?)
}

/// The root with this number in the image.
pub(crate) fn symbol(number: usize) -> String {
    format!("root_{number}")
}

fn paths(roots: &[Root]) -> usize {
    roots.iter().map(|root| &root.path).collect::<BTreeSet<_>>().len()
}

/// The source of the wrapper.
pub(crate) fn library(crates: &[&str], roots: &[Root]) -> String {
    let mut text = String::from(
        "#![no_std]\n#![allow(unused_imports)]\nmod harness;\nuse bitflags::Flags;\nuse core::fmt::{self, *};\nuse core::hash::Hash;\nuse core::ops::*;\n\
         use core::str::FromStr;\nuse harness::{Outside, seen, walk};\n",
    );
    if crates.contains(&"elf-core") {
        text += include_str!("../no-panic/unknown.rs");
    }
    for (number, root) in roots.iter().enumerate() {
        let _ = writeln!(text, "root!({}, {}); // {}", symbol(number), root.call, root.path);
    }
    text
}

/// Who reaches the panic handler, and where.
fn culprits(path: &Path, roots: &[Root]) -> Result<String> {
    let image = Image::read(path)?;
    let goal = image.nodes.iter().position(|node| node.name.contains("rust_begin_unwind"));
    let goal = goal.or_else(|| {
        image.nodes.iter().position(|node| node.name.ends_with("::panic") || node.name == "panic")
    });
    let goal = goal.context("the image has no panic handler and yet refers to one")?;
    let ways = image.ways_to(goal);
    // The last function of a way that does not belong to the library is the one to mend.
    let mut found: BTreeMap<(String, Vec<String>), Vec<&str>> = BTreeMap::new();
    for (number, root) in roots.iter().enumerate() {
        let Some(mut at) = image.named(&symbol(number)) else { continue };
        let mut last: Option<(String, u64)> = None;
        while let Some((next, place)) = ways.get(&at) {
            let name = |at: usize| image.nodes.get(at).map_or("", |node| node.name.as_str());
            if last.is_none() || !is_library(name(at)) {
                last = Some((name(*next).to_owned(), *place));
            }
            at = *next;
        }
        if let Some((what, place)) = last {
            found.entry((what, lines(path, place))).or_default().push(&root.path);
        }
    }
    let mut text = String::from("a panic is reachable:");
    for ((what, lines), mut from) in found {
        from.sort_unstable();
        from.dedup();
        let _ = write!(text, "\n{what}");
        for line in lines {
            let _ = write!(text, "\n    {line}");
        }
        let _ = write!(
            text,
            "\n    from {}",
            from.iter().take(3).copied().collect::<Vec<_>>().join(", ")
        );
        if from.len() > 3 {
            let _ = write!(text, " and {} more", from.len() - 3);
        }
    }
    Ok(text)
}

/// Whether a function is the library's own, not an instance of ours.
fn is_library(name: &str) -> bool {
    name.trim_start_matches('<').starts_with("core::")
        && !name.contains("elf_")
        && !name.contains("reloc_")
}

/// The lines of the source that `place` comes from, innermost first; none without a symbolizer.
fn lines(image: &Path, place: u64) -> Vec<String> {
    let symbolized = output(
        Command::new(SYMBOLIZER.program)
            .arg("--obj")
            .arg(image)
            .args(["--inlines", "--demangle", "--output-style=LLVM"])
            .arg(format!("{place:#x}")),
    );
    let Ok(symbolized) = symbolized else {
        return vec![format!(
            "at {place:#x}; {} of package {} tells the line",
            SYMBOLIZER.program, SYMBOLIZER.package
        )];
    };
    let text = String::from_utf8_lossy(&symbolized.stdout).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    // What the harness adds is nobody's fault.
    let frames = lines.chunks(2).filter_map(|frame| {
        let [function, at] = frame else { return None };
        let name = function.split('<').next().filter(|name| !name.is_empty()).unwrap_or(function);
        Some(format!("{}: {name}", short(at)))
    });
    frames
        .filter(|frame| !frame.contains("harness.rs") && !frame.contains("ops/function.rs"))
        .take(5)
        .collect()
}

/// The last three parts of a path.
fn short(path: &str) -> String {
    let parts: PathBuf =
        path.split('/').rev().take(3).collect::<Vec<_>>().into_iter().rev().collect();
    parts.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(calls: &[&str]) -> Vec<Root> {
        calls
            .iter()
            .map(|call| Root { path: (*call).to_owned(), call: (*call).to_owned() })
            .collect()
    }

    /// The proof itself on trial: what may panic is found and named, what may not is not.
    #[test]
    fn a_planted_index_is_found_and_named() {
        const TARGET: &str = "x86_64-unknown-none";
        let workspace = Workspace::find().unwrap();
        if let Err(error) = Toolchain::of(TARGET).and_then(|_| tool::need([bare::LLD, SYMBOLIZER]))
        {
            println!("skipped: a_planted_index_is_found_and_named: {error:#}");
            return;
        }
        let good = [
            "|s: &'static [u8], i: usize| s.get(i).copied()",
            "|a: u32, b: u32| a.wrapping_add(b)",
        ];
        let image = prove(&workspace, "no-panic-test", TARGET, &[], &roots(&good)).unwrap();
        assert!(image.named("root_0").is_some() && image.named("root_1").is_some());

        for (bad, what) in [
            ("|s: &'static [u8], i: usize| s[i]", "panic_bounds_check"),
            ("|a: u32, b: u32| a + b", "panic_const_add_overflow"),
            ("|o: Option<u32>| o.unwrap()", "unwrap_failed"),
        ] {
            let error = prove(&workspace, "no-panic-test", TARGET, &[], &roots(&[good[0], bad]))
                .err()
                .unwrap()
                .to_string();
            assert!(error.contains(what), "{error}");
            assert!(error.contains(&format!("from {bad}")), "{error}");
            assert!(error.contains("src/lib.rs:"), "{error}");
            assert!(!error.contains(good[0]), "{error}");
        }
    }
}
