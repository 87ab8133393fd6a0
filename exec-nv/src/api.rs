//! The driver API itself: the functions of the library, with their failures as errors.
#![expect(non_snake_case, clippy::too_many_arguments, reason = "names and arguments are CUDA's")]

use core::ffi::{c_char, c_int, c_uint, c_void};
use cudarc::driver::sys as cu;
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUlaunchConfig, CUlinkState, CUmodule,
    CUstream,
};

use crate::driver::Driver;
use crate::error::Error;
use crate::functions::functions;

macro_rules! methods {
    ($($symbol:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        /// The driver API itself. Every function fails with [`Error::NoDriverFunction`] if the driver does not have it, and with
        /// [`Error::Driver`] if it says so.
        impl Driver {
            $(
                #[doc = concat!("`", stringify!($symbol), "` of the CUDA driver API.")]
                ///
                /// # Errors
                /// What the driver says.
                ///
                /// # Safety
                /// What the CUDA driver API asks for.
                pub unsafe fn $symbol(&self, $($argument: $type),*) -> Result<(), Error> {
                    let Some(function) = self.functions().$symbol else {
                        return Err(Error::NoDriverFunction { function: stringify!($symbol) });
                    };
                    // SAFETY: as the caller says.
                    match unsafe { function($($argument),*) } {
                        0 => Ok(()),
                        code => Err(self.failure(stringify!($symbol), code)),
                    }
                }
            )*
        }
    };
}
functions!(methods);
