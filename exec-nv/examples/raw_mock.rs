//! The raw path as a library, for `tests/raw_mock/mock.py`: a driver and a GPU that are callbacks. It runs one scenario, tells before
//! each launch what the launch descriptor has to say, and checks what copies bring back.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use core::ffi::{CStr, c_char};
use core::ptr::NonNull;
use core::time::Duration;
use std::ffi::CString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use exec_core::{Device as _, Scalar, Spec};
use exec_nv::NvLaunch;
use exec_nv::raw::call::Call;
use exec_nv::raw::{
    Error, LocalMemory, Mapping, Part, RawArgument, RawCall, RawDevice, RawImage, RawOptions,
    RawProgram, System, bank0,
};

/// What the other side gives.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Callbacks {
    open: extern "C" fn(*const c_char) -> i32,
    close: extern "C" fn(i32) -> i32,
    ioctl: extern "C" fn(i32, u32, *mut u8) -> i32,
    map: extern "C" fn(i32, u64, u64) -> u64,
    ring: extern "C" fn(u64) -> i32,
    expect: extern "C" fn(*const c_char) -> i32,
}

/// A system of callbacks.
#[derive(Clone, Copy)]
struct Mock(Callbacks);

struct File(i32, Callbacks);

struct Map {
    start: u64,
    size: u64,
    /// Whether writes are to be told.
    rings: Option<Callbacks>,
}

impl fmt::Debug for Mock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mock")
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({})", self.0)
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({:#x})", self.start)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        (self.1.close)(self.0);
    }
}

impl System for Mock {
    type File = File;
    type Mapping = Map;

    fn open(&self, path: &str) -> Result<File, Error> {
        let name = CString::new(path).unwrap();
        match (self.0.open)(name.as_ptr()) {
            number if number < 0 => Err(Error::Open { path: path.into(), errno: 2 }),
            number => Ok(File(number, self.0)),
        }
    }

    fn descriptor(&self, file: &File) -> i32 {
        file.0
    }

    unsafe fn ioctl(&self, file: &File, call: Call, parts: &mut [Part<'_>]) -> Result<(), Error> {
        let size = parts[0].bytes.len();
        let mut copies: Vec<Vec<u64>> = parts
            .iter()
            .map(|part| {
                let words = part.bytes.chunks(8).map(|chunk| {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    u64::from_le_bytes(word)
                });
                words.chain([0; 64]).collect()
            })
            .collect();
        let mut next = None;
        for (part, copy) in parts.iter().zip(&mut copies).rev() {
            if let (Some(offset), Some(address)) = (part.pointer, next) {
                copy[offset / 8] = address;
            }
            next = Some(copy.as_mut_ptr().expose_provenance() as u64);
        }
        let result = (self.0.ioctl)(file.0, call.word(size), copies[0].as_mut_ptr().cast());
        if result != 0 {
            return Err(Error::Ioctl { call: call.name, errno: result });
        }
        for (part, copy) in parts.iter_mut().zip(&copies) {
            let bytes = copy.iter().flat_map(|word| word.to_le_bytes());
            part.bytes.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        }
        Ok(())
    }

    fn map(&self, file: &File, address: Option<u64>, size: u64) -> Result<Map, Error> {
        let start = (self.0.map)(file.0, address.unwrap_or(0), size);
        assert!(address.is_none_or(|address| address == start), "{start:#x}");
        Ok(Map { start, size, rings: address.is_none().then_some(self.0) })
    }
}

impl Map {
    fn at(&self, offset: u64, size: usize) -> Option<*mut u8> {
        let is_inside = offset.checked_add(size as u64).is_some_and(|end| end <= self.size);
        is_inside.then(|| self.start().as_ptr().wrapping_add(offset as usize))
    }
}

// SAFETY: the bytes are its own.
unsafe impl Mapping for Map {
    fn address(&self) -> u64 {
        self.start
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64) -> Option<u32> {
        // SAFETY: inside of memory that the mock has mapped, and aligned.
        self.at(offset, 4).map(|word| unsafe { word.cast::<u32>().read_volatile() })
    }

    fn write(&self, offset: u64, words: &[u32]) -> bool {
        let Some(place) = self.at(offset, words.len() * 4) else { return false };
        for (index, word) in words.iter().enumerate() {
            // SAFETY: inside of memory that the mock has mapped, and aligned.
            unsafe { place.cast::<u32>().add(index).write_volatile(*word) };
        }
        self.rings.is_none_or(|callbacks| (callbacks.ring)(offset) == 0)
    }

    fn start(&self) -> NonNull<u8> {
        NonNull::new(core::ptr::with_exposed_provenance_mut(self.start as usize)).unwrap()
    }

