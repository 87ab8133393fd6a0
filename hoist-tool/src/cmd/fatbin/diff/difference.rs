//! The kernels that two sides do not have in common, or that need more or less.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::kernels::{KernelForm, KernelRow};
use crate::kernel_name::Text;

/// What a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(in super::super) struct Needs {
    pub(in super::super) registers: Option<u32>,
    pub(in super::super) shared: Option<u64>,
    pub(in super::super) stack: Option<u64>,
    pub(in super::super) local: Option<u64>,
    pub(in super::super) code_size: u64,
    /// The same number for the same code, if it was looked at.
    #[serde(skip)]
    pub(in super::super) code: u64,
}

impl From<&KernelRow> for Needs {
    fn from(row: &KernelRow) -> Self {
        let KernelRow { registers, shared, stack, local, code_size, code, .. } = *row;
        Self { registers, shared, stack, local, code_size, code }
    }
}

/// A kernel of one architecture that is on one side, or on both with other needs.
#[derive(Debug, Serialize)]
pub(in super::super) struct Change {
    pub(in super::super) name: Text,
    pub(in super::super) demangled: Option<Text>,
    pub(in super::super) arch: Text,
    /// The file that it is in, or was.
    pub(in super::super) file: Text,
    pub(in super::super) old: Option<Needs>,
    pub(in super::super) new: Option<Needs>,
    /// Whether the code is another one; of kernels that are in both.
    pub(in super::super) other_code: bool,
}

impl Change {
    /// Whether the code is another one, and all numbers are the same.
    pub(in super::super) fn is_code_alone(&self) -> bool {
        let numbers = |side: &Option<Needs>| side.map(|needs| Needs { code: 0, ..needs });
        self.other_code && numbers(&self.old) == numbers(&self.new)
    }
}

/// The differences of two trees.
#[derive(Debug, Default, Serialize)]
pub(in super::super) struct Difference {
    pub(in super::super) added: Vec<Change>,
    pub(in super::super) gone: Vec<Change>,
    pub(in super::super) changed: Vec<Change>,
    /// How many are the same in both.
    pub(in super::super) same: usize,
    pub(in super::super) archs_before: BTreeSet<Text>,
    pub(in super::super) archs_after: BTreeSet<Text>,
    /// Kernels of each list that `--limit` leaves out.
    pub(in super::super) left_out: LeftOut,
    /// Bytes of machine code of all kernels.
    pub(in super::super) code_before: u64,
    pub(in super::super) code_after: u64,
    /// Conditions that hold, with the kernels that they hold of.
    pub(in super::super) failed: Vec<String>,
}

/// How many kernels are not shown.
#[derive(Debug, Default, Serialize)]
pub(in super::super) struct LeftOut {
    added: usize,
    gone: usize,
    changed: usize,
}

impl Difference {
    /// Leaves the first of each list.
    pub(super) fn cut(&mut self, limit: usize) {
        let cut = |list: &mut Vec<Change>| list.drain(limit.min(list.len())..).count();
        let [added, gone, changed] = [&mut self.added, &mut self.gone, &mut self.changed].map(cut);
        self.left_out = LeftOut { added, gone, changed };
    }
}

/// Compares kernels of one name and architecture: those of one file first, then the others in order.
pub(in super::super) fn difference(old: &[KernelRow], new: &[KernelRow]) -> Difference {
    let mut found = Difference::default();
    // rows by name and architecture: there may be hundreds of thousands, most of them alone
    let mut sides: BTreeMap<(&str, &str), [Vec<&KernelRow>; 2]> = BTreeMap::new();
    for (side, rows) in [old, new].into_iter().enumerate() {
        for row in rows {
            let (archs, code) = match side {
                0 => (&mut found.archs_before, &mut found.code_before),
                _ => (&mut found.archs_after, &mut found.code_after),
            };
            if !archs.contains(&*row.place.arch) {
                archs.insert(row.place.arch.clone());
            }
            if row.kind == KernelForm::Elf {
                *code = code.saturating_add(row.code_size);
            }
            let key = (&*row.name, &*row.place.arch);
            if let Some(list) = sides.entry(key).or_default().get_mut(side) {
                list.push(row);
            }
        }
    }
    for [old, mut new] in sides.into_values() {
        let mut left = Vec::new();
        let mut pairs = Vec::new();
        for row in old {
            match new.iter().position(|other| other.file == row.file) {
                Some(at) => pairs.push((row, new.remove(at))),
                None => left.push(row),
            }
        }
        let both = left.len().min(new.len());
        let rest = new.split_off(both);
        let gone = left.split_off(both);
        pairs.extend(left.into_iter().zip(new));
        found.added.extend(rest.into_iter().map(|row| change(row, None, Some(Needs::from(row)))));
        found.gone.extend(gone.into_iter().map(|row| change(row, Some(Needs::from(row)), None)));
        for (old, new) in pairs {
            let (before, after) = (Needs::from(old), Needs::from(new));
            if before == after {
                found.same += 1;
            } else {
                found.changed.push(change(new, Some(before), Some(after)));
            }
        }
    }
    found
}

fn change(row: &KernelRow, old: Option<Needs>, new: Option<Needs>) -> Change {
    let other_code = old.zip(new).is_some_and(|(old, new)| old.code != new.code);
    Change {
        name: row.name.clone(),
        demangled: row.demangled.text(),
        arch: row.place.arch.clone(),
        file: row.file.clone(),
        old,
        new,
        other_code,
    }
}
