//! NVIDIA GPUs: devices, buffers, launches, events.

use crate::buffer::Lent;
use crate::errors::{Failure, Field};
use crate::held::Held;
use crate::types::Kind;
use crate::types::Type;
use exec_core::{Device as _, Scalar, Spec};
use exec_nv::{
    Argument, CubinLoader, Driver, Error, NvAllocator, NvDevice, NvEvent, NvImage, NvLaunch,
    NvOptions, NvProgram,
};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

type Memory = exec_core::Buffer<exec_core::LruAllocator<NvAllocator>>;

pub(crate) fn failure(error: &Error) -> Failure {
    let class = match error {
        Error::NoLibrary { .. }
        | Error::OldDriver { .. }
        | Error::NoDevice
        | Error::NoSuchDevice { .. } => "NoDeviceError",
        _ => "DeviceError",
    };
    let cause = cause(error);
    let failure = Failure::new(class, error).with("kind", Field::Text(kind(cause)));
    match cause {
        Error::Driver { function, code, .. } => failure
            .with("function", Field::Text((*function).to_owned()))
            .with("code", Field::Number((*code).into())),
        Error::NoDriverFunction { function } => {
            failure.with("function", Field::Text((*function).to_owned()))
        }
        Error::NoKernel { name, kernels } => failure
            .with("symbol", Field::Text(name.clone()))
            .with("symbols", Field::Texts(kernels.clone())),
        Error::NoVariable { name } => failure.with("symbol", Field::Text(name.clone())),
        _ => failure,
    }
}

/// What the driver said, where the error is one of the layers above about that.
fn cause(error: &Error) -> &Error {
    use exec_core::Error as Above;
    match error {
        Error::Core(
            Above::Load(inner)
            | Above::NoFunction { cause: inner, .. }
            | Above::Refused(inner)
            | Above::Device(inner),
        ) => inner.downcast_ref().map_or(error, cause),
        _ => error,
    }
}