    fn store(&self, offset: u64, bytes: &[u8]) -> bool {
        let Some(place) = self.at(offset, bytes.len()) else { return false };
        // SAFETY: inside of memory that the mock has mapped.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        true
    }

    fn load(&self, offset: u64, bytes: &mut [u8]) -> bool {
        let Some(place) = self.at(offset, bytes.len()) else { return false };
        // SAFETY: inside of memory that the mock has mapped.
        unsafe { core::ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), bytes.len()) };
        true
    }

    fn fence(&self) {}
}

type Failure = Box<dyn std::error::Error>;

/// What is launched, and what its descriptor has to say.
struct Scene<'s> {
    callbacks: Callbacks,
    device: &'s RawDevice<Mock>,
    image: &'s Arc<RawImage<Mock>>,
    cubin: &'s [u8],
    /// Most local memory of a thread so far, on each queue.
    local: u32,
}

impl Scene<'_> {
    /// Tells the other side what a launch has to look like, worked out from the file and not from what launches.
    fn expect(
        &mut self,
        kernel: &RawProgram<Mock>,
        parameters: &[u8],
        launch: &NvLaunch,
        next: bool,
    ) -> Result<(), Failure> {
        let file = nvinfo::Cubin::parse(self.cubin)?;
        let name = kernel.kernel().name.as_str();
        let function = file.kernel(name.into()).ok_or("no kernel")?;
        let needs = function.resources()?;
        let plan = exec_nv::own::Plan::of(self.cubin)?;
        // any variable or function tells where the image is
        let (program, _) = self.image.variable(name)?;
        let (offset, _) = plan.symbol(name).ok_or("no symbol")?;
        let base = program - offset;
        let image = plan.write(base)?;
        let sm = self.device.properties().sm;
        let mut banks = Vec::new();
        let mut bank = Vec::new();
        for found in file.constant_banks() {
            if found.owner.is_some_and(|owner| owner != function.section()) {
                continue;
            }
            let start = plan.section(found.section).ok_or("no place")?;
            if found.bank == 0 {
                bank = image[start as usize..(start + found.header.size) as usize].to_vec();
            }
            let text = format!("\"{}\": [{}, {}]", found.bank, base + start, found.header.size);
            banks.push(text);
        }
        let described = bank0::Launch {
            block: launch.block,
            grid: launch.grid,
            dynamic_shared: launch.dynamic_shared,
            sms: self.device.properties().sm_count,
        };
        bank0::Offsets::of(sm)?.fill(&mut bank, &described)?;
        let at = needs.parameter_bank.map_or(bank.len(), |bank| bank.offset.into());
        bank[at..at + parameters.len()].copy_from_slice(parameters);
        let shared = needs.shared + needs.reserved_shared + u64::from(launch.dynamic_shared);
        let stack = needs.stack.map_or(0, |stack| stack.bytes().unwrap_or(1024)) as u32;
        let local = LocalMemory::new(self.device.gpu().facts().shape, stack)?.thread;
        self.local = self.local.max(local);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let code = &image[offset as usize..offset as usize + 16];
        let cluster = launch.cluster.map_or("null".into(), |cluster| format!("{cluster:?}"));
        let text = format!(
            "{{\"program\": {program}, \"registers\": {}, \"barriers\": {}, \"shared\": {}, \"local\": {}, \"grid\": {:?}, \
             \"block\": {:?}, \"cluster\": {cluster}, \"banks\": {{{}}}, \"bank0\": \"{}\", \"code\": \"{}\", \"next\": {next}}}",
            needs.registers.ok_or("no registers")?,
            needs.barriers,
            shared.next_multiple_of(128),
            self.local,
            launch.grid,
            launch.block,
            banks.join(", "),
            hex(&bank),
            hex(code),
        );
        let text = CString::new(text)?;
        if (self.callbacks.expect)(text.as_ptr()) == 0 {
            Ok(())
        } else {
            Err("not expected".into())
        }
    }
}

