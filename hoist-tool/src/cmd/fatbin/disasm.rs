//! `hoist fatbin disasm PATH... --kernel NAME`: machine code of kernels, wherever they are, and of nothing else.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io::Write;

use anyhow::{Error, Result, anyhow, ensure};
use fatbin::{EntryKind, Sm};
use nvinfo::{Cubin, Function};
use serde::Serialize;

use super::cubins::{Image, ImagePlace, images};
use super::filter::{Code as Meant, Where};
use super::kernels::is_cubin;
use super::ptx::KernelSources;
use crate::faults::{Faults, in_words};
use crate::json::JsonArguments;
use crate::kernel_filter::{KernelFilter, KernelOrder};
use crate::kernel_name::{KernelName, Text};
use crate::paint;
use crate::pattern::Pattern;
use crate::sass::{Block, Code, DisasmOptions, blocks, disassemble, dot, outline, svg};
use crate::sources::{Order, Roots, Source, Sources};
use crate::table::line;

/// Shows machine code of kernels through nvdisasm, which the CUDA toolkit and the Python package nvidia-cuda-nvdisasm have.
///
/// It is looked for in the environment's NVDISASM, PATH, CUDA_HOME/bin, CUDA_PATH/bin and the packages of Python.
#[derive(Debug, clap::Args)]
pub struct Disasm {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    filter: KernelFilter,
    #[command(flatten)]
    code: Meant,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    view: View,
}

/// How code is shown.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct View {
    /// Shows the control flow graph: as `text`, as `dot` for graphviz, or as `svg`.
    #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "text", require_equals = true, conflicts_with_all = ["json", "json_lines"])]
    cfg: Option<Graph>,
    /// Shows how many registers are live at each instruction.
    #[arg(long)]
    live: bool,
    /// Shows lines of the source, from debug information.
    #[arg(long)]
    lines: bool,
    /// Shows the PTX of each kernel beside, if the file has it.
    #[arg(long, conflicts_with = "cfg")]
    ptx: bool,
    #[command(flatten)]
    json: JsonArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Graph {
    /// For a terminal.
    Text,
    /// For graphviz.
    Dot,
    /// For a browser.
    Svg,
}

/// The code of a function somewhere.
#[derive(Debug, Serialize)]
struct Shown {
    file: Text,
    member: Option<Text>,
    #[serde(flatten)]
    place: ImagePlace,
    demangled: Option<Text>,
    #[serde(flatten)]
    code: Code,
    blocks: Vec<Block>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ptx: Option<String>,
    #[serde(skip)]
    is_alone: bool,
    /// By which the functions of several cubins are put in order.
    #[serde(skip)]
    registers: Option<u32>,
    #[serde(skip)]
    sm: Sm,
}

impl Shown {
    fn readable(&self, raw: bool) -> &str {
        self.demangled.as_deref().filter(|_| !raw).unwrap_or(&self.code.name)
    }
}

impl Disasm {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged, none has such a kernel, or nvdisasm is not installed.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let Self { sources, filter, code, place, view } = self;
        view.show((sources, code, place), &filter.kernel, filter, out)
    }
}

/// The functions of a cubin that the patterns mean; all if there is none.
fn meant<'a>(cubin: &Cubin<'a>, wanted: &[Pattern]) -> Vec<Function<'a>> {
    let is_meant = |function: &Function<'_>| {
        !function.is_subroutine()
            && (wanted.is_empty() || Pattern::any(wanted, &function.name().to_string()))
    };
    cubin.functions().filter(is_meant).collect()
}

/// Region, entry and part of an image.
type At = (usize, usize, Option<usize>);

const fn at(place: &ImagePlace) -> At {
    (place.region, place.entry, place.part)
}

