//! What a cubin's kernels need, and how many of them an SM holds.

use crate::errors::{Failure, Field, format};
use crate::held::Held;
use nvinfo::occupancy::{Demand, Limiter, limits};
use nvinfo::{Cubin, Edge, Error, Function, KernelNeeds, KernelParameter, Node, Resources, Stack};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::HashMap;

fn failure(py: Python<'_>, label: &str, error: Error) -> PyErr {
    let mut failure = format(&error, error.at);
    failure.prefix(label);
    failure.error(py)
}

/// The cubin's architecture and a row for each kernel.
#[pyfunction]
pub(crate) fn cubin<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    label: &str,
) -> PyResult<(Bound<'py, PyDict>, Vec<Bound<'py, PyDict>>)> {
    let data = Held::of(data)?;
    let refused = |error| failure(py, label, error);
    let cubin = py.detach(|| Cubin::parse(data.as_ref())).map_err(refused)?;
    let kernels = py.detach(|| kernels(&cubin)).map_err(refused)?;
    let target = cubin.target();
    let row = PyDict::new(py);
    row.set_item("sm", target.sm)?;
    row.set_item("arch", target.sm.map(|sm| format!("sm_{sm}{}", target.suffix.as_str())))?;
    row.set_item("virtual_sm", target.virtual_sm)?;
    row.set_item("toolkit", target.toolkit.map(|toolkit| (toolkit.major(), toolkit.minor())))?;
    row.set_item("is_64", target.is_64)?;
    row.set_item("is_linked", target.stage == nvinfo::LinkStage::Linked)?;
    let mut rows = Vec::with_capacity(kernels.len());
    for some in kernels.chunks(AT_ONCE) {
        for kernel in some {
            rows.push(kernel.row(py)?);
        }
        // whoever waits for the lock gets it
        py.detach(|| ());
    }
    Ok((row, rows))
}

/// Rows that are made before others may have the interpreter's lock.
const AT_ONCE: usize = 256;

/// What is known of a kernel.
struct Kernel<'f> {
    name: String,
    needs: Resources,
    parameters: Vec<KernelParameter>,
    code: &'f [u8],
}

/// All kernels. Stacks of relocatable files are those by their call graph.
fn kernels<'f>(cubin: &'f Cubin<'_>) -> Result<Vec<Kernel<'f>>, Error> {
    let mut room = vec![KernelNeeds::EMPTY; cubin.kernels().count()];
    let symbols = cubin.symbols().map_or(0, elf_core::SymbolTable::len);
    let mut index = vec![0; symbols + cubin.file().sections().len()];
    let all = cubin.kernel_needs(&mut room, &mut index)?;
    let (nodes, edges) = cubin.call_tree_size()?;
    let (mut nodes, mut edges) = (vec![Node::EMPTY; nodes], vec![Edge::EMPTY; edges]);
    let mut tree = cubin.call_tree(&mut nodes, &mut edges)?;
    let needs: HashMap<u32, &KernelNeeds> = all.iter().map(|needs| (needs.symbol, needs)).collect();
    let one = |function: Function<'f>| {
        let found = needs.get(&function.index());
        let mut needs = found.map_or_else(|| function.resources(), |needs| Ok(needs.resources))?;
        needs.stack = needs.stack.or_else(|| tree.stack(function.index()));
        let mut parameters = function.parameters()?.collect::<Result<Vec<_>, _>>()?;
        parameters.sort_by_key(|parameter| parameter.ordinal);
        Ok(Kernel { name: function.name().to_string(), needs, parameters, code: function.code()? })
    };
    cubin.kernels().map(one).collect()
}

impl Kernel<'_> {
    fn row<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let row = PyDict::new(py);
        row.set_item("name", &self.name)?;
        resources(&row, &self.needs)?;
        let parameter = |parameter: &KernelParameter| {
            let one = PyDict::new(py);
            one.set_item("ordinal", parameter.ordinal)?;
            one.set_item("offset", parameter.offset)?;
            one.set_item("size", parameter.size)?;
            Ok(one)
        };
        let parameters = self.parameters.iter().map(parameter).collect::<PyResult<Vec<_>>>()?;
        row.set_item("params", parameters)?;
        row.set_item("code", PyBytes::new(py, self.code))?;
        Ok(row)
    }
}

