//! Basic blocks of a function.

use std::collections::BTreeMap;

use serde::Serialize;

use super::code::{Code, Instruction};

/// Instructions that run one after another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// Number of its first instruction.
    pub start: usize,
    /// Number of the instruction behind its last.
    pub end: usize,
    /// Numbers of the blocks that may come next; those of jumps first.
    pub next: Vec<usize>,
}

/// Operations behind which the next instruction does not run, or not for all threads.
const JUMPS: [&str; 9] = ["BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "EXIT", "RET", "KILL"];

fn ends(one: &Instruction) -> bool {
    JUMPS.contains(&one.opcode())
}

/// The labels that an instruction names.
fn targets(one: &Instruction) -> impl Iterator<Item = &str> {
    let names =
        one.text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '$'));
    names.filter(|name| name.starts_with(".L"))
}

/// The blocks of a function in the order of its code. Calls end none; what indirect jumps reach is known where nvdisasm names it.
#[must_use]
pub fn blocks(code: &Code) -> Vec<Block> {
    let mut starts = vec![0];
    for (index, one) in code.instructions.iter().enumerate() {
        if index > 0 && !one.labels.is_empty() {
            starts.push(index);
        }
        if ends(one) && index + 1 < code.instructions.len() {
            starts.push(index + 1);
        }
    }
    starts.sort_unstable();
    starts.dedup();
    if code.instructions.is_empty() {
        return Vec::new();
    }
    let number = |start: usize| starts.binary_search(&start).ok();
    let mut labels = BTreeMap::new();
    for (index, one) in code.instructions.iter().enumerate() {
        for label in &one.labels {
            labels.insert(label.as_str(), index);
        }
    }
    let ends_at = starts.iter().skip(1).copied().chain([code.instructions.len()]);
    let spans: Vec<_> = starts.iter().copied().zip(ends_at).collect();
    let block = |(start, end): (usize, usize)| {
        let last = code.instructions.get(end.saturating_sub(1));
        let mut next = Vec::new();
        if let Some(last) = last.filter(|last| ends(last)) {
            let jumps = targets(last).filter_map(|label| number(*labels.get(label)?));
            next.extend(jumps);
        }
        let goes_on = last.is_some_and(|last| !ends(last) || last.is_predicated());
        next.extend(number(end).filter(|_| goes_on));
        let mut seen = Vec::new();
        next.retain(|one| {
            !seen.contains(one) && {
                seen.push(*one);
                true
            }
        });
        Block { start, end, next }
    };
    spans.into_iter().map(block).collect()
}
