//! Code that is loaded once, for all devices.

use std::sync::Arc;

use crate::device::NvDevice;
use crate::error::Error;
use crate::image::KernelImage;
use crate::loaded::NvImage;
use crate::module::Library;

/// Code that the driver has loaded once (`cuLibraryLoadData`), for every device of this architecture: each gets it when a program is made
/// there.
///
/// ```no_run
/// # fn launch(devices: &[exec_nv::NvDevice], bytes: &[u8]) -> Result<(), exec_nv::Error> {
/// let library = exec_nv::NvLibrary::load(&devices[0], bytes)?;
/// for device in devices {
///     let kernel = device.kernel(&library.on(device), "scale")?;
///     println!("{:?}", kernel.attributes()?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NvLibrary(Vec<(KernelImage<'static>, Arc<Library>)>);

impl NvLibrary {
    /// Loads the code of `bytes` that is for devices as this one.
    ///
    /// # Errors
    /// As [`KernelImage::find`](crate::KernelImage::find); what the driver says.
    pub fn load(device: &NvDevice, bytes: &[u8]) -> Result<Self, Error> {
        let images = KernelImage::find(bytes, device.target(), None)?;
        let load = |image: KernelImage<'_>| {
            let library = Library::load(device.driver(), &image)?;
            Ok((image.into_owned(), Arc::new(library)))
        };
        images.into_iter().map(load).collect::<Result<_, _>>().map(Self)
    }

    /// The code on a device. It stays as long as that is used, even if the library is dropped.
    #[must_use]
    pub fn on(&self, device: &NvDevice) -> Arc<NvImage> {
        Arc::new(NvImage::of_libraries(device.shared(), &self.0))
    }
}