/// Where cubins of a file are that have none of its first `limit` functions.
fn without_first(
    (source, place): (&Source, &Where),
    wants: impl Fn(&Image) -> bool,
    wanted: &[Pattern],
    limit: usize,
) -> HashSet<At> {
    let count = |image: &Image, bytes: &[u8]| {
        let functions = Cubin::parse(bytes).map(|cubin| meant(&cubin, wanted).len());
        (at(&image.place), functions)
    };
    let mut found = 0usize;
    let mut left_out = HashSet::new();
    // what is damaged is an error when it is looked at
    for (at, count) in images(&source.file, place.search(), wants, count).into_iter().flatten() {
        if found >= limit || count.as_ref().is_ok_and(|count| *count == 0) {
            left_out.insert(at);
        }
        found = found.saturating_add(count.unwrap_or(0));
    }
    left_out
}

impl View {
    /// Prints the functions that the patterns mean; all if there is none.
    ///
    /// # Errors
    /// As [`Disasm::run`].
    pub fn show(
        self,
        (sources, meant, place): (&Sources, &Meant, &Where),
        wanted: &[Pattern],
        filter: &KernelFilter,
        out: &mut dyn Write,
    ) -> Result<()> {
        let look = |source: Source| {
            let (mut shown, mut errors) = (Vec::new(), Vec::new());
            let label = Text::from(&*source.label);
            // of what is not shown nothing is disassembled
            let cubins = |image: &Image| is_cubin(image) && meant.wants_image(image);
            let left_out = match (filter.limit, filter.sort) {
                (Some(limit), None) => without_first((&source, place), cubins, wanted, limit),
                _ => HashSet::new(),
            };
            let wants = |image: &Image| cubins(image) && !left_out.contains(&at(&image.place));
            let all = images(&source.file, place.search(), wants, |image, bytes| {
                self.of_cubin(&label, image, bytes, wanted, filter)
            });
            for one in all {
                match one.and_then(|shown| shown) {
                    Ok(found) => shown.extend(found),
                    Err(error) => errors.push(error.context(source.label.clone())),
                }
            }
            if self.ptx && !shown.is_empty() {
                match KernelSources::of(&source) {
                    Ok(sources) => {
                        for one in &mut shown {
                            one.ptx = sources.find(&one.code.name, one.sm).map(str::to_owned);
                        }
                    }
                    Err(error) => errors.push(error),
                }
            }
            (shown, errors)
        };
        ensure!(
            meant.has_kind(EntryKind::Elf),
            "machine code is of kind elf; `hoist fatbin ptx` shows PTX"
        );
        let mut faults = Faults::default();
        let mut roots = Roots::default();
        let (mut count, mut pictures) = (0, Vec::new());
        if self.json.is_on() {
            write!(out, "{{\"functions\":[")?;
        }
        sources.each(Order::OneByOne, look, |root, found: Result<(Vec<Shown>, Vec<Error>)>| {
            let (mut shown, errors) = match found {
                Ok(found) => found,
                Err(error) => {
                    roots.failed(root);
                    faults.push(error);
                    return Ok(());
                }
            };
            roots.has(root, !shown.is_empty() || !errors.is_empty());
            errors.into_iter().for_each(|error| faults.push(error));
            match filter.sort {
                None => {}
                Some(KernelOrder::Size) => {
                    shown.sort_by_key(|one| Reverse(one.code.instructions.len()))
                }
                Some(KernelOrder::Registers) => shown.sort_by_key(|one| Reverse(one.registers)),
                Some(KernelOrder::Name) => {
                    shown.sort_by(|one, other| {
                        one.readable(filter.raw).cmp(other.readable(filter.raw))
                    });
                }
            }
            shown.truncate(filter.limit.unwrap_or(usize::MAX).saturating_sub(count));
            for one in shown {
                count += 1;
                if self.cfg == Some(Graph::Svg) {
                    pictures.push((one.code, one.blocks));
                    continue;
                }
                let between: &[u8] = match (count, self.json.is_on()) {
                    (1, _) => b"",
                    (_, true) => b",",
                    _ => b"\n",
                };
                out.write_all(between)?;
                self.print(&one, filter.raw, out)?;
            }
            Ok(())
        })?;
        if self.json.is_on() {
            writeln!(out, "]}}")?;
        }
        if !pictures.is_empty() {
            out.write_all(svg(&pictures).as_bytes())?;
        }
        let what = match wanted.first() {
            Some(pattern) => format!("no function {pattern}"),
            None => "no machine code of CUDA".to_owned(),
        };
        if count == 0 && faults.is_empty() {
            roots.empty(&sources.paths, &what, &mut faults);
        }
        faults.result()
    }

