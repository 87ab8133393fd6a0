//! Kernels and modules as a person reads them.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io::Write;

use anyhow::Result;

use super::kernel::{Kernel, Occupancy};
use super::module::Module;
use super::shown::Shown;
use crate::paint;
use crate::table::Table;

/// A table of kernels and the module's facts; one kernel alone in detail.
pub(super) fn shown(shown: &Shown, raw: bool, out: &mut dyn Write) -> Result<()> {
    match (&shown.module, shown.kernels.as_slice()) {
        (None, kernels) => kernels.iter().try_for_each(|kernel| detail(kernel, raw, out)),
        (Some(module), kernels) => {
            if !kernels.is_empty() {
                overview(kernels, raw, out)?;
                writeln!(out)?;
            }
            self::module(module, out)
        }
    }
}

fn overview(kernels: &[Kernel], raw: bool, out: &mut dyn Write) -> Result<()> {
    let mut table = Table::new(out);
    table.heading([
        "registers",
        "shared",
        "local",
        "stack",
        "code",
        "parameters",
        "barriers",
        "launch",
        "occupancy",
        "kernel",
    ])?;
    for kernel in kernels {
        // written as they are: there may be a hundred thousand
        let registers = OrDash(kernel.registers);
        let (stack, parameters) = (Stacked(kernel), Parameters(kernel));
        let (launch, occupancy, name) =
            (launch(kernel), Occupied(kernel.occupancy.as_ref()), name(kernel, raw));
        table.row([
            &registers as &dyn Display,
            &kernel.shared,
            &kernel.local,
            &stack,
            &kernel.code_size,
            &parameters,
            &kernel.barriers,
            &launch,
            &occupancy,
            &name,
        ])?;
    }
    table.end()
}

/// The name that is shown.
fn name(kernel: &Kernel, raw: bool) -> &str {
    if raw { &kernel.name } else { kernel.readable() }
}

fn detail(kernel: &Kernel, raw: bool, out: &mut dyn Write) -> Result<()> {
    paint::title(out, format_args!("kernel {}", name(kernel, raw)))?;
    if !raw && kernel.demangled.is_some() {
        writeln!(out, "  mangled {}", kernel.name)?;
    }
    let mut table = Table::new(out);
    let mut row = |name: &str, value: String| table.row([&format!("  {name}"), &value]);
    row("registers", OrDash(kernel.registers).to_string())?;
    let reserved = match kernel.reserved_shared {
        0 => String::new(),
        reserved => format!(" and {reserved} for the system"),
    };
    row("shared memory", format!("{} bytes{reserved}", kernel.shared))?;
    row("local memory", format!("{} bytes", kernel.local))?;
    row("stack", format!("{} (own {})", Stacked(kernel), OrDash(kernel.frame_size)))?;
    row("barriers", kernel.barriers.to_string())?;
    if kernel.virtual_resources != 0 {
        row("virtual resources", kernel.virtual_resources.to_string())?;
    }
    row("parameters", Parameters(kernel).to_string())?;
    row("parameter base", kernel.parameter_base.map_or("-".into(), |base| format!("{base:#x}")))?;
    row("registers at most", OrDash(kernel.max_registers).to_string())?;
    row("launch", launch(kernel).into_owned())?;
    row("occupancy", Occupied(kernel.occupancy.as_ref()).to_string())?;
    row("code", format!("{} bytes", kernel.code_size))?;
    for bank in &kernel.constant_banks {
        let name = format!("constant bank {}", bank.bank);
        row(&name, format!("{} bytes", bank.size))?;
        let contents = bank.contents.as_deref().unwrap_or_default();
        for (line, digits) in (0u64..).zip(contents.as_bytes().chunks(64)) {
            // the kernel's parameters and what stands before them are zeros in the file
            if digits.iter().any(|digit| *digit != b'0') {
                row("", format!("+{:#06x} {}", line * 32, String::from_utf8_lossy(digits)))?;
            }
        }
    }
    for inner in &kernel.subroutines {
        let place = format!("{:#x}, {} bytes", inner.offset, inner.size);
        row("subroutine", format!("{} at {place}", inner.name))?;
    }
    for callee in &kernel.callees {
        row("calls", callee.clone())?;
    }
    table.end()
}

