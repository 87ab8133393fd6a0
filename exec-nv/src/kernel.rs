//! What is known of a kernel before it runs.

use elf_core::Name;
use nvinfo::{Cubin, Resources};

use crate::error::Error;

/// A parameter: where it is among the others, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterSlot {
    /// From the first parameter's place.
    pub offset: u32,
    /// Its size.
    pub size: u32,
}

impl ParameterSlot {
    pub(crate) const fn end(self) -> u32 {
        self.offset.saturating_add(self.size)
    }
}

/// A kernel as its image, or the driver, describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name, mangled.
    pub name: String,
    /// Its parameters in their order; `None` if nobody knows.
    pub parameters: Option<Vec<ParameterSlot>>,
    /// What it needs, if it is a cubin's.
    pub resources: Option<Resources>,
    /// Number of the architecture of its code, if it is a cubin's.
    pub sm: Option<u32>,
}

impl Kernel {
    /// The kernel `name` of a cubin.
    ///
    /// # Errors
    /// [`Error::NoKernel`], [`Error::Cubin`]; [`Error::Parameters`] if the records of its parameters contradict each other.
    pub fn of_cubin(cubin: &Cubin<'_>, name: &str) -> Result<Self, Error> {
        let Some(kernel) = cubin.kernel(Name(name.as_bytes())) else {
            let kernels = cubin.kernels().map(|kernel| kernel.name().to_string()).collect();
            return Err(Error::NoKernel { name: name.into(), kernels });
        };
        let mut records = kernel.parameters()?.collect::<Result<Vec<_>, _>>()?;
        records.sort_by_key(|record| record.ordinal);
        let resources = kernel.resources()?;
        let parameters: Vec<_> = records
            .iter()
            .map(|record| ParameterSlot { offset: record.offset.into(), size: record.size.into() })
            .collect();
        let bank = resources.parameter_bank.map(|bank| u32::from(bank.size));
        let size = resources.parameter_size.or(bank).unwrap_or(0);
        let in_order = records.iter().zip(0u16..).all(|(record, index)| record.ordinal == index);
        let apart = parameters.windows(2).all(|pair| match pair {
            [one, next] => one.end() <= next.offset,
            _ => true,
        });
        let inside = parameters.last().is_none_or(|last| last.end() <= size);
        if !(in_order && apart && inside) {
            return Err(Error::Parameters { kernel: name.into() });
        }
        Ok(Self {
            name: name.into(),
            parameters: Some(parameters),
            resources: Some(resources),
            sm: cubin.target().sm,
        })
    }
}
