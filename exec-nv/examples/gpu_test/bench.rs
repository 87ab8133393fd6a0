//! What steps work on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use exec_nv::{CubinLoader, Driver, NvDevice, NvImage, NvOptions};

/// What went wrong, in words.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// What a step found, in one line.
pub(crate) type Outcome = Result<String, Failure>;

/// What steps work on.
pub(crate) struct Bench {
    pub(crate) device: NvDevice,
    pub(crate) folder: PathBuf,
}

/// The kernels as machine code, and as PTX.
pub(crate) const CUBIN: &str = "gpu-13.0-sm_90.fatbin";
pub(crate) const PTX: &str = "gpu-13.0-ptx.fatbin";
/// The program of two objects, linked by nvlink and by hoist.
pub(crate) const NVLINK: &str = "gpu_linked-13.0-sm_90.cubin";
pub(crate) const HOIST: &str = "gpu_linked-hoist-sm_90.cubin";

impl Bench {
    pub(crate) fn open(folder: &Path) -> Result<Self, Failure> {
        let driver = Arc::new(Driver::open()?);
        let device = NvDevice::open(&driver, 0, NvOptions::default())?;
        Ok(Self { device, folder: folder.to_owned() })
    }

    pub(crate) fn read(&self, file: &str) -> Result<Vec<u8>, Failure> {
        let path = self.folder.join(file);
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    pub(crate) fn load(&self, file: &str, loader: CubinLoader) -> Result<Arc<NvImage>, Failure> {
        Ok(self.device.load_with(&self.read(file)?, loader)?)
    }
}
