//! CUDA C++ that is compiled when it is launched.

use std::borrow::Cow;

use anyhow::{Context as _, Result};
use exec_nv::{Compile, Nvrtc, ProfilerRange};

use super::request::Launch;

/// The code of a file for an architecture, which is compiled if it is a source, and the name in it of the kernel that is to be launched.
pub(super) fn code<'b>(
    request: &Launch,
    bytes: &'b [u8],
    sm: u32,
) -> Result<(Cow<'b, [u8]>, String)> {
    if !request.is_source() {
        return Ok((Cow::Borrowed(bytes), request.kernel.clone()));
    }
    let _range = ProfilerRange::new("compile");
    let label = request.label();
    let text = core::str::from_utf8(bytes).with_context(|| label.clone())?;
    let options: Vec<_> = request.nvrtc_options.iter().map(String::as_str).collect();
    let kernels = [request.kernel.as_str()];
    let asked = Compile { name: &label, sm, options: &options, kernels: &kernels };
    let compiled = Nvrtc::open()?.compile(text, &asked).with_context(|| label.clone())?;
    let name = compiled.names.into_iter().next().unwrap_or_else(|| request.kernel.clone());
    Ok((Cow::Owned(compiled.code), name))
}
