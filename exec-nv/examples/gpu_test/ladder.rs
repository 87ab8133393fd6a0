//! From NVIDIA's cubin to our shell, one change at a time: the first that the driver refuses names the cause. And the shell with our image
//! in memory of each kind.

use core::ffi::{c_char, c_void};
use core::ptr;
use std::path::Path;
use std::sync::Arc;

use elf_core::names::{
    SHF_ALLOC as ALLOC, SHF_WRITE as WRITE, SHT_CUDA_INFO as INFO, SHT_NULL as NULL,
    SHT_REL as REL, SHT_RELA as RELA, SHT_SYMTAB as SYMTAB,
};
use elf_core::raw64::Sym;
use exec_core::{Buffer, Device as _, ExternalMemory, Spec};
use exec_nv::own::{self, Plan};
use exec_nv::{Access, KernelImage, MemoryKind};
use fatbin::TargetDevice;
use nvinfo::Cubin;
use zerocopy::FromBytes;

use crate::bench::{Bench, CUBIN, Failure, Outcome};
use crate::kernels::{compare, put, take};
use crate::parts::{Part, parts, write};
use crate::renumber::renumbered;

const KERNEL: &str = "vector_add";
/// `NOP`.
const NOP: [u64; 2] = [0x0000_0000_0000_7918, 0x000f_c000_0000_0000];
/// Steps of the ladder.
pub(crate) const LEVELS: u32 = 9;

/// The cubin of a step of the ladder: 1 is NVIDIA's, 7 our shell, 8 the shell with its segments grouped, 9 the shell without null
/// sections and symbols.
fn cubin(level: u32, original: &[u8], shell: &[u8]) -> Result<Vec<u8>, Failure> {
    if let 1 | 7 = level {
        return Ok(if level == 1 { original } else { shell }.to_vec());
    }
    if level == 9 {
        return renumbered(shell);
    }
    let (mut ours, shells) = (parts(original)?, parts(shell)?);
    if level == 8 {
        return write(original, &shells, true);
    }
    let parsed = Cubin::parse(original)?;
    let text = parsed.kernel(KERNEL.into()).ok_or("no kernel")?.section();
    if level >= 3 {
        for (index, (part, shell)) in (0u32..).zip(ours.iter_mut().zip(&shells)) {
            let of_text = part.header.sh_info.get() == text;
            if index == text {
                // as long as it was
                let size = part.bytes.len();
                part.bytes.clone_from(&shell.bytes);
                while part.bytes.len() < size {
                    part.bytes.extend(NOP.iter().flat_map(|word| word.to_le_bytes()));
                }
            } else if matches!(part.kind(), REL | RELA) && of_text {
                *part = Part::null()?;
            } else {
                let records = level >= 4 && part.kind() == INFO && of_text;
                // variables go with their symbols
                let flags = part.header.sh_flags.get();
                let variable =
                    flags & (WRITE | ALLOC) == WRITE | ALLOC && part.header.sh_info.get() == 0;
                let others = level >= 5 && part.kind() != SYMTAB && !variable;
                if records || others || level >= 6 {
                    part.clone_from(shell);
                }
            }
        }
    }
    if level == 5 {
        empty_what_is_gone(&mut ours)?;
    }
    write(original, &ours, false)
}

/// Symbols of sections that are null now have no size and no place: no tool takes others.
fn empty_what_is_gone(parts: &mut [Part]) -> Result<(), Failure> {
    let gone: Vec<bool> = parts.iter().map(|part| part.kind() == NULL).collect();
    for part in parts.iter_mut().filter(|part| part.kind() == SYMTAB) {
        let rows = <[Sym]>::mut_from_bytes(&mut part.bytes).map_err(|_| "a symbol table")?;
        for row in rows {
            let row: &mut Sym = row;
            if gone.get(usize::from(row.st_shndx.get())).is_some_and(|gone| *gone) {
                row.st_value.set(0);
                row.st_size.set(0);
            }
        }
    }
    Ok(())
}

/// NVIDIA's cubin for this device.
fn original(bench: &Bench) -> Result<Vec<u8>, Failure> {
    cubin_of(&bench.read(CUBIN)?, bench.device.target())
}

fn cubin_of(file: &[u8], target: TargetDevice) -> Result<Vec<u8>, Failure> {
    let images = KernelImage::find(file, target, Some(KERNEL))?;
    let image = images.into_iter().next().ok_or("no image")?;
    Ok(image.bytes().to_vec())
}

