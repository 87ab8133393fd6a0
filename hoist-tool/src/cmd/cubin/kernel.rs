//! What one kernel needs, for people and for programs.

use anyhow::Result;
use nvinfo::occupancy::Demand;
use nvinfo::{ConstantBank, Cubin, Function, Resources, Stack, occupancy};
use serde::Serialize;

use super::index::Index;
use super::symbols::symbol_name;
use crate::kernel_name::{KernelName, Text};
use crate::pattern::Pattern;

/// Threads of a block that occupancy is given for, if the kernel names none.
const THREADS: u32 = 256;

/// A kernel. Sizes in bytes; `null` where the file does not say.
#[derive(Debug, Serialize)]
pub struct Kernel {
    /// Its name, mangled.
    pub name: Text,
    /// Its name as it was in the source, if it is mangled.
    pub demangled: Option<Text>,
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// Static shared memory of a block.
    pub shared: u64,
    /// Shared memory that the section has for the system, beside that.
    pub reserved_shared: u64,
    /// Local memory of a thread with a section of its own.
    pub local: u64,
    /// Stack of the kernel itself.
    pub frame_size: Option<u32>,
    /// Stack with all that is called; `null` if it has no bound, or is not known.
    pub stack: Option<u64>,
    /// Whether the stack has no bound that can be told.
    pub stack_unbounded: bool,
    /// Largest stack, of older toolkits.
    pub max_stack: Option<u32>,
    /// Named barriers.
    pub barriers: u32,
    /// Virtual resources of a block.
    pub virtual_resources: u32,
    /// Number of parameters.
    pub parameters: usize,
    /// Their size.
    pub parameter_size: Option<u32>,
    /// Offset of the first one in constant bank 0.
    pub parameter_base: Option<u32>,
    /// Registers that the compiler kept to.
    pub max_registers: Option<u32>,
    /// Most threads of a block, by dimension.
    pub max_threads: Option<[u32; 3]>,
    /// Threads that a block must have, by dimension.
    pub required_threads: Option<[u32; 3]>,
    /// Blocks that a cluster must have, by dimension.
    pub cluster: Option<[u32; 3]>,
    /// Most blocks of a cluster.
    pub max_cluster_rank: Option<u32>,
    /// Whether a launch must name its cluster.
    pub explicit_cluster: bool,
    /// Whether the grid of a launch counts clusters.
    pub blocks_are_clusters: bool,
    /// Textures, samplers and surfaces that it reaches by reference.
    pub textures: [u32; 3],
    /// Size of its code.
    pub code_size: u64,
    /// Constant banks of its own.
    pub constant_banks: Vec<Bank>,
    /// Subroutines in its code.
    pub subroutines: Vec<Subroutine>,
    /// Functions that it calls directly.
    pub callees: Vec<String>,
    /// How many of its blocks an SM runs, if its limits are known.
    pub occupancy: Option<Occupancy>,
    /// Number of the architecture.
    #[serde(skip)]
    pub sm: Option<u32>,
    /// What a block asks of an SM, but for its threads.
    #[serde(skip)]
    pub demand: Demand,
}

/// A constant bank.
#[derive(Debug, Serialize)]
pub struct Bank {
    /// Its number.
    pub bank: u32,
    /// Its section.
    pub section: u32,
    /// Its size.
    pub size: u64,
    /// What the file has in it, as hexadecimal digits, if one kernel was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents: Option<String>,
}

impl Bank {
    pub(super) fn of(bank: &ConstantBank) -> Self {
        Self { bank: bank.bank, section: bank.section, size: bank.header.size, contents: None }
    }
}

/// A subroutine inside a function.
#[derive(Debug, Serialize)]
pub struct Subroutine {
    /// Its name.
    pub name: String,
    /// Offset in the code.
    pub offset: u64,
    /// Size of its code.
    pub size: u64,
}

/// How many blocks an SM runs at a time.
#[derive(Debug, Serialize)]
pub struct Occupancy {
    /// Threads of a block.
    pub threads: u32,
    /// Blocks.
    pub blocks: u32,
    /// Their warps.
    pub warps: u32,
    /// Warps that the SM could hold.
    pub of_warps: u32,
    /// What keeps it from running more.
    pub limiter: &'static str,
}

