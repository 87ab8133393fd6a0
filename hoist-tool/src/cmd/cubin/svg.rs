//! Kernels as pictures.

use anyhow::{Result, bail};
use nvinfo::occupancy::limits;

use super::kernel::{Kernel, Occupancy};
use super::text::{Stacked, launch};
use crate::occupancy::Curve;
use crate::panel::{Fact, Mark, Panel};

/// Kernels that one picture may have: more than people look at.
const MOST: usize = 1000;

/// The picture of a kernel of the cubin at `place`.
pub(super) fn panel(kernel: &Kernel, place: &str, raw: bool) -> Panel {
    let limits = kernel.sm.and_then(limits);
    let fact = |name, words: String| Fact { name, words, share: None };
    let of = |name, takes: u64, unit: &str, most: Option<u64>| {
        #[expect(clippy::cast_precision_loss, reason = "a bar of some pixels")]
        let share = most.map(|most| takes as f64 / most.max(1) as f64);
        let most = most.map_or_else(String::new, |most| format!(" of {most}"));
        Fact { name, words: format!("{takes}{most}{unit}"), share }
    };
    let registers = kernel.registers.map_or_else(
        || fact("registers", String::from("-")),
        |count| {
            let most = limits.map(|limits| limits.thread_registers.into());
            of("registers", count.into(), " of a thread", most)
        },
    );
    let barriers = limits.and_then(|limits| limits.barriers);
    let facts = vec![
        registers,
        of("shared memory", kernel.shared, " bytes", limits.map(|limits| limits.block_shared)),
        of("barriers", kernel.barriers.into(), "", barriers.map(u64::from)),
        fact("stack", bytes(Stacked(kernel).to_string())),
        fact("local memory", format!("{} bytes", kernel.local)),
        fact("code", format!("{} bytes", kernel.code_size)),
        fact("launch", launch(kernel).into_owned()),
    ];
    let name: &str = if raw { &kernel.name } else { kernel.readable() };
    let sm = kernel.sm.map_or_else(String::new, |sm| format!("sm_{sm}, "));
    let threads = kernel.required_threads.or(kernel.max_threads);
    Panel {
        title: name.to_owned(),
        place: format!("{sm}{place}"),
        facts,
        curve: kernel.sm.and_then(|sm| Curve::of(sm, kernel.demand)),
        marked: kernel.occupancy.as_ref().map(mark),
        most_threads: threads.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z)),
    }
}

/// Numbers have a unit; words have none.
fn bytes(text: String) -> String {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { format!("{text} bytes") } else { text }
}

fn mark(found: &Occupancy) -> Mark {
    let Occupancy { threads, blocks, warps, .. } = found;
    let words = format!("{threads} threads: {}%, {blocks} blocks", found.percent());
    Mark { threads: *threads, warps: *warps, words }
}

/// Adds the kernels of a cubin to a picture.
///
/// # Errors
/// If they are too many.
pub(super) fn add(panels: &mut Vec<Panel>, more: Vec<Panel>) -> Result<()> {
    panels.extend(more);
    if panels.len() > MOST {
        bail!("a picture has at most {MOST} kernels: name them, or use --arch and --limit");
    }
    Ok(())
}