fn resources(row: &Bound<'_, PyDict>, needs: &Resources) -> PyResult<()> {
    let bytes = |stack: Option<Stack>| stack.and_then(Stack::bytes);
    row.set_item("registers", needs.registers)?;
    row.set_item("shared", needs.shared)?;
    row.set_item("reserved_shared", needs.reserved_shared)?;
    row.set_item("local", needs.local)?;
    row.set_item("stack", bytes(needs.stack))?;
    row.set_item("stack_unbounded", needs.stack == Some(Stack::Unbounded))?;
    row.set_item("frame_size", needs.frame_size)?;
    row.set_item("barriers", needs.barriers)?;
    row.set_item("virtual_resources", needs.virtual_resources)?;
    row.set_item("parameter_size", needs.parameter_size)?;
    row.set_item("max_registers", needs.max_registers)?;
    row.set_item("max_threads", needs.max_threads)?;
    row.set_item("required_threads", needs.required_threads)?;
    row.set_item("cluster", needs.cluster)?;
    row.set_item("textures", needs.textures)?;
    row.set_item("samplers", needs.samplers)?;
    row.set_item("surfaces", needs.surfaces)?;
    row.set_item("code_size", needs.code_size)
}

/// How many blocks and warps an SM of an architecture holds of a kernel, and what keeps it from more.
#[pyfunction]
#[pyo3(signature = (sm, threads, registers, shared, barriers, virtual_resources))]
pub(crate) fn occupancy<'py>(
    py: Python<'py>,
    sm: u32,
    threads: u32,
    registers: u32,
    shared: u64,
    barriers: u32,
    virtual_resources: u32,
) -> PyResult<Bound<'py, PyDict>> {
    let Some(limits) = limits(sm) else {
        let failure =
            Failure::new("UnsupportedError", format!("the limits of sm_{sm} are not known"));
        return Err(failure.with("value", Field::Number(sm.into())).error(py));
    };
    let found =
        limits.occupancy(&Demand { threads, registers, shared, barriers, virtual_resources });
    let limiter = match found.limiter {
        Limiter::Warps => "warps",
        Limiter::Blocks => "blocks",
        Limiter::Registers => "registers",
        Limiter::Shared => "shared memory",
        Limiter::Barriers => "barriers",
        Limiter::VirtualResources => "virtual resources",
    };
    let row = PyDict::new(py);
    row.set_item("threads", threads)?;
    row.set_item("blocks", found.blocks)?;
    row.set_item("warps", found.warps)?;
    row.set_item("of_warps", found.of_warps)?;
    row.set_item("limiter", limiter)?;
    Ok(row)
}

/// Why there is no image.
enum Refusal {
    Plan(exec_nv::Error),
    File(elf_core::Error),
}

/// A linked cubin as it will stand in the memory of a device, at any address.
#[pyclass(frozen, module = "hoist._hoist")]
pub(crate) struct DeviceImage {
    data: Held,
    size: u64,
    alignment: u64,
    sections: Vec<Option<u64>>,
}

#[pymethods]
impl DeviceImage {
    #[new]
    fn new(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let data = Held::of(data)?;
        let planned = py.detach(|| {
            let plan = exec_nv::own::Plan::of(data.as_ref()).map_err(Refusal::Plan)?;
            let file = elf_core::File::parse(data.as_ref()).map_err(Refusal::File)?;
            let count = u32::try_from(file.sections().len()).unwrap_or(0);
            let sections = (0..count).map(|index| plan.section(index)).collect();
            Ok((plan.memory_size(), plan.alignment(), sections))
        });
        let (size, alignment, sections) = planned.map_err(|refusal| match refusal {
            Refusal::Plan(error) => crate::device::failure(&error).error(py),
            Refusal::File(error) => format(&error, error.at).error(py),
        })?;
        Ok(Self { data, size, alignment, sections })
    }

    /// Bytes of memory that it takes, with those behind the code that instruction fetch may read.
    #[getter]
    fn size(&self) -> u64 {
        self.size
    }

    /// What its address must be a multiple of.
    #[getter]
    fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Where each section of the file is in it, or None.
    #[getter]
    fn sections(&self) -> Vec<Option<u64>> {
        self.sections.clone()
    }

    /// Its bytes, relocated for an address.
    fn write<'py>(&self, py: Python<'py>, address: u64) -> PyResult<Bound<'py, PyBytes>> {
        let written = py.detach(|| exec_nv::own::Plan::of(self.data.as_ref())?.write(address));
        match written {
            Ok(bytes) => Ok(PyBytes::new(py, &bytes)),
            Err(error) => Err(crate::device::failure(&error).error(py)),
        }
    }
}
