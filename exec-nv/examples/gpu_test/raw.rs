//! Steps without CUDA: the kernel driver alone.

use std::path::Path;
use std::sync::Arc;

use exec_core::{Device as _, Scalar, Spec};
use exec_nv::NvLaunch;
use exec_nv::raw::{Linux, RawArgument, RawCall, RawDevice, RawImage, RawOptions};

use crate::bench::{CUBIN, Failure, NVLINK, Outcome, file_for};
use crate::kernels::{compare, launch, put, take, vector_add};
use crate::runs::Argument;

/// A device without CUDA, and an image on it.
pub(crate) type Raw = RawDevice<Linux>;
pub(crate) type Image = Arc<RawImage<Linux>>;

fn open() -> Result<Raw, Failure> {
    Ok(RawDevice::open(Linux, 0, RawOptions::default())?)
}

fn load(device: &Raw, folder: &Path, file: &str) -> Result<Image, Failure> {
    let path = folder.join(file_for(device.target(), file));
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(device.load(&bytes)?)
}

/// A step that others have, too, on the image in a file.
pub(crate) fn on(folder: &Path, file: &str, run: fn(&Raw, &Image) -> Outcome) -> Outcome {
    let device = open()?;
    let image = load(&device, folder, file)?;
    run(&device, &image)
}

pub(crate) fn bring_up(_: &Path) -> Outcome {
    let device = open()?;
    let (driver, found) = (device.gpu().client().version(), device.properties());
    let classes = device.gpu().classes();
    Ok(format!(
        "driver {driver}, {}, sm_{}, {} SMs, {classes:x?}",
        found.name, found.sm, found.sm_count
    ))
}

pub(crate) fn copies(_: &Path) -> Outcome {
    let device = open()?;
    let numbers: Vec<i32> = (0..5_000_001).map(|at| at * 7).collect();
    let there = put(&device, &numbers)?;
    compare(&take(&there)?, &numbers)?;
    let host = device.buffer(there.size(), Spec::new().host_visible())?;
    device.copy(&there, &host)?;
    compare(&take(&host)?, &numbers)
}

/// Two queues, one of which waits for the other, and launches that the GPU makes one after the other by itself.
pub(crate) fn queues(folder: &Path) -> Outcome {
    let device = open()?;
    let image = load(&device, folder, NVLINK)?;
    let (across, total) = (device.kernel(&image, "across")?, device.kernel(&image, "read_total")?);
    let (input, out) = (put(&device, &[1i32; 32])?, put(&device, &[0i32; 32])?);
    let found = put(&device, &[0i32])?;
    let of_across = [RawArgument::Buffer(&input), RawArgument::Buffer(&out)];
    let of_total = [RawArgument::Buffer(&found)];
    let (all, one) = (NvLaunch::new(1, 32), NvLaunch::new(1, 1));
    let other = device.new_queue()?;
    // SAFETY: the kernels are ours, and get what they take.
    unsafe {
        across.launch(device.queue(), &of_across, &all)?;
        other.wait_for(device.queue())?;
        let calls = [
            RawCall { program: &across, arguments: &of_across, launch: all },
            RawCall { program: &total, arguments: &of_total, launch: one },
        ];
        other.launches(&calls)?;
    }
    other.synchronize()?;
    device.synchronize()?;
    compare(&take(&found)?, &[5 + 64])
}

/// What a kernel's bad access does, how it is named, and what a reset makes good.
pub(crate) fn fault(folder: &Path) -> Outcome {
    let device = open()?;
    let image = load(&device, folder, CUBIN)?;
    let nowhere = [Argument::Value(Scalar::U64(0x12_3456_7890))];
    let error = match launch(&device, &image, "faults", &nowhere, NvLaunch::new(1, 1)) {
        Ok(()) => return Err("a write to 0x1234567890 was no error".into()),
        Err(error) => error.to_string(),
    };
    if device.fault().is_none() || device.buffer(64, Spec::new()).is_ok() {
        return Err(format!("{error} does not stick").into());
    }
    if device.reset().is_none() || device.fault().is_some() {
        return Err(format!("{error}, and no reset: {:?}", device.fault()).into());
    }
    vector_add(&device, &image).map_err(|after| format!("{error}; after a reset: {after}"))?;
    let named = if error.contains("write at 0x1234567890") { "named" } else { "NOT NAMED" };
    Ok(format!("sticks, and a reset helps; the access is {named}: {error}"))
}
