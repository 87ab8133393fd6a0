//! NVIDIA's compiler as a library, where there is one.

mod compile;
mod library;

pub use compile::{Compile, NvrtcOutput};
pub use library::Nvrtc;
