//! What belongs to which kernel of a cubin, found in one pass: a cubin may have thousands of them.

use std::collections::HashMap;

use anyhow::Result;
use elf_core::SectionHeader;
use elf_core::names::SHT_CUDA_INFO;
use nvinfo::{
    Call, ConstantBank, Cubin, Edge, Function, KernelNeeds, Node, Payload, Resources, Stack,
};

/// Sections, functions and calls by what they belong to.
pub(super) struct Index<'a> {
    /// Needs of kernels by symbol.
    needs: HashMap<u32, Resources>,
    /// Stacks of kernels by symbol.
    stacks: HashMap<u32, Stack>,
    /// Attributes by section of the code: the first section of each.
    infos: HashMap<u32, SectionHeader>,
    banks: HashMap<u32, Vec<ConstantBank>>,
    /// Functions by section.
    functions: HashMap<u32, Vec<Function<'a>>>,
    /// Callees by caller.
    callees: HashMap<u32, Vec<u32>>,
}

impl<'a> Index<'a> {
    /// Of these kernels, or of all functions for what needs no more than a pass.
    ///
    /// # Errors
    /// If the file is damaged.
    pub(super) fn of(cubin: &Cubin<'a>, kernels: &[Function<'a>]) -> Result<Self> {
        let symbols = cubin.symbols().map_or(0, |table| table.len());
        let mut room = vec![KernelNeeds::EMPTY; cubin.kernels().count()];
        let mut numbers = vec![0; symbols.saturating_add(cubin.file().sections().len())];
        let needs = cubin.kernel_needs(&mut room, &mut numbers)?;
        let needs = needs.iter().map(|one| (one.symbol, one.resources)).collect();
        let (nodes, edges) = cubin.call_tree_size()?;
        let (mut nodes, mut edges) = (vec![Node::EMPTY; nodes], vec![Edge::EMPTY; edges]);
        let mut tree = cubin.call_tree(&mut nodes, &mut edges)?;
        let stack = |kernel: &Function<'_>| Some((kernel.index(), tree.stack(kernel.index())?));
        let stacks = kernels.iter().filter_map(stack).collect();
        let mut infos = HashMap::new();
        for section in cubin.file().sections().iter() {
            if section.r#type == SHT_CUDA_INFO {
                infos.entry(section.info).or_insert(section);
            }
        }
        let mut banks: HashMap<_, Vec<_>> = HashMap::new();
        for bank in cubin.constant_banks() {
            banks.entry(bank.owner.unwrap_or(u32::MAX)).or_default().push(bank);
        }
        let mut functions: HashMap<_, Vec<_>> = HashMap::new();
        for function in cubin.functions() {
            functions.entry(function.section()).or_default().push(function);
        }
        let mut callees: HashMap<_, Vec<_>> = HashMap::new();
        for call in cubin.calls()? {
            if let Call::Direct { caller, callee } = call {
                callees.entry(caller).or_default().push(callee);
            }
        }
        Ok(Self { needs, stacks, infos, banks, functions, callees })
    }

    /// What a kernel needs.
    ///
    /// # Errors
    /// As [`Function::resources`].
    pub(super) fn needs(&self, kernel: &Function<'_>) -> Result<Resources> {
        Ok(match self.needs.get(&kernel.index()) {
            Some(needs) => *needs,
            None => kernel.resources()?,
        })
    }

    /// The stack of a kernel by its calls.
    pub(super) fn stack(&self, kernel: &Function<'_>) -> Option<Stack> {
        self.stacks.get(&kernel.index()).copied()
    }

    /// How many parameters a kernel has.
    ///
    /// # Errors
    /// If its attributes are damaged.
    pub(super) fn parameters(&self, kernel: &Function<'_>) -> Result<usize> {
        let Some(section) = self.infos.get(&kernel.section()) else { return Ok(0) };
        let mut count = 0;
        for row in kernel.cubin().attributes_in(section)? {
            count += usize::from(matches!(row?.payload(), Payload::Parameter(_)));
        }
        Ok(count)
    }

    /// The constant banks of a kernel's own.
    pub(super) fn banks(&self, kernel: &Function<'_>) -> &[ConstantBank] {
        self.banks.get(&kernel.section()).map_or(&[], Vec::as_slice)
    }

    /// The subroutines in a kernel's code.
    pub(super) fn subroutines(&self, kernel: &Function<'a>) -> impl Iterator<Item = &Function<'a>> {
        let all = self.functions.get(&kernel.section()).map_or(&[][..], Vec::as_slice);
        let index = kernel.index();
        all.iter().filter(move |other| other.index() != index)
    }

    /// The functions that a kernel calls directly.
    pub(super) fn callees(&self, kernel: &Function<'_>) -> &[u32] {
        self.callees.get(&kernel.index()).map_or(&[], Vec::as_slice)
    }
}