/// The name of the variant: `NoLibrary`.
fn kind(error: &Error) -> String {
    let text = match error {
        Error::Core(error) => format!("{error:?}"),
        error => format!("{error:?}"),
    };
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

fn raise(py: Python<'_>) -> impl Fn(Error) -> PyErr {
    move |error| failure(&error).error(py)
}

fn raise_core(py: Python<'_>) -> impl Fn(exec_core::Error) -> PyErr {
    move |error| failure(&Error::Core(error)).error(py)
}

/// The driver, opened once it can be.
fn driver() -> Result<Arc<Driver>, Error> {
    static DRIVER: OnceLock<Arc<Driver>> = OnceLock::new();
    if let Some(driver) = DRIVER.get() {
        return Ok(Arc::clone(driver));
    }
    let opened = Arc::new(Driver::open()?);
    Ok(Arc::clone(DRIVER.get_or_init(|| opened)))
}

/// How many devices the driver knows.
#[pyfunction]
pub(crate) fn device_count(py: Python<'_>) -> PyResult<u32> {
    py.detach(|| driver()?.device_count()).map_err(raise(py))
}

/// A GPU. `hoist.nv.Device` is made of it.
#[pyclass(frozen, module = "hoist._hoist")]
pub(crate) struct Device(NvDevice);

#[pymethods]
impl Device {
    #[new]
    fn new(py: Python<'_>, ordinal: u32) -> PyResult<Self> {
        py.detach(|| NvDevice::open(&driver()?, ordinal, NvOptions::default()))
            .map(Self)
            .map_err(raise(py))
    }

    fn properties<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = self.0.properties();
        let row = PyDict::new(py);
        row.set_item("name", &all.name)?;
        row.set_item("uuid", PyBytes::new(py, &all.uuid))?;
        row.set_item("sm", all.sm)?;
        row.set_item("cuda", (all.driver.major, all.driver.minor))?;
        row.set_item("memory", all.memory)?;
        row.set_item("sm_count", all.sm_count)?;
        row.set_item("warp", all.warp)?;
        row.set_item("max_grid", all.max_grid)?;
        row.set_item("max_block", all.max_block)?;
        row.set_item("max_threads", all.max_threads)?;
        row.set_item("max_registers", all.max_registers)?;
        row.set_item("shared", all.shared)?;
        row.set_item("shared_opt_in", all.shared_opt_in)?;
        row.set_item("l2_cache", all.l2_cache)?;
        row.set_item("pci", all.pci)?;
        Ok(row)
    }

    fn buffer(&self, py: Python<'_>, size: u64, zeroed: bool) -> PyResult<Buffer> {
        let spec = if zeroed { Spec::new().zeroed() } else { Spec::new() };
        let memory = py.detach(|| self.0.buffer(size, spec)).map_err(raise_core(py))?;
        Ok(Buffer(Mutex::new(Some(Arc::new(memory))), size))
    }

    /// Memory with a copy of these bytes.
    fn buffer_of(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        let data = Lent::of(data)?;
        let size = data.bytes().len() as u64;
        let memory = py.detach(|| {
            let memory = self.0.buffer(size, Spec::new())?;
            memory.copy_in(0, data.bytes())?;
            Ok(memory)
        });
        Ok(Buffer(Mutex::new(Some(Arc::new(memory.map_err(raise_core(py))?))), size))
    }

    fn load(&self, py: Python<'_>, data: &Bound<'_, PyAny>, own: bool) -> PyResult<Image> {
        let data = Held::of(data)?;
        let loader = if own { CubinLoader::Own } else { CubinLoader::Driver };
        py.detach(|| self.0.load_with(data.as_ref(), loader)).map(Image).map_err(raise(py))
    }

    fn kernel(&self, py: Python<'_>, image: &Image, name: &str) -> PyResult<Kernel> {
        let program = py.detach(|| self.0.kernel(&image.0, name)).map_err(raise(py))?;
        Ok(Kernel { program, device: self.0.clone() })
    }

    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.synchronize()).map_err(raise_core(py))
    }

    fn record(&self, py: Python<'_>) -> PyResult<Event> {
        py.detach(|| self.0.queue().record()).map(Event).map_err(raise(py))
    }

    /// Makes the device's context anew after an error of a kernel: what the error was.
    fn reset(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.0.reset()).map(|error| error.to_string())
    }
}

/// Memory of a GPU.
#[pyclass(frozen, module = "hoist._hoist")]
pub(crate) struct Buffer(Mutex<Option<Arc<Memory>>>, u64);

impl Buffer {
    fn memory(&self) -> PyResult<Arc<Memory>> {
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        memory.ok_or_else(|| PyValueError::new_err("the buffer was freed"))
    }
}

#[pymethods]
impl Buffer {
    #[getter]
    fn size(&self) -> u64 {
        self.1
    }

    #[getter]
    fn address(&self, py: Python<'_>) -> PyResult<u64> {
        self.memory()?.address().map_err(raise_core(py))
    }

    fn copy_in(&self, py: Python<'_>, offset: u64, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let (memory, data) = (self.memory()?, Lent::of(data)?);
        py.detach(|| memory.copy_in(offset, data.bytes())).map_err(raise_core(py))
    }

    fn copy_out<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        size: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let memory = self.memory()?;
        PyBytes::new_with(py, size, |bytes| {
            py.detach(|| memory.copy_out(offset, bytes)).map_err(raise_core(py))
        })
    }

    /// Copies as many bytes as the object has into it.
    fn copy_out_to(&self, py: Python<'_>, offset: u64, to: &Bound<'_, PyAny>) -> PyResult<()> {
        let (memory, mut to) = (self.memory()?, Lent::writable(to)?);
        py.detach(|| memory.copy_out(offset, to.bytes_mut())).map_err(raise_core(py))
    }

    fn free(&self) {
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(memory);
    }
}

/// Code on a GPU.
#[pyclass(frozen, module = "hoist._hoist")]
pub(crate) struct Image(Arc<NvImage>);