    fn of_cubin(
        self,
        file: &Text,
        image: &Image,
        bytes: &[u8],
        wanted: &[Pattern],
        filter: &KernelFilter,
    ) -> Result<Vec<Shown>> {
        let cubin = Cubin::parse(bytes)?;
        let functions = filter.choose(meant(&cubin, wanted))?;
        if functions.is_empty() {
            return Ok(Vec::new());
        }
        let symbols: Vec<_> = functions.iter().map(Function::index).collect();
        let is_all = wanted.is_empty() && filter.limit.is_none();
        let asked: &[u32] = if is_all { &[] } else { &symbols };
        let options = DisasmOptions { live: self.live, lines: self.lines };
        let code = disassemble(bytes, asked, options)
            .map_err(|error| anyhow!("{}: {}", image.place, in_words(&error)))?;
        let by_name: HashMap<_, _> =
            functions.iter().map(|one| (one.name().to_string(), one)).collect();
        let mut shown = Vec::new();
        for code in code {
            let Some(function) = by_name.get(&code.name) else { continue };
            shown.push(Shown {
                file: file.clone(),
                member: image.member.clone(),
                place: image.place.clone(),
                demangled: KernelName::known(&code.name).demangled,
                blocks: blocks(&code),
                ptx: None,
                code,
                is_alone: image.is_alone,
                sm: image.sm,
                registers: match filter.sort {
                    Some(KernelOrder::Registers) => function.resources()?.registers,
                    _ => None,
                },
            });
        }
        Ok(shown)
    }

    fn print(self, shown: &Shown, raw: bool, out: &mut dyn Write) -> Result<()> {
        if self.json.is_on() {
            return Ok(crate::json::write(out, shown)?);
        }
        let graph = match self.cfg {
            Some(Graph::Dot) => dot(&shown.code, &shown.blocks),
            _ => {
                paint::title(out, format_args!("{}", line(shown.readable(raw), "")))?;
                let member = shown.member.as_ref().map(|name| format!("({name})"));
                let file = format!("{}{}", shown.file, member.unwrap_or_default());
                let place = match shown.is_alone {
                    true => format!(" {}", shown.place.arch),
                    false => format!(" {}", shown.place),
                };
                writeln!(out, "  {}", line(&file, &format!("{place}  ")).trim_end())?;
                match self.cfg {
                    Some(_) => outline(&shown.code, &shown.blocks),
                    None => {
                        self.listing(&shown.code, out)?;
                        return match &shown.ptx {
                            Some(text) => Ok(writeln!(out, "\n{text}")?),
                            None if self.ptx => Ok(writeln!(out, "\n// no PTX in this file")?),
                            None => Ok(()),
                        };
                    }
                }
            }
        };
        Ok(out.write_all(graph.as_bytes())?)
    }

    fn listing(self, code: &Code, out: &mut dyn Write) -> Result<()> {
        let kinds: std::collections::BTreeSet<_> =
            code.instructions.iter().flat_map(|one| one.live.keys()).collect();
        if self.live {
            let names: Vec<_> = kinds.iter().map(|kind| format!("{kind:>5}")).collect();
            writeln!(out, "{}", names.join(" "))?;
        }
        let mut last = Vec::new();
        for one in &code.instructions {
            for label in &one.labels {
                writeln!(out, "{label}:")?;
            }
            if !one.source.is_empty() && one.source != last {
                let places = one.source.iter().map(|at| format!("{}:{}", at.file, at.line));
                writeln!(out, "  // {}", places.collect::<Vec<_>>().join(", in "))?;
                last.clone_from(&one.source);
            }
            let live = kinds.iter().map(|kind| match one.live.get(*kind) {
                Some(count) => format!("{count:>5}"),
                None => "     ".to_owned(),
            });
            let live: Vec<_> = live.collect();
            writeln!(out, "{}  {:04x}  {}", live.join(" "), one.offset, one.text)?;
        }
        Ok(())
    }
}