fn scenario(callbacks: Callbacks, fixtures: &Path) -> Result<(), Failure> {
    let options = RawOptions { limit: Duration::from_secs(2), ..RawOptions::default() };
    let device = RawDevice::open(Mock(callbacks), 0, options)?;
    println!("{}: {:x?}, sm_{}", device.name(), device.gpu().classes(), device.properties().sm);

    let buffer = device.buffer((5 << 20) + 3, Spec::new())?;
    let bytes: Vec<u8> = (0..buffer.size()).map(|at| ((at * 7) >> 3) as u8).collect();
    buffer.copy_in(0, &bytes)?;
    let mut back = vec![0; bytes.len()];
    buffer.copy_out(0, &mut back)?;
    assert!(back == bytes, "what was copied out is what was copied in");
    let host = device.buffer(buffer.size(), Spec::new().host_visible())?;
    device.copy(&buffer, &host)?;
    assert!(host.host()?[..bytes.len()] == bytes, "the host sees what was copied");

    let name = match device.properties().sm {
        80..=89 => "kernels-13.5-sm_80.cubin",
        90 => "kernels-13.5-sm_90a.cubin",
        120 => "kernels-13.5-sm_120.cubin",
        _ => "kernels-12.9-sm_100a.cubin",
    };
    let cubin = std::fs::read(fixtures.join(name))?;
    let image = device.load(&cubin)?;
    let mut scene = Scene { callbacks, device: &device, image: &image, cubin: &cubin, local: 0 };
    let parameters = device.kernel(&image, "parameters")?;
    let local = device.kernel(&image, "local_memory")?;
    let shared = device.kernel(&image, "shared_memory")?;
    let globals = device.kernel(&image, "globals")?;

    let address = buffer.address()?.to_le_bytes();
    let arguments = [
        RawArgument::Buffer(&buffer),
        RawArgument::Value(Scalar::U8(2)),
        RawArgument::Bytes(&[3; 24]),
        RawArgument::Value(Scalar::U16(0x0504)),
        RawArgument::Value(Scalar::F64(1.0)),
    ];
    let mut block = vec![0; 48];
    block[..8].copy_from_slice(&address);
    block[8] = 2;
    block[12..36].fill(3);
    block[36..38].copy_from_slice(&[4, 5]);
    block[40..].copy_from_slice(&1.0_f64.to_le_bytes());
    let first = NvLaunch {
        grid: [70, 3, 2],
        block: [32, 4, 1],
        dynamic_shared: 60 << 10,
        wait: true,
        ..NvLaunch::new(1, 1)
    };
    let queue = device.queue();
    scene.expect(&globals, &[], &NvLaunch::new(5, 64), false)?;
    // SAFETY: nothing runs.
    unsafe { globals.launch(queue, &[], &NvLaunch::new(5, 64))? };
    scene.expect(&parameters, &block, &first, false)?;
    // SAFETY: nothing runs.
    let time = unsafe { parameters.launch(queue, &arguments, &first)? };
    println!("a launch took {time:?}");
    let with_local = [RawArgument::Buffer(&buffer), RawArgument::Value(Scalar::U32(7))];
    let of_local = [&address[..], &7u32.to_le_bytes()].concat();
    scene.expect(&local, &of_local, &NvLaunch::new(2, 32), false)?;
    // SAFETY: nothing runs.
    unsafe { local.launch(queue, &with_local, &NvLaunch::new(2, 32))? };
    if device.properties().cluster_launch {
        let clustered = NvLaunch { cluster: Some([2, 1, 1]), ..NvLaunch::new(4, 32) };
        scene.expect(&globals, &[], &clustered, false)?;
        // SAFETY: nothing runs.
        unsafe { globals.launch(queue, &[], &clustered)? };
    }
    // one after the other by themselves
    let with_shared = [RawArgument::Buffer(&buffer)];
    let (one, two) = (NvLaunch::new(3, 128), NvLaunch { wait: true, ..NvLaunch::new(1, 1) });
    scene.expect(&shared, &address, &one, true)?;
    scene.expect(&globals, &[], &two, false)?;
    let calls = [
        RawCall { program: &shared, arguments: &with_shared, launch: one },
        RawCall { program: &globals, arguments: &[], launch: two },
    ];
    // SAFETY: nothing runs.
    unsafe { queue.launches(&calls)? };
    // another queue has local memory of its own, and waits
    let other = device.new_queue()?;
    other.wait_for(queue)?;
    scene.local = 0;
    scene.expect(&shared, &address, &one, false)?;
    // SAFETY: nothing runs.
    unsafe { shared.launch(&other, &with_shared, &one)? };
    other.synchronize()?;
    device.synchronize()?;
    Ok(())
}

/// Runs everything; 0 if all is well.
///
/// # Safety
/// `callbacks` and `fixtures` point to what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn run(callbacks: *const Callbacks, fixtures: *const c_char) -> i32 {
    // SAFETY: as the caller says.
    let (callbacks, fixtures) = unsafe { (*callbacks, CStr::from_ptr(fixtures)) };
    let fixtures = Path::new(fixtures.to_str().unwrap());
    match std::panic::catch_unwind(|| scenario(callbacks, fixtures)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            println!("{error}");
            1
        }
        Err(_) => 2,
    }
}