/// A mark in a queue.
#[pyclass(frozen, module = "hoist._hoist")]
pub(crate) struct Event(NvEvent);

#[pymethods]
impl Event {
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.wait()).map_err(raise(py))
    }

    fn is_reached(&self) -> bool {
        self.0.is_reached()
    }

    fn since(&self, py: Python<'_>, start: &Self) -> PyResult<f64> {
        self.0.since(&start.0).map(|time| time.as_secs_f64()).map_err(raise(py))
    }
}

/// A kernel that can be launched.
#[pyclass(frozen, module = "hoist._hoist")]
pub(crate) struct Kernel {
    program: NvProgram,
    device: NvDevice,
}

/// An argument that owns what it leads to.
enum Owned {
    Buffer(Arc<Memory>),
    Bytes(Vec<u8>),
}

impl Owned {
    /// Of a buffer, bytes of a structure, or a pair of type and number, which are bytes likewise.
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(buffer) = object.cast::<Buffer>() {
            return Ok(Self::Buffer(buffer.get().memory()?));
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.as_bytes().to_vec()));
        }
        let (kind, value): (Type, Bound<'_, PyAny>) = object.extract()?;
        let scalar = scalar(kind.0, &value)?;
        Ok(Self::Bytes(scalar.bytes().into_iter().take(scalar.r#type().size()).collect()))
    }
}

fn scalar(kind: Kind, value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    Ok(match kind {
        Kind::Bool => Scalar::U8(value.is_truthy()?.into()),
        Kind::I8 => Scalar::I8(value.extract()?),
        Kind::I16 => Scalar::I16(value.extract()?),
        Kind::I32 => Scalar::I32(value.extract()?),
        Kind::I64 => Scalar::I64(value.extract()?),
        Kind::U8 => Scalar::U8(value.extract()?),
        Kind::U16 => Scalar::U16(value.extract()?),
        Kind::U32 => Scalar::U32(value.extract()?),
        Kind::U64 | Kind::Pointer => Scalar::U64(value.extract()?),
        Kind::F32 => Scalar::F32(value.extract()?),
        Kind::F64 => Scalar::F64(value.extract()?),
        Kind::Void | Kind::Text => {
            return Err(PyTypeError::new_err("a kernel takes numbers, buffers and structures"));
        }
    })
}

#[pymethods]
impl Kernel {
    /// Launches it; gives seconds if the launch waits.
    #[pyo3(signature = (grid, block, args, shared, cluster, cooperative, wait))]
    #[expect(clippy::too_many_arguments, reason = "called from hoist/nv.py only")]
    fn launch(
        &self,
        py: Python<'_>,
        grid: [u32; 3],
        block: [u32; 3],
        args: Vec<Bound<'_, PyAny>>,
        shared: u64,
        cluster: Option<[u32; 3]>,
        cooperative: bool,
        wait: bool,
    ) -> PyResult<Option<f64>> {
        let owned = args.iter().map(Owned::of).collect::<PyResult<Vec<_>>>()?;
        let dynamic_shared =
            u32::try_from(shared).map_err(|_| PyOverflowError::new_err("shared: at most 4 GiB"))?;
        let launch = NvLaunch {
            grid,
            block,
            dynamic_shared,
            cluster,
            cooperative,
            wait,
            ..NvLaunch::new(1, 1)
        };
        let launched = py.detach(|| {
            let arguments: Vec<Argument<'_>> = owned
                .iter()
                .map(|one| match one {
                    Owned::Buffer(memory) => Argument::Buffer(memory),
                    Owned::Bytes(bytes) => Argument::Bytes(bytes),
                })
                .collect();
            // SAFETY: who launches a kernel guarantees it and its arguments.
            unsafe { self.program.launch(self.device.queue(), &arguments, &launch) }
        });
        Ok(launched.map_err(raise(py))?.map(|time| time.as_secs_f64()))
    }
}