impl Kernel {
    /// Its name as people wrote it, or as it is.
    #[must_use]
    pub fn readable(&self) -> &str {
        self.demangled.as_deref().unwrap_or(&self.name)
    }

    /// What `kernel` needs; occupancy for blocks of `threads`, if that is given.
    fn of(index: &Index, kernel: &Function<'_>, threads: Option<u32>) -> Result<Self> {
        let cubin = kernel.cubin();
        let needs = index.needs(kernel)?;
        let stack = needs.stack.or(index.stack(kernel));
        let subroutine = |inner| {
            let (symbol, _) = cubin.symbol(inner)?;
            let name = symbol_name(cubin, inner);
            Ok(Subroutine { name, offset: symbol.value, size: symbol.size })
        };
        let subroutines = index.subroutines(kernel).map(subroutine).collect::<Result<_>>()?;
        let KernelName { name, demangled } = match kernel.name() {
            name if name.is_empty() => KernelName::known(&symbol_name(cubin, kernel.index())),
            name => KernelName::of(name),
        };
        Ok(Self {
            demangled,
            name,
            registers: needs.registers,
            shared: needs.shared,
            reserved_shared: needs.reserved_shared,
            local: needs.local,
            frame_size: needs.frame_size,
            stack: stack.and_then(Stack::bytes),
            stack_unbounded: stack == Some(Stack::Unbounded),
            max_stack: needs.max_stack,
            barriers: needs.barriers,
            virtual_resources: needs.virtual_resources,
            parameters: count(index.parameters(kernel)?)?,
            parameter_size: needs.parameter_size,
            parameter_base: needs.parameter_bank.map(|bank| bank.offset.into()),
            max_registers: needs.max_registers,
            max_threads: needs.max_threads,
            required_threads: needs.required_threads,
            cluster: needs.cluster,
            max_cluster_rank: needs.max_cluster_rank,
            explicit_cluster: needs.explicit_cluster,
            blocks_are_clusters: needs.blocks_are_clusters,
            textures: [needs.textures, needs.samplers, needs.surfaces],
            code_size: needs.code_size,
            constant_banks: index.banks(kernel).map(Bank::of).collect(),
            subroutines,
            callees: index.callees(kernel).map(|one| symbol_name(cubin, one)).collect(),
            occupancy: Occupancy::of(cubin, &needs, threads),
            sm: cubin.target().sm,
            demand: needs.demand(0, 0),
        })
    }
}

impl Occupancy {
    /// Warps that run, in hundredths of those that the SM could hold.
    #[must_use]
    pub fn percent(&self) -> u32 {
        self.warps.saturating_mul(100).checked_div(self.of_warps).unwrap_or(0)
    }

    fn of(cubin: &Cubin<'_>, needs: &Resources, threads: Option<u32>) -> Option<Self> {
        let limits = occupancy::limits(cubin.target().sm?)?;
        let threads = threads.or(needs.threads()).unwrap_or(THREADS);
        let found = limits.occupancy(&needs.demand(threads, 0));
        Some(Self {
            threads,
            blocks: found.blocks,
            warps: found.warps,
            of_warps: found.of_warps,
            limiter: found.limiter.name(),
        })
    }
}

/// The number of items, if none is an error.
fn count<T>(mut items: impl Iterator<Item = Result<T>>) -> Result<usize> {
    items.try_fold(0, |count, item| item.map(|_| count + 1))
}

/// The kernels that these patterns mean, or all; with the contents of their banks if they were asked for by name. Stacks of
/// relocatable files are those by their call graph.
///
/// # Errors
/// If the file is damaged.
pub(super) fn kernels(
    cubin: &Cubin<'_>,
    only: &[Pattern],
    threads: Option<u32>,
) -> Result<Vec<Kernel>> {
    let is_wanted = |kernel: &Function<'_>| {
        only.is_empty() || Pattern::any(only, &symbol_name(cubin, kernel.index()))
    };
    let wanted: Vec<_> = cubin.kernels().filter(is_wanted).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let index = Index::of(cubin, &wanted)?;
    let shown = wanted.iter().map(|kernel| {
        let mut shown = Kernel::of(&index, kernel, threads)?;
        if !only.is_empty() {
            for (row, bank) in shown.constant_banks.iter_mut().zip(index.banks(kernel)) {
                row.contents = Some(hex(cubin.file().section_data(&bank.header)?));
            }
        }
        Ok(shown)
    });
    shown.collect()
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
