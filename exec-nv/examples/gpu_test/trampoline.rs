//! Code in our memory entered from PTX: what the hardware does, whatever the driver thinks of shells.

use core::ffi::c_void;
use core::fmt::Write as _;
use core::ptr;

use exec_core::Device as _;
use exec_nv::{CubinLoader, Driver};
use nvinfo::{Cubin, Instructions};

use crate::bench::{Bench, CUBIN, Failure, Outcome};
use crate::kernels::{compare, put, take};

/// `CU_JIT_INPUT_PTX`.
const INPUT_PTX: u32 = 1;
/// The architecture that PTX is written for, unless the device is older: its version of PTX knows no newer ones than sm_90, and the driver
/// compiles for what there is.
const TARGET: u32 = 75;

/// `sm_75`, or what the device has.
pub(crate) fn target(sm: u32) -> String {
    format!("sm_{}", sm.min(TARGET))
}

/// Opcode of a call to an address in registers.
const CALL_ABS: u16 = 0x343;

/// A kernel that calls the address in its last parameter. In front of it is a block of `parameters` bytes, which the called code
/// takes for its own. What is never run makes the kernel have as many registers.
pub(crate) fn ptx(sm: u32, parameters: u32, registers: u32) -> Result<String, Failure> {
    let mut text = format!(
        ".version 7.8\n.target {}\n.address_size 64\n\
         .visible .entry trampoline(.param .align 8 .b8 block[{parameters}], .param .u64 target) .maxnreg {registers}\n{{\n\
         .reg .pred %go;\n.reg .u64 %target, %null;\n.reg .b32 %r<{registers}>;\n\
         ld.param.u64 %target, [target];\nsetp.ne.u64 %go, %target, 0;\n@%go bra enter;\nmov.u64 %null, 0;\n",
        target(sm)
    );
    for register in 0..registers {
        writeln!(text, "ld.volatile.global.b32 %r{register}, [%null+{}];", register * 4)?;
    }
    for register in 0..registers {
        writeln!(text, "st.volatile.global.b32 [%null+{}], %r{register};", register * 4)?;
    }
    text.push_str("enter:\nshape: .callprototype _ ();\ncall %target, (), shape;\nret;\n}\n\0");
    Ok(text)
}

/// The cubin that the driver's linker makes of PTX: relocatable first, so that calls are absolute.
pub(crate) fn link(driver: &Driver, ptx: &str) -> Result<Vec<u8>, Failure> {
    let none = ptr::null_mut();
    let (mut state, mut cubin, mut size) = (ptr::null_mut(), ptr::null_mut(), 0);
    // SAFETY: no options; the text ends in NUL; the places are ours; the cubin is the state's, and copied before that goes.
    unsafe {
        driver.cuLinkCreate_v2(0, none, ptr::null_mut(), &raw mut state)?;
        let outcome = driver
            .cuLinkAddData_v2(
                state,
                INPUT_PTX,
                ptx.as_ptr().cast_mut().cast(),
                ptx.len(),
                c"trampoline".as_ptr(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
            )
            .and_then(|()| driver.cuLinkComplete(state, &raw mut cubin, &raw mut size))
            .map(|()| core::slice::from_raw_parts(cubin.cast::<u8>(), size).to_vec());
        driver.cuLinkDestroy(state)?;
        Ok(outcome?)
    }
}

/// Opcodes of the calls in the trampoline.
fn calls(cubin: &[u8]) -> Result<Vec<u16>, Failure> {
    let cubin = Cubin::parse(cubin)?;
    let kernel = cubin.kernel("trampoline".into()).ok_or("no kernel")?;
    let code = kernel.code()?;
    let opcodes =
        (0..code.len() as u32).step_by(16).filter_map(|at| Instructions::Volta.opcode(code, at));
    Ok(opcodes.filter(|opcode| matches!(opcode, 0x343..=0x346)).collect())
}

pub(crate) fn ptx_trampoline(bench: &Bench) -> Outcome {
    let driver = bench.device.driver();
    let image = bench.load(CUBIN, CubinLoader::Own)?;
    let (target, _) = image.variable("vector_add")?;
    // as vector_add has them: three addresses and a number
    let cubin = link(driver, &ptx(bench.device.properties().sm, 32, 32)?)?;
    let calls = calls(&cubin)?;
    if calls != [CALL_ABS] {
        return Err(format!(
            "the driver's linker made calls of opcodes {calls:x?}, not one of {CALL_ABS:#x}"
        )
        .into());
    }
    let numbers: Vec<f32> = (0..1000).map(|index| index as f32).collect();
    let (a, sum) = (put(&bench.device, &numbers)?, put(&bench.device, &[0f32; 1000])?);
    let mut block = [0u8; 32];
    for (place, bytes) in
        block.chunks_exact_mut(8).zip([a.address()?, a.address()?, sum.address()?, 1000])
    {
        place.copy_from_slice(&bytes.to_ne_bytes());
    }
    let mut parameters: [*mut c_void; 2] =
        [block.as_mut_ptr().cast(), (&raw const target).cast_mut().cast()];
    let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: a whole cubin; places of ours; the kernel takes the block and the address, and the code at the address what is in
    // the block.
    unsafe {
        driver.cuModuleLoadData(&raw mut module, cubin.as_ptr().cast())?;
        driver.cuModuleGetFunction(&raw mut function, module, c"trampoline".as_ptr())?;
        let none = ptr::null_mut::<*mut c_void>();
        driver.cuLaunchKernel(
            function,
            4,
            1,
            1,
            256,
            1,
            1,
            0,
            none.cast(),
            parameters.as_mut_ptr(),
            none,
        )?;
        driver.cuCtxSynchronize()?;
        driver.cuModuleUnload(module)?;
    }
    bench.device.synchronize()?;
    let expected: Vec<f32> = numbers.iter().map(|number| number * 2.0).collect();
    compare(&take(&sum)?, &expected)
        .map(|text| format!("memory of cuMemAlloc is executable: CALL.ABS to {target:#x}, {text}"))
}
