//! What belongs to which kernel of a cubin, found in one pass: a cubin may have thousands of them.

use anyhow::Result;
use elf_core::SectionHeader;
use elf_core::names::SHT_CUDA_INFO;
use nvinfo::{
    Attributes, Call, ConstantBank, Cubin, Edge, Function, KernelNeeds, KernelParameter, Node,
    Payload, Resources, Stack,
};

/// Sections, functions and calls by what they belong to.
pub(super) struct Index {
    /// Needs of kernels by symbol.
    needs: Groups<Resources>,
    /// Stacks of kernels by symbol.
    stacks: Groups<Stack>,
    /// Attributes by section of the code.
    infos: Groups<SectionHeader>,
    /// Constant banks by section of the code.
    banks: Groups<ConstantBank>,
    /// Symbols of functions by section.
    functions: Groups<u32>,
    /// Callees by caller.
    callees: Groups<u32>,
}

/// Things by the number of what they belong to, those of one in the order in which they came.
struct Groups<T>(Vec<(u32, T)>);

impl<T> FromIterator<(u32, T)> for Groups<T> {
    fn from_iter<I: IntoIterator<Item = (u32, T)>>(all: I) -> Self {
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|(of, _)| *of);
        Self(all)
    }
}

impl<T> Groups<T> {
    /// Those of one.
    fn of(&self, number: u32) -> impl Iterator<Item = &T> {
        let start = self.0.partition_point(|(of, _)| *of < number);
        let rest = self.0.get(start..).unwrap_or_default().iter();
        rest.take_while(move |(of, _)| *of == number).map(|(_, one)| one)
    }

    /// The first of one.
    fn first(&self, number: u32) -> Option<&T> {
        self.of(number).next()
    }
}

impl Index {
    /// Of these kernels, or of all functions for what needs no more than a pass.
    ///
    /// # Errors
    /// If the file is damaged.
    pub(super) fn of(cubin: &Cubin<'_>, kernels: &[Function<'_>]) -> Result<Self> {
        let symbols = cubin.symbols().map_or(0, |table| table.len());
        let (mut count, mut functions) = (0, Vec::new());
        for function in cubin.functions() {
            count += usize::from(function.is_kernel());
            functions.push((function.section(), function.index()));
        }
        let mut room = vec![KernelNeeds::EMPTY; count];
        let mut numbers = vec![0; symbols.saturating_add(cubin.file().sections().len())];
        let needs = cubin.kernel_needs(&mut room, &mut numbers)?;
        // what is linked says it
        let stacks = match needs.iter().all(|one| one.resources.stack.is_some()) {
            true => Groups(Vec::new()),
            false => stacks(cubin, kernels)?,
        };
        let infos = cubin.file().sections().iter();
        let infos = infos.filter(|section| section.r#type == SHT_CUDA_INFO);
        let banks = cubin.constant_banks().filter_map(|bank| Some((bank.owner?, bank)));
        let direct = |call| match call {
            Call::Direct { caller, callee } => Some((caller, callee)),
            _ => None,
        };
        Ok(Self {
            needs: needs.iter().map(|one| (one.symbol, one.resources)).collect(),
            stacks,
            infos: infos.map(|section| (section.info, section)).collect(),
            banks: banks.collect(),
            functions: functions.into_iter().collect(),
            callees: cubin.calls()?.filter_map(direct).collect(),
        })
    }

    /// What a kernel needs.
    ///
    /// # Errors
    /// As [`Function::resources`].
    pub(super) fn needs(&self, kernel: &Function<'_>) -> Result<Resources> {
        Ok(match self.needs.first(kernel.index()) {
            Some(needs) => *needs,
            None => kernel.resources()?,
        })
    }

    /// The stack of a kernel by its calls.
    pub(super) fn stack(&self, kernel: &Function<'_>) -> Option<Stack> {
        self.stacks.first(kernel.index()).copied()
    }

    /// The parameters of a kernel, in the order of the file.
    ///
    /// # Errors
    /// If its attributes are damaged.
    pub(super) fn parameters<'a>(
        &self,
        kernel: &Function<'a>,
    ) -> Result<impl Iterator<Item = Result<KernelParameter>> + use<'a>> {
        let rows = match self.infos.first(kernel.section()) {
            Some(section) => kernel.cubin().attributes_in(section)?,
            None => Attributes::default(),
        };
        Ok(rows.filter_map(|row| match row.map(|row| row.payload()) {
            Ok(Payload::Parameter(parameter)) => Some(Ok(parameter)),
            Ok(_) => None,
            Err(error) => Some(Err(error.into())),
        }))
    }

    /// The constant banks of a kernel's own.
    pub(super) fn banks(&self, kernel: &Function<'_>) -> impl Iterator<Item = &ConstantBank> {
        self.banks.of(kernel.section())
    }

    /// Symbols of the subroutines in a kernel's code.
    pub(super) fn subroutines(&self, kernel: &Function<'_>) -> impl Iterator<Item = u32> {
        let index = kernel.index();
        self.functions.of(kernel.section()).copied().filter(move |other| *other != index)
    }

    /// The functions that a kernel calls directly.
    pub(super) fn callees(&self, kernel: &Function<'_>) -> impl Iterator<Item = u32> {
        self.callees.of(kernel.index()).copied()
    }
}

/// The stacks of kernels by their calls.
///
/// # Errors
/// If the file is damaged.
fn stacks(cubin: &Cubin<'_>, kernels: &[Function<'_>]) -> Result<Groups<Stack>> {
    let (nodes, edges) = cubin.call_tree_size()?;
    let (mut nodes, mut edges) = (vec![Node::EMPTY; nodes], vec![Edge::EMPTY; edges]);
    let mut tree = cubin.call_tree(&mut nodes, &mut edges)?;
    let stack = |kernel: &Function<'_>| Some((kernel.index(), tree.stack(kernel.index())?));
    Ok(kernels.iter().filter_map(stack).collect())
}
