//! A kernel out of a real library, called with its own parameter layout.

use std::path::{Path, PathBuf};

use exec_core::Scalar;
use exec_nv::{CubinLoader, KernelImage, NvLaunch};

use crate::bench::{Bench, Failure, Outcome};
use crate::kernels::{compare, launch, put, take};
use crate::runs::Argument;

/// Fills `n` numbers: `kfunc<float, 0>(float *A, float *B, float value, long n)` of bitsandbytes.
const FILL: &str = "_Z5kfuncIfLi0EEvPT_S1_S0_l";

/// Files below a folder whose name begins so.
pub(crate) fn libraries(folder: &Path, prefix: &str, depth: u32, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && !path.is_symlink() && depth > 0 {
            libraries(&path, prefix, depth - 1, found);
        } else if name.to_string_lossy().starts_with(prefix)
            && name.to_string_lossy().contains(".so")
        {
            found.push(path);
        }
    }
}

/// Places where Python and CUDA keep libraries.
pub(crate) const PLACES: [&str; 5] =
    ["/opt", "/usr/local", "/usr/lib/python3", "/usr/lib/x86_64-linux-gnu", "/root"];

pub(crate) fn library(bench: &Bench) -> Outcome {
    let mut found = Vec::new();
    libraries(&bench.folder, "libbitsandbytes_cuda", 1, &mut found);
    for place in PLACES {
        libraries(Path::new(place), "libbitsandbytes_cuda13", 8, &mut found);
    }
    let mut words = Vec::new();
    let mut attempt = |path: &Path| -> Result<(), Failure> {
        let bytes = std::fs::read(path)?;
        let found = KernelImage::find(&bytes, bench.device.target(), Some(FILL))?;
        let kind = match found.first() {
            Some(KernelImage::Cubin(cubin)) => format!("a cubin of {} bytes", cubin.len()),
            _ => "PTX".into(),
        };
        for loader in [CubinLoader::Driver, CubinLoader::Own] {
            let image = bench.device.load_with(&bytes, loader)?;
            let memory = put(&bench.device, &vec![0f32; 10_000])?;
            let arguments = [
                Argument::Buffer(&memory),
                Argument::Value(Scalar::U64(0)),
                Argument::Value(Scalar::F32(2.5)),
                Argument::Value(Scalar::I64(9_999)),
            ];
            launch(&bench.device, &image, FILL, &arguments, NvLaunch::new(20, 512))?;
            // one fewer is asked for than there are
            let expected = [vec![2.5f32; 9_999], vec![0.0]].concat();
            compare(&take(&memory)?, &expected).map_err(|error| format!("{loader:?}: {error}"))?;
        }
        words.push(format!("{}: {FILL} from {kind}, both loaders", path.display()));
        Ok(())
    };
    for path in &found {
        attempt(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if words.is_empty() {
        return Err("no libbitsandbytes_cuda13*.so on this machine or in the folder".into());
    }
    Ok(words.join("; "))
}
