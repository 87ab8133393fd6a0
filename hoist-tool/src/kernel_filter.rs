//! Which kernels of device code are meant, and how they are shown.

use std::cmp::Reverse;
use std::collections::HashMap;

use nvinfo::{Cubin, Error, Function, KernelNeeds};

use crate::kernel_name::KernelName;
use crate::pattern::Pattern;

/// Which kernels, and how they are shown.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct KernelFilter {
    /// Kernels by name, mangled or not, `gemm*`, or `/REGEX/`; several of them mean all that one of them means.
    #[arg(long = "kernel", value_name = "PATTERN", id = "kernel_pattern")]
    pub kernel: Vec<Pattern>,
    /// The order of kernels: `size` (of the code, largest first), `registers` (most first) or `name`; that of the file without it.
    #[arg(long, value_name = "BY")]
    pub sort: Option<KernelOrder>,
    /// The most kernels to show.
    #[arg(long, value_name = "NUMBER")]
    pub limit: Option<usize>,
    /// Shows names mangled, as they are in the file.
    #[arg(long)]
    pub raw: bool,
}

/// An order of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum KernelOrder {
    /// The largest code first.
    Size,
    /// The most registers first.
    Registers,
    /// By name.
    Name,
}

impl KernelFilter {
    /// All kernels that are meant: those of `--kernel`, and what the command names besides.
    #[must_use]
    pub fn wanted(&self, named: Option<&Pattern>) -> Vec<Pattern> {
        self.kernel.iter().chain(named).cloned().collect()
    }

    /// Functions of a cubin in the order that is asked for, no more than are to be shown.
    ///
    /// # Errors
    /// If their attributes are damaged, where these decide the order.
    pub fn choose<'a>(&self, mut found: Vec<Function<'a>>) -> Result<Vec<Function<'a>>, Error> {
        match self.sort {
            None => {}
            Some(KernelOrder::Size) => found.sort_by_key(|one| Reverse(one.section_header().size)),
            Some(KernelOrder::Name) => {
                found.sort_by_cached_key(|one| {
                    KernelName::of(one.name()).readable(self.raw).to_owned()
                });
            }
            Some(KernelOrder::Registers) => {
                let known = match found.first() {
                    Some(first) => registers(first.cubin())?,
                    None => HashMap::new(),
                };
                let count = |one: Function<'a>| match known.get(&one.index()) {
                    Some(count) => Ok((*count, one)),
                    None => Ok((one.resources()?.registers, one)),
                };
                let mut counted: Vec<_> =
                    found.into_iter().map(count).collect::<Result<_, Error>>()?;
                counted.sort_by_key(|(count, _)| Reverse(*count));
                found = counted.into_iter().map(|(_, one)| one).collect();
            }
        }
        found.truncate(self.limit.unwrap_or(usize::MAX));
        Ok(found)
    }
}

/// The registers of all kernels by their symbols, in one pass.
fn registers(cubin: &Cubin<'_>) -> Result<HashMap<u32, Option<u32>>, Error> {
    let symbols = cubin.symbols().map_or(0, |table| table.len());
    let mut room = vec![KernelNeeds::EMPTY; cubin.kernels().count()];
    let mut numbers = vec![0; symbols.saturating_add(cubin.file().sections().len())];
    let needs = cubin.kernel_needs(&mut room, &mut numbers)?;
    Ok(needs.iter().map(|one| (one.symbol, one.resources.registers)).collect())
}
