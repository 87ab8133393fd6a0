//! Tensor maps: what a kernel is given to copy boxes of a tensor with (TMA). Encoded by the driver; what is wrong is said before that.

mod check;
mod error;
mod layout;

pub use error::TensorMapError;
pub use layout::{
    Im2colBox, Im2colWideBox, Interleave, L2Promotion, OutOfBounds, Swizzle, TensorLayout,
    TensorType,
};

use core::ffi::c_void;
use core::fmt;
use core::ptr;

use exec_core::{LruAllocator, View};
use zerocopy::IntoBytes as _;

use crate::arguments::NvArgument as Argument;
use crate::device::NvDevice;
use crate::error::Error;
use crate::memory::NvAllocator;

/// A tensor in memory, and the box of it that one instruction copies, as the hardware knows them: 128 bytes that a kernel takes as a
/// parameter (`const __grid_constant__ CUtensorMap`). It names memory, and does not keep it.
///
/// ```no_run
/// # use exec_nv::{NvDevice, Swizzle, TensorLayout, TensorType};
/// # use exec_core::{Device as _, Spec};
/// # fn make(device: &NvDevice) -> Result<(), Box<dyn std::error::Error>> {
/// // 1024 rows of 512 halves, copied in boxes of 64 by 64
/// let matrix = device.buffer(1024 * 512 * 2, Spec::new().aligned(128))?;
/// let layout = TensorLayout::new(TensorType::F16, &[512, 1024])?.swizzle(Swizzle::B128);
/// let map = device.tensor_map(&matrix, &layout, &[64, 64])?;
/// let argument = map.argument();
/// # let _ = argument;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct TensorMap {
    words: [u64; 16],
}

impl TensorMap {
    /// Its bytes, which mean what they mean to the hardware.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.words.as_bytes()
    }

    /// It, as an argument of a kernel.
    #[must_use]
    pub fn argument(&self) -> Argument<'_> {
        Argument::Bytes(self.bytes())
    }
}

impl fmt::Debug for TensorMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorMap({:x?})", self.words)
    }
}

/// As the driver wants an address.
const fn pointer(address: u64) -> *mut c_void {
    ptr::without_provenance_mut(address as usize)
}

impl NvDevice {
    /// The tensor that `view` holds, in this layout, to be copied in boxes of so many elements, by dimension, the innermost first.
    ///
    /// # Errors
    /// [`Error::TensorMap`] with what is against the rules, before the driver is asked; what the driver says.
    pub fn tensor_map(
        &self,
        view: &View<LruAllocator<NvAllocator>>,
        layout: &TensorLayout,
        tile: &[u32],
    ) -> Result<TensorMap, Error> {
        let address = view.address()?;
        check::version(self.properties().driver, layout)?;
        check::tiled(self.properties().sm, address, view.size(), layout, tile)?;
        let mut map = TensorMap { words: [0; 16] };
        let TensorLayout { kind, rank, sizes, strides, steps, .. } = layout;
        // SAFETY: as many sizes, strides and steps as there can be dimensions, and as many of `tile` as there are; the place is aligned.
        self.shared().context.run(|driver| unsafe {
            driver.cuTensorMapEncodeTiled(
                (&raw mut map).cast(),
                *kind as u32,
                *rank,
                pointer(address),
                sizes.as_ptr(),
                strides.as_ptr(),
                tile.as_ptr(),
                steps.as_ptr(),
                layout.interleave as u32,
                layout.swizzle as u32,
                layout.promotion as u32,
                layout.out_of_bounds as u32,
            )
        })?;
        Ok(map)
    }

    /// The same of images (`[channels, width, images]`, with `height` and `depth` before the images where there are any), to be copied as
    /// columns for convolutions.
    ///
    /// # Errors
    /// As [`tensor_map`](Self::tensor_map).
    pub fn tensor_map_im2col(
        &self,
        view: &View<LruAllocator<NvAllocator>>,
        layout: &TensorLayout,
        area: &Im2colBox<'_>,
    ) -> Result<TensorMap, Error> {
        let address = view.address()?;
        check::version(self.properties().driver, layout)?;
        check::im2col(self.properties().sm, address, view.size(), layout, area)?;
        let mut map = TensorMap { words: [0; 16] };
        let TensorLayout { kind, rank, sizes, strides, steps, .. } = layout;
        // SAFETY: as above, and both corners have two numbers less than there are dimensions.
        self.shared().context.run(|driver| unsafe {
            driver.cuTensorMapEncodeIm2col(
                (&raw mut map).cast(),
                *kind as u32,
                *rank,
                pointer(address),
                sizes.as_ptr(),
                strides.as_ptr(),
                area.lower.as_ptr(),
                area.upper.as_ptr(),
                area.channels,
                area.pixels,
                steps.as_ptr(),
                layout.interleave as u32,
                layout.swizzle as u32,
                layout.promotion as u32,
                layout.out_of_bounds as u32,
            )
        })?;
        Ok(map)
    }

    /// The same of images, to be copied as columns that go along the width alone: from `sm_100` on.
    ///
    /// # Errors
    /// As [`tensor_map`](Self::tensor_map).
    pub fn tensor_map_im2col_wide(
        &self,
        view: &View<LruAllocator<NvAllocator>>,
        layout: &TensorLayout,
        area: &Im2colWideBox,
    ) -> Result<TensorMap, Error> {
        let address = view.address()?;
        check::version(self.properties().driver, layout)?;
        check::wide_version(self.properties().driver)?;
        check::im2col_wide(self.properties().sm, address, view.size(), layout, area)?;
        let mut map = TensorMap { words: [0; 16] };
        let TensorLayout { kind, rank, sizes, strides, steps, .. } = layout;
        // SAFETY: as many sizes, strides and steps as there can be dimensions; the place is aligned.
        self.shared().context.run(|driver| unsafe {
            driver.cuTensorMapEncodeIm2colWide(
                (&raw mut map).cast(),
                *kind as u32,
                *rank,
                pointer(address),
                sizes.as_ptr(),
                strides.as_ptr(),
                area.lower,
                area.upper,
                area.channels,
                area.pixels.unwrap_or(check::PIXELS_OF_128),
                steps.as_ptr(),
                layout.interleave as u32,
                // `CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128`
                area.pixels.is_none().into(),
                layout.swizzle as u32,
                layout.promotion as u32,
                layout.out_of_bounds as u32,
            )
        })?;
        Ok(map)
    }

    /// Lets a map name another tensor of the same layout.
    ///
    /// # Errors
    /// [`Error::TensorMap`] if the memory is not aligned; what the driver says.
    pub fn move_tensor_map(
        &self,
        map: &mut TensorMap,
        view: &View<LruAllocator<NvAllocator>>,
        layout: &TensorLayout,
    ) -> Result<(), Error> {
        let address = view.address()?;
        check::place(address, view.size(), layout)?;
        // SAFETY: a map that the driver made.
        self.shared().context.run(|driver| unsafe {
            driver.cuTensorMapReplaceAddress(ptr::from_mut(map).cast(), pointer(address))
        })
    }
}
