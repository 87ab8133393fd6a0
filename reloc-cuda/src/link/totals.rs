//! What a kernel needs: registers and stacks.

use super::calls::Calls;
use super::carried::REG_RECONFIG;
use super::entity::EntityId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// What a kernel needs with all that it calls. A stack without a bound is `u32::MAX`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) registers: u32,
    pub(super) stack: u32,
    pub(super) returns: u32,
}

impl Calls<'_> {
    /// What a kernel needs with all that it calls.
    pub(super) fn totals(&self, kernel: EntityId) -> Totals {
        let of = |id: &EntityId| self.needs.get(id).copied().unwrap_or_default();
        let mut totals = Totals::default();
        let tree = self.trees.get(&kernel).into_iter().flatten().map(of);
        // code that takes and gives back registers counts on those that it starts with
        totals.registers = match self.carried_by(kernel).has(REG_RECONFIG) {
            true => of(&kernel).registers,
            false => tree.map(|needs| needs.registers).max().unwrap_or(0),
        };
        let sums = self.deepest(kernel);
        (totals.stack, totals.returns) = sums.unwrap_or((u32::MAX, u32::MAX));
        totals
    }

    /// The largest sums of both stacks over all paths; `None` with a recursion. Walks
    /// without calling itself: paths may be long.
    fn deepest(&self, kernel: EntityId) -> Option<(u32, u32)> {
        let mut done = BTreeMap::new();
        let mut path = Vec::from([(kernel, self.callees(kernel), (0u32, 0u32))]);
        done.insert(kernel, None);
        loop {
            let (function, rest, sums) = path.last_mut()?;
            let Some(callee) = rest.pop() else {
                let needs = self.needs.get(function).copied().unwrap_or_default();
                let own =
                    (sums.0.saturating_add(needs.frame), sums.1.saturating_add(needs.returns));
                done.insert(*function, Some(own));
                path.pop();
                match path.last_mut() {
                    None => return Some(own),
                    Some((_, _, sums)) => *sums = (sums.0.max(own.0), sums.1.max(own.1)),
                }
                continue;
            };
            match done.get(&callee) {
                // open: it is on the path already
                Some(None) => return None,
                Some(&Some(known)) => *sums = (sums.0.max(known.0), sums.1.max(known.1)),
                None => {
                    done.insert(callee, None);
                    path.push((callee, self.callees(callee), (0, 0)));
                }
            }
        }
    }
}
