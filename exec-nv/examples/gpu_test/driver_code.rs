//! Code where the driver has put it: entered through a shell of ours, and changed in its place.

use core::ffi::{CStr, c_void};
use core::ptr;

use exec_nv::own::{self, Plan};
use exec_nv::{Driver, KernelImage};

use crate::bench::{Bench, CUBIN, Failure, Outcome};
use crate::kernels::{compare, put, take};
use crate::trampoline::{link, target};

/// The kernel whose shell enters the driver's code: it takes two addresses, and has more registers than what it enters.
const SHELL: &str = "literals";
/// What the function gives, as it was compiled and as it is changed to.
const NUMBERS: [u32; 2] = [0x1122_3344, 0x5566_7788];
/// Words of the function's code that are looked through.
const WORDS: u32 = 64;

/// The module's text.
pub(crate) fn ptx(sm: u32) -> String {
    include_str!("driver_code.ptx").replace("sm_SM", &target(sm)) + "\0"
}

/// A module of the driver's.
struct Module<'d> {
    driver: &'d Driver,
    module: cudarc::driver::sys::CUmodule,
}

impl<'d> Module<'d> {
    fn load(driver: &'d Driver, cubin: &[u8]) -> Result<Self, Failure> {
        let mut module = ptr::null_mut();
        // SAFETY: a whole cubin; a place of ours; the context is this thread's since the device was opened and used.
        unsafe { driver.cuModuleLoadData(&raw mut module, cubin.as_ptr().cast())? };
        Ok(Self { driver, module })
    }

    /// Launches one thread of a kernel and waits.
    ///
    /// # Safety
    /// The kernel takes these words, of 8 bytes or of 4.
    unsafe fn run(&self, kernel: &CStr, words: &mut [u64]) -> Result<(), Failure> {
        let mut function = ptr::null_mut();
        let (none, stream) = (ptr::null_mut(), ptr::null_mut());
        let mut places: Vec<*mut c_void> =
            words.iter_mut().map(|word| ptr::from_mut(word).cast()).collect();
        // SAFETY: places of ours; words are as the caller says, little-endian.
        unsafe {
            self.driver.cuModuleGetFunction(&raw mut function, self.module, kernel.as_ptr())?;
            let values = places.as_mut_ptr();
            self.driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, values, none)?;
            self.driver.cuCtxSynchronize()?;
        }
        Ok(())
    }
}

/// The module, and where its function and its kernel are.
fn load(bench: &Bench) -> Result<(Module<'_>, [u64; 2]), Failure> {
    let driver = bench.device.driver();
    let places = put(&bench.device, &[0i32; 4])?;
    let module = Module::load(driver, &link(driver, &ptx(bench.device.properties().sm))?)?;
    // SAFETY: an address of two words of 8 bytes.
    unsafe { module.run(c"ask", &mut [places.address()?])? };
    let found: Vec<u64> = take::<i32>(&places)?
        .as_chunks()
        .0
        .iter()
        .map(|[low, high]| u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32)
        .collect();
    match found.as_slice() {
        [function, kernel] if *function != 0 && *kernel != 0 => Ok((module, [*function, *kernel])),
        _ => Err(format!("the driver's code has no addresses: {found:x?}").into()),
    }
}

/// A shell of ours whose address is that of a kernel that the driver has loaded: whether shells are entered, whatever our memory is.
pub(crate) fn shell_to_driver(bench: &Bench) -> Outcome {
    let (module, [_, kernel]) = load(bench)?;
    let file = bench.read(CUBIN)?;
    let images = KernelImage::find(&file, bench.device.target(), Some(SHELL))?;
    let plan = Plan::of(images.first().ok_or("no image")?.bytes())?;
    let (offset, _) = plan.symbol(SHELL).ok_or("no kernel")?;
    let base = kernel.checked_sub(offset).ok_or("the driver's code is in front of everything")?;
    let shell = Module::load(module.driver, &own::shell(&plan, &plan.write(base)?, base, SHELL)?)?;
    let out = put(&bench.device, &[0i32])?;
    // SAFETY: the shell passes its two words on to the kernel, which takes as many.
    unsafe { shell.run(c"literals", &mut [0, out.address()?])? };
    compare(&take(&out)?, &[4711])
        .map(|text| format!("entered the driver's code at {kernel:#x}, {text}"))
}

/// Changes a word in the code of a function that the driver has loaded and that has run, and calls it again.
pub(crate) fn patched_code(bench: &Bench) -> Outcome {
    let (module, [function, _]) = load(bench)?;
    let out = put(&bench.device, &[0i32])?;
    let call = || -> Result<u32, Failure> {
        // SAFETY: an address of a word, and that of a function of this kind.
        unsafe { module.run(c"enter", &mut [out.address()?, function])? };
        Ok(take::<i32>(&out)?.first().ok_or("no number")?.cast_unsigned())
    };
    compare(&[call()?], &NUMBERS[..1])?;
    let code = put(&bench.device, &[0i32; WORDS as usize])?;
    // SAFETY: an address of so many words, and that of code, which is there.
    unsafe { module.run(c"peek", &mut [code.address()?, function, WORDS.into()])? };
    let words = take::<i32>(&code)?;
    let at = words.iter().position(|word| word.cast_unsigned() == NUMBERS[0]);
    let at = at.ok_or_else(|| format!("the number is not in the code: {words:x?}"))?;
    let place = function + 4 * at as u64;
    // the driver first, as it may not know the place for memory
    let new = NUMBERS[1].to_le_bytes();
    // SAFETY: so many bytes of ours; the place is code that nothing runs at the moment.
    let copied = unsafe { module.driver.cuMemcpyHtoD_v2(place, new.as_ptr().cast(), new.len()) };
    let way = match copied {
        Ok(()) => "cuMemcpyHtoD writes there".into(),
        Err(error) => {
            // SAFETY: an address of a word of code that nothing else runs.
            unsafe { module.run(c"poke", &mut [place, NUMBERS[1].into()])? };
            format!("a kernel writes there, not the driver: {error}")
        }
    };
    let found = [call()?, call()?];
    if found == [NUMBERS[1]; 2] {
        return Ok(format!("at {place:#x}: {way}; the next launch runs the new code"));
    }
    Ok(format!("at {place:#x}: {way}; STALE: the launches after the change gave {found:x?}"))
}