/// Loads a cubin by the driver, launches the kernel and looks at what comes.
fn run(bench: &Bench, cubin: &[u8]) -> Outcome {
    let driver = bench.device.driver();
    let numbers: Vec<f32> = (0..1000).map(|index| index as f32).collect();
    let (a, sum) = (put(&bench.device, &numbers)?, put(&bench.device, &[0f32; 1000])?);
    let (mut one, mut other, mut out, mut count) =
        (a.address()?, a.address()?, sum.address()?, 1000);
    let mut parameters: [*mut c_void; 4] = [
        (&raw mut one).cast(),
        (&raw mut other).cast(),
        (&raw mut out).cast(),
        (&raw mut count).cast::<i32>().cast(),
    ];
    let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: a whole cubin; places of ours; the kernel takes three addresses and a number.
    unsafe {
        driver.cuModuleLoadData(&raw mut module, cubin.as_ptr().cast())?;
        driver.cuModuleGetFunction(&raw mut function, module, c"vector_add".as_ptr())?;
        let (none, stream) = (ptr::null_mut(), ptr::null_mut());
        let places = parameters.as_mut_ptr();
        driver.cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, stream, places, none)?;
        driver.cuCtxSynchronize()?;
        record();
        driver.cuModuleUnload(module)?;
    }
    let expected: Vec<f32> = numbers.iter().map(|number| number * 2.0).collect();
    compare(&take(&sum)?, &expected)
}

/// Has the recorder, if this runs under it, write down what is mapped now: the ring, the launch block, the doorbell's page.
#[cfg(unix)]
fn record() {
    let program = libloading::os::unix::Library::this();
    // SAFETY: a function of this type in the recorder, the only one of this name.
    unsafe {
        if let Ok(dump) = program.get::<unsafe extern "C" fn(*const c_char)>(b"recorder_dump\0") {
            dump(c"after the launch".as_ptr());
        }
    }
}

#[cfg(not(unix))]
const fn record() {}

/// One step of the ladder.
pub(crate) fn level<const LEVEL: u32>(bench: &Bench) -> Outcome {
    let original = original(bench)?;
    let plan = Plan::of(&original)?;
    let spec = Spec::new().aligned(plan.alignment().max(256));
    let memory = bench.device.buffer(plan.memory_size(), spec)?;
    let base = memory.address()?;
    let image = plan.write(base)?;
    memory.copy_in(0, &image)?;
    let shell = own::shell(&plan, &image, base, KERNEL)?;
    let cubin = cubin(LEVEL, &original, &shell)?;
    // what we cannot read ourselves is no finding about the driver
    Cubin::parse(&cubin)?.kernel(KERNEL.into()).ok_or("the kernel is gone")?;
    run(bench, &cubin).map(|found| format!("{} bytes, {found}", cubin.len()))
}

/// Writes the cubin of every step into a folder, as they are where our image is at `base`: for tools that read cubins.
pub(crate) fn write_all(file: &[u8], target: TargetDevice, base: u64, out: &Path) -> Outcome {
    let original = cubin_of(file, target)?;
    let plan = Plan::of(&original)?;
    let shell = own::shell(&plan, &plan.write(base)?, base, KERNEL)?;
    for level in 1..=LEVELS {
        let path = out.join(format!("ladder_{level}.cubin"));
        std::fs::write(&path, cubin(level, &original, &shell)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(format!("{LEVELS} cubins in {}", out.display()))
}

/// The own loader's image in memory of a kind: 0 device, 1 stream-ordered, 2 pinned, 3 managed, 4 mapped by ourselves.
pub(crate) fn code_in<const KIND: usize>(bench: &Bench) -> Outcome {
    const KINDS: [MemoryKind; 4] =
        [MemoryKind::Device, MemoryKind::StreamOrdered, MemoryKind::Pinned, MemoryKind::Managed];
    let (device, original) = (&bench.device, original(bench)?);
    let plan = Plan::of(&original)?;
    let spec = || Spec::new().aligned(plan.alignment().max(256));
    let size = plan.memory_size();
    let mut range = None;
    let memory = match KINDS.get(KIND) {
        Some(&kind) => Buffer::new(&device.allocator_of(kind), size, spec())?,
        None => {
            let whole = size.next_multiple_of(device.granularity(false)?.minimum);
            let range = range.insert(device.reserve(whole, 0)?);
            range.map(0, &Arc::new(device.physical_memory(whole, false)?))?;
            range.set_access(0, whole, &[(device, Access::ReadWrite)])?;
            // SAFETY: so many bytes are there, as long as the range is, and nobody else has them.
            let external = unsafe { ExternalMemory::new(range.address(), size) };
            Buffer::external(device.allocator(), external, spec())?
        }
    };
    let base = memory.address()?;
    let image = plan.write(base)?;
    memory.copy_in(0, &image)?;
    device.synchronize()?;
    let found = run(bench, &own::shell(&plan, &image, base, KERNEL)?)?;
    drop(memory);
    drop(range);
    Ok(format!("at {base:#x}, {found}"))
}
