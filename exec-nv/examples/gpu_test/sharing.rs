//! Memory by other ways: pools, addresses and memory apart, other processes, other devices.

use std::process::Command;
use std::sync::Arc;

use exec_core::{Buffer, Device as _, ExternalMemory, LruAllocator, Spec};
use exec_nv::{
    Access, IpcEventHandle, IpcMemoryHandle, MemoryKind, NvAllocator, NvDevice, NvOptions,
};

use crate::bench::{Bench, Failure, Outcome};
use crate::kernels::{Numbers as _, compare, put, take};

const NUMBERS: [i32; 4] = [3, 1, 4, 1];
const CHANGED: [i32; 4] = [2, 7, 1, 8];

/// Numbers at an address.
///
/// # Safety
/// So many bytes are there, for longer than the buffer is used, and nobody else writes them meanwhile.
unsafe fn at(
    device: &NvDevice,
    address: u64,
) -> Result<Buffer<LruAllocator<NvAllocator>>, Failure> {
    // SAFETY: as the caller says.
    let memory = unsafe { ExternalMemory::new(address, 16) };
    Ok(Buffer::external(device.allocator(), memory, Spec::new().aligned(1))?)
}

/// What the pool of stream-ordered memory keeps, and what trimming leaves.
pub(crate) fn pool(bench: &Bench) -> Outcome {
    const SIZE: u64 = 8 << 20;
    let device = &bench.device;
    let pool = device.memory_pool()?;
    pool.set_release_threshold(1 << 30)?;
    let allocator = device.allocator_of(MemoryKind::StreamOrdered);
    let buffers: Vec<_> = (0..4)
        .map(|_| Buffer::new(&allocator, SIZE, Spec::new().not_kept()))
        .collect::<Result<_, _>>()?;
    let full = pool.statistics()?;
    for buffer in buffers {
        buffer.free()?;
    }
    device.synchronize()?;
    let kept = pool.statistics()?;
    pool.trim(0)?;
    let trimmed = pool.statistics()?;
    let numbers = [full, kept, trimmed].map(|found| (found.used >> 20, found.reserved >> 20));
    if full.used < 4 * SIZE || kept.used >= SIZE || kept.reserved < 4 * SIZE {
        return Err(format!("MiB used and reserved: {numbers:?}").into());
    }
    if trimmed.reserved >= kept.reserved {
        return Err(format!("trimming leaves all, MiB used and reserved: {numbers:?}").into());
    }
    Ok(format!("MiB used and reserved, full, freed, trimmed: {numbers:?}"))
}

/// One piece of memory at two addresses, and once more by a file that could be sent elsewhere.
pub(crate) fn virtual_memory(bench: &Bench) -> Outcome {
    let device = &bench.device;
    let piece = device.granularity(true)?.minimum;
    let mut range = device.reserve(4 * piece, 0)?;
    let memory = Arc::new(device.physical_memory(piece, true)?);
    range.map(0, &memory)?;
    range.map(2 * piece, &memory)?;
    {
        use std::os::fd::AsFd as _;
        let file = memory.share()?;
        range.map(3 * piece, &Arc::new(device.import_memory(file.as_fd(), piece)?))?;
    }
    for part in [0, 2 * piece, 3 * piece] {
        range.set_access(part, piece, &[(device, Access::ReadWrite)])?;
    }
    // SAFETY: mapped, until `range` goes; the buffers go before it.
    let at_part = |part| unsafe { at(device, range.address() + part * piece) };
    let [first, second, third] = [0, 2, 3].map(at_part);
    let (first, second, third) = (first?, second?, third?);
    first.copy_in(0, &i32::to_bytes(&NUMBERS))?;
    device.synchronize()?;
    compare(&take(&second)?, &NUMBERS)?;
    compare(&take(&third)?, &NUMBERS).map_err(|error| format!("imported: {error}"))?;
    drop((first, second, third));
    range.unmap(0)?;
    // SAFETY: still mapped.
    let last = unsafe { at(device, range.address() + 2 * piece)? };
    compare(&take(&last)?, &NUMBERS)?;
    Ok(format!("one piece of {} KiB at two addresses, and once more by a file", piece >> 10))
}

/// Another process reads our numbers, and writes others.
pub(crate) fn processes(bench: &Bench) -> Outcome {
    let memory = put(&bench.device, &NUMBERS)?;
    let handle = bench.device.share_memory(&memory)?;
    let mark = bench.device.queue().record_shareable()?;
    let names = [handle.0, mark.share()?.0].concat();
    let words: String = names.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut child = Command::new(std::env::current_exe()?);
    let done = child.arg("other_process").arg(words).output()?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("the other process: {}, {}", done.status, said.trim()).into());
    }
    compare(&take(&memory)?, &CHANGED)
        .map(|_| "read and written by another process, which waited for a mark".into())
}

/// What the other process does.
pub(crate) fn other_process(words: &str) -> Outcome {
    let (pairs, _) = words.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).unwrap_or(""), 16);
    let bytes = pairs.iter().map(byte).collect::<Result<Vec<_>, _>>()?;
    let names = bytes.as_chunks().0;
    let [memory, mark] = names else { return Err("two handles have 128 bytes".into()) };
    let driver = Arc::new(exec_nv::Driver::open()?);
    let device = NvDevice::open(&driver, 0, NvOptions::default())?;
    let opened = device.open_memory(IpcMemoryHandle(*memory))?;
    device.queue().wait_for_event(&device.open_event(IpcEventHandle(*mark))?)?;
    device.queue().synchronize()?;
    // SAFETY: the other process has 16 bytes there, and waits for us.
    let memory = unsafe { at(&device, opened.address())? };
    compare(&take(&memory)?, &NUMBERS)?;
    memory.copy_in(0, &i32::to_bytes(&CHANGED))?;
    device.synchronize()?;
    drop(memory);
    Ok("done".into())
}

/// Copies to another device, and back.
pub(crate) fn peers(bench: &Bench) -> Outcome {
    let (device, driver) = (&bench.device, bench.device.driver());
    if driver.device_count()? < 2 {
        return Ok("left out: one GPU".into());
    }
    let other = NvDevice::open(driver, 1, NvOptions::default())?;
    let attributes = device.peer_attributes(&other)?;
    let (here, there) = (put(device, &NUMBERS)?, put(&other, &CHANGED)?);
    device.queue().copy(&here, &there)?;
    device.queue().synchronize()?;
    compare(&take(&there)?, &NUMBERS)?;
    let reached = device.reach(&other);
    NvDevice::copy(&there, &here)?;
    compare(&take(&here)?, &NUMBERS)?;
    let words = match reached {
        Ok(()) => device.leave(&other).map(|()| "reached and left".into())?,
        Err(error) => error.to_string(),
    };
    Ok(format!("copied to and fro; {words}; {attributes:?}"))
}
