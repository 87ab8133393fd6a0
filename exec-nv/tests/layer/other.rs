//! Another process, whose memory and marks are opened: this program once more. No driver opens what is one's own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};

use exec_core::{Device as _, Spec};
use exec_nv::{Driver, Error, IpcEventHandle, IpcMemoryHandle, NvDevice, NvOptions};

use crate::stub::Stub;

/// The driver that the other process uses. Where it is not set, this is not the other process.
const LIBRARY: &str = "HOIST_STUB_OTHER";
const SAYS: &str = "names: ";

/// What the other process has. It is there until this one ends.
pub(crate) fn names(stub: &Stub) -> (IpcMemoryHandle, IpcEventHandle) {
    static OTHER: OnceLock<(Child, String)> = OnceLock::new();
    let (_, names) = OTHER.get_or_init(|| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "other::the_other_process", "--nocapture"]);
        command.env(LIBRARY, stub.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let names = lines
            .map(Result::unwrap)
            .find_map(|line| Some(line.split_once(SAYS)?.1.to_owned()))
            .unwrap();
        (child, names)
    });
    let bytes: Vec<u8> = (0..names.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&names[at..at + 2], 16).unwrap())
        .collect();
    let (memory, event) = bytes.split_at(64);
    (IpcMemoryHandle(memory.try_into().unwrap()), IpcEventHandle(event.try_into().unwrap()))
}

#[test]
fn the_other_process() {
    let Some(library) = std::env::var_os(LIBRARY) else { return };
    let shared = || -> Result<_, Error> {
        // SAFETY: the stub has functions of these types.
        let driver = Arc::new(unsafe { Driver::open_at(library.as_ref()) }?);
        let device = NvDevice::open(&driver, 0, NvOptions::default())?;
        let buffer = device.buffer(4096, Spec::new())?;
        let mark = device.queue().record_shareable()?;
        Ok((device.share_memory(&buffer)?, mark.share()?, buffer, mark))
    };
    let (memory, event, _buffer, _mark) = shared().unwrap();
    let names: String = memory.0.iter().chain(&event.0).map(|byte| format!("{byte:02x}")).collect();
    println!("{SAYS}{names}");
    // until the one that asked has ended
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    // nobody listens any more to what a test says at its end
    std::process::exit(0);
}
