//! Runs a program on bytes in memory, for a limited time.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// What a program has made of its input.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) status: ExitStatus,
    pub(super) out: Vec<u8>,
    pub(super) messages: String,
}

/// Why a program has made nothing.
#[derive(Debug)]
pub(super) enum Failure {
    Start(io::Error),
    TimedOut,
    TooLarge,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Start(error)
    }
}

impl From<rustix::io::Errno> for Failure {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Start(error.into())
    }
}

/// How often a running program is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of messages that are passed on.
const MESSAGES: u64 = 1 << 20;

/// Runs `program`. Its input and outputs are files in memory: nobody need read and write at the same time, and a program that
/// wants to go back and forth in them can.
///
/// # Errors
/// If it cannot be started; if it runs for longer than `limit` or writes more than `size` bytes, after it was killed together with
/// what it has started.
pub(super) fn run<S: AsRef<OsStr>>(
    program: &Path,
    arguments: impl IntoIterator<Item = S>,
    input: &[u8],
    limit: Duration,
    size: u64,
) -> Result<Output, Failure> {
    let mut source = memory()?;
    source.write_all(input)?;
    source.rewind()?;
    let (mut out, mut messages) = (memory()?, memory()?);
    let mut command = Command::new(program);
    // a group of its own, to be killed as one; messages as they are documented
    command.args(arguments).process_group(0).env("LC_ALL", "C");
    command.stdin(source).stdout(out.try_clone()?).stderr(messages.try_clone()?);
    let mut child = command.spawn()?;
    let status = match wait(&mut child, limit, || {
        Ok(out.metadata()?.len().max(messages.metadata()?.len()) <= size)
    }) {
        Ok(status) => status,
        Err(failure) => {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.kill();
            let _ = child.wait();
            return Err(failure);
        }
    };
    if out.metadata()?.len() > size {
        return Err(Failure::TooLarge);
    }
    let mut bytes = Vec::new();
    out.rewind()?;
    out.read_to_end(&mut bytes)?;
    let mut text = Vec::new();
    messages.rewind()?;
    messages.take(MESSAGES).read_to_end(&mut text)?;
    Ok(Output { status, out: bytes, messages: String::from_utf8_lossy(&text).into_owned() })
}

/// A file in memory.
fn memory() -> Result<File, Failure> {
    Ok(File::from(memfd_create("hoist", MemfdFlags::CLOEXEC)?))
}

/// Waits for the end of a program, as long as `is_fine`.
fn wait(
    child: &mut Child,
    limit: Duration,
    is_fine: impl Fn() -> io::Result<bool>,
) -> Result<ExitStatus, Failure> {
    let handle = handle(child);
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let left = limit.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Err(Failure::TimedOut);
        }
        if !is_fine()? {
            return Err(Failure::TooLarge);
        }
        pause(handle.as_ref(), left.min(LOOK));
    }
}

/// What says when the program ends, if this system has it.
fn handle(child: &Child) -> Option<OwnedFd> {
    let process = Pid::from_raw(i32::try_from(child.id()).ok()?)?;
    pidfd_open(process, PidfdFlags::empty()).ok()
}

/// Sleeps until the program ends, or the time is over.
fn pause(handle: Option<&OwnedFd>, time: Duration) {
    let Some(handle) = handle else {
        return std::thread::sleep(time.min(Duration::from_millis(1)));
    };
    let timeout =
        Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
    // whatever it says, the program is looked at again
    let _ = poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&timeout));
}