fn module(module: &Module, out: &mut dyn Write) -> Result<()> {
    let mut table = Table::new(out);
    let mut row = |name: &str, value: String| table.row([name, &value]);
    row("architecture", format!("{}, {}", module.architecture, module.stage))?;
    row(
        "compiled from",
        module.virtual_architecture.map_or("-".into(), |sm| format!("compute_{sm}")),
    )?;
    row("toolkit", module.toolkit.clone().unwrap_or_else(|| "-".into()))?;
    let abi = module.abi.map_or("unknown".into(), |abi| abi.to_string());
    row("form", format!("ABI {abi}, addresses of {} bits", module.address_bits))?;
    row("textures", module.texture_mode.unwrap_or("-").to_owned())?;
    if module.other_flags != 0 {
        row("other flags", format!("{:#x}", module.other_flags))?;
    }
    row("kernels", module.kernel_count.to_string())?;
    for function in &module.device_functions {
        row("function", function.clone())?;
    }
    for bank in &module.constant_banks {
        row(&format!("constant bank {}", bank.bank), format!("{} bytes", bank.size))?;
    }
    for variable in &module.variables {
        let managed = if variable.managed { ", managed" } else { "" };
        let space = variable.space.map_or(String::new(), |space| format!(", {space}"));
        row("variable", format!("{}, {} bytes{space}{managed}", variable.name, variable.size))?;
    }
    for name in &module.undefined {
        row("undefined", name.clone())?;
    }
    for tool in &module.tools {
        row("made by", format!("{} {}: {}", tool.name, tool.version, tool.arguments))?;
    }
    table.end()
}

/// A number, or a dash where the file does not say.
struct OrDash(Option<u32>);

impl Display for OrDash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("-"),
        }
    }
}

/// The stack of a kernel.
pub(super) struct Stacked<'k>(pub(super) &'k Kernel);

impl Display for Stacked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.stack, self.0.stack_unbounded) {
            (_, true) => f.write_str("unbounded"),
            (Some(bytes), _) => bytes.fmt(f),
            (None, _) => f.write_str("-"),
        }
    }
}

/// The parameters of a kernel.
struct Parameters<'k>(&'k Kernel);

impl Display for Parameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.parameters.fmt(f)?;
        match self.0.parameter_size {
            Some(size) => write!(f, " ({size} bytes)"),
            None => Ok(()),
        }
    }
}

/// Limits of a launch.
pub(super) fn launch(kernel: &Kernel) -> Cow<'static, str> {
    let dimensions = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    let mut parts = Vec::new();
    parts.extend(kernel.required_threads.map(|threads| format!("= {}", dimensions(threads))));
    parts.extend(kernel.max_threads.map(|threads| format!("<= {}", dimensions(threads))));
    parts.extend(kernel.cluster.map(|blocks| format!("cluster {}", dimensions(blocks))));
    parts.extend(kernel.max_cluster_rank.map(|rank| format!("cluster <= {rank}")));
    parts.extend(kernel.explicit_cluster.then(|| "cluster to be named".to_owned()));
    parts.extend(kernel.blocks_are_clusters.then(|| "grid of clusters".to_owned()));
    if parts.is_empty() { "-".into() } else { parts.join(", ").into() }
}

/// How many blocks an SM runs.
struct Occupied<'k>(Option<&'k Occupancy>);

impl Display for Occupied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(found) = self.0 else { return f.write_str("-") };
        let percent = found.percent();
        let (blocks, threads) = (found.blocks, found.threads);
        write!(f, "{percent}%: {blocks} blocks of {threads} threads ({})", found.limiter)
    }
}
