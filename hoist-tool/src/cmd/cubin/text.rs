//! Kernels and modules as a person reads them.

use std::io::Write;

use anyhow::Result;

use super::kernel::Kernel;
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
        table.row([
            or_dash(kernel.registers),
            kernel.shared.to_string(),
            kernel.local.to_string(),
            stack(kernel),
            kernel.code_size.to_string(),
            parameters(kernel),
            kernel.barriers.to_string(),
            launch(kernel),
            occupancy(kernel),
            name(kernel, raw).to_owned(),
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
    row("registers", or_dash(kernel.registers))?;
    let reserved = match kernel.reserved_shared {
        0 => String::new(),
        reserved => format!(" and {reserved} for the system"),
    };
    row("shared memory", format!("{} bytes{reserved}", kernel.shared))?;
    row("local memory", format!("{} bytes", kernel.local))?;
    row("stack", format!("{} (own {})", stack(kernel), or_dash(kernel.frame_size)))?;
    row("barriers", kernel.barriers.to_string())?;
    if kernel.virtual_resources != 0 {
        row("virtual resources", kernel.virtual_resources.to_string())?;
    }
    row("parameters", parameters(kernel))?;
    row("parameter base", kernel.parameter_base.map_or("-".into(), |base| format!("{base:#x}")))?;
    row("registers at most", or_dash(kernel.max_registers))?;
    row("launch", launch(kernel))?;
    row("occupancy", occupancy(kernel))?;
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

fn or_dash(number: Option<u32>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

pub(super) fn stack(kernel: &Kernel) -> String {
    match (kernel.stack, kernel.stack_unbounded) {
        (_, true) => "unbounded".to_owned(),
        (Some(bytes), _) => bytes.to_string(),
        (None, _) => "-".to_owned(),
    }
}

fn parameters(kernel: &Kernel) -> String {
    match kernel.parameter_size {
        Some(size) => format!("{} ({size} bytes)", kernel.parameters),
        None => kernel.parameters.to_string(),
    }
}

/// Limits of a launch.
pub(super) fn launch(kernel: &Kernel) -> String {
    let dimensions = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    let mut parts = Vec::new();
    parts.extend(kernel.required_threads.map(|threads| format!("= {}", dimensions(threads))));
    parts.extend(kernel.max_threads.map(|threads| format!("<= {}", dimensions(threads))));
    parts.extend(kernel.cluster.map(|blocks| format!("cluster {}", dimensions(blocks))));
    parts.extend(kernel.max_cluster_rank.map(|rank| format!("cluster <= {rank}")));
    parts.extend(kernel.explicit_cluster.then(|| "cluster to be named".to_owned()));
    parts.extend(kernel.blocks_are_clusters.then(|| "grid of clusters".to_owned()));
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

fn occupancy(kernel: &Kernel) -> String {
    match &kernel.occupancy {
        None => "-".to_owned(),
        Some(found) => {
            let percent = found.percent();
            let (blocks, threads) = (found.blocks, found.threads);
            format!("{percent}%: {blocks} blocks of {threads} threads ({})", found.limiter)
        }
    }
}
