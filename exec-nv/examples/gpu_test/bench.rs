//! What steps work on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use exec_nv::{CubinLoader, Driver, NvDevice, NvImage, NvOptions};
use fatbin::{CudaVersion, TargetDevice};

/// What went wrong, in words.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// What a step found, in one line.
pub(crate) type Outcome = Result<String, Failure>;

/// What steps work on.
pub(crate) struct Bench {
    pub(crate) device: NvDevice,
    pub(crate) folder: PathBuf,
}

/// The kernels as machine code, and as PTX, of the newest version of CUDA: for older drivers there are the same of older ones.
pub(crate) const CUBIN: &str = "gpu-13.0-sm_90.fatbin";
pub(crate) const PTX: &str = "gpu-13.0-ptx.fatbin";
/// The program of two objects, linked by nvlink, and by hoist, which writes the newest form alone.
pub(crate) const NVLINK: &str = "gpu_linked-13.0-sm_90.cubin";
pub(crate) const HOIST: &str = "gpu_linked-hoist-sm_90.cubin";

/// The version of CUDA in names of files, and the older ones that there are files of.
const NEWEST: &str = "13.0";
const OLDER: [(CudaVersion, &str); 3] = [
    (CudaVersion::new(12, 8), "12.8"),
    (CudaVersion::new(12, 4), "12.4"),
    (CudaVersion::new(12, 0), "12.0"),
];

/// The kernels for devices that are none of sm_90, by the newest compiler alone, and from which SM on.
const OTHERS: [(u32, &str); 3] = [
    (120, "gpu-13.5-sm_120.fatbin"),
    (100, "gpu-13.5-sm_100.fatbin"),
    (0, "gpu-13.5-sm_80.fatbin"),
];

/// The name of the file that device and driver take. A driver that is older than all is given the oldest.
pub(crate) fn file_for(TargetDevice { sm, driver }: TargetDevice, file: &str) -> String {
    if file == CUBIN
        && !(90..100).contains(&sm)
        && let Some((_, other)) = OTHERS.iter().find(|(first, _)| sm >= *first)
    {
        return (*other).into();
    }
    if driver.major >= 13 {
        return file.into();
    }
    let older = OLDER.iter().find(|(version, _)| driver >= *version).or(OLDER.last());
    file.replace(NEWEST, older.map_or(NEWEST, |(_, name)| *name))
}

impl Bench {
    pub(crate) fn open(folder: &Path) -> Result<Self, Failure> {
        let driver = Arc::new(Driver::open()?);
        let device = NvDevice::open(&driver, 0, NvOptions::default())?;
        Ok(Self { device, folder: folder.to_owned() })
    }

    /// The bytes of a file of the folder, of the version that is for the driver.
    pub(crate) fn read(&self, file: &str) -> Result<Vec<u8>, Failure> {
        let path = self.folder.join(file_for(self.device.target(), file));
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    pub(crate) fn load(&self, file: &str, loader: CubinLoader) -> Result<Arc<NvImage>, Failure> {
        Ok(self.device.load_with(&self.read(file)?, loader)?)
    }
}
