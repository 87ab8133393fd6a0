//! One trial: the objects of a build, run by somebody, judged by what the linked program prints.

use std::fmt;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// What a program that was run did.
pub(crate) struct Ran {
    pub(crate) output: String,
    errors: String,
    end: End,
}

enum End {
    Exit(i32),
    Signal(i32),
    TooLong,
}

/// How long a program may take.
const LIMIT: Duration = Duration::from_secs(60);

/// What came out of a trial.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// It printed what the linked program prints.
    Right,
    /// It ran to its end and printed something else.
    Wrong,
    /// It was refused before it ran, and why.
    Refused(String),
    /// It was ended by a signal, or never ended.
    Crash(String),
}

impl Ran {
    /// Runs `command` to its end, or for a minute.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn of(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", command.get_program().display()))?;
        let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                if let Some(mut pipe) = pipe {
                    // what was read before an error is what there is
                    let _ = pipe.read_to_end(&mut bytes);
                }
                String::from_utf8_lossy(&bytes).into_owned()
            })
        };
        let output = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
        let errors = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
        let start = Instant::now();
        let end = loop {
            if let Some(status) = child.try_wait()? {
                break status.signal().map_or(End::Exit(status.code().unwrap_or(-1)), End::Signal);
            }
            if start.elapsed() > LIMIT {
                child.kill()?;
                child.wait()?;
                break End::TooLong;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let text = |thread: std::thread::JoinHandle<String>| thread.join().unwrap_or_default();
        Ok(Self { output: text(output), errors: text(errors), end })
    }

    /// Whether it ended as a program does that found everything in order.
    pub(crate) const fn is_good(&self) -> bool {
        matches!(self.end, End::Exit(0))
    }

    /// What a loader made of a program that prints `expected`. A loader that refuses says why in a line that holds `refusal`.
    pub(crate) fn judge(&self, expected: &str, refusal: &str) -> Verdict {
        match self.end {
            End::Exit(0) if self.output == expected => Verdict::Right,
            End::Signal(number) => Verdict::Crash(format!("signal {number}")),
            // as shells and qemu tell of signals
            End::Exit(code @ 129..) => Verdict::Crash(format!("signal {}", code - 128)),
            End::TooLong => Verdict::Crash("no end".to_owned()),
            End::Exit(code) => {
                match self.errors.lines().find_map(|line| Some(line.split_once(refusal)?.1)) {
                    Some(reason) if code != 0 => Verdict::Refused(reason.trim().to_owned()),
                    _ => Verdict::Wrong,
                }
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Right => write!(f, "right"),
            Self::Wrong => write!(f, "wrong"),
            Self::Refused(reason) => write!(f, "refused: {reason}"),
            Self::Crash(how) => write!(f, "crash: {how}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(script: &str) -> Verdict {
        Ran::of(Command::new("sh").args(["-c", script])).unwrap().judge("3\n", "hoist: ")
    }

    #[test]
    fn judging() {
        assert_eq!(judged("echo 3"), Verdict::Right);
        assert_eq!(judged("echo 4"), Verdict::Wrong);
        assert_eq!(judged("echo 3; exit 1"), Verdict::Wrong);
        assert_eq!(judged("echo 'hoist: no' >&2; exit 1"), Verdict::Refused("no".to_owned()));
        assert_eq!(judged("kill -SEGV $$"), Verdict::Crash("signal 11".to_owned()));
        assert_eq!(judged("exit 139"), Verdict::Crash("signal 11".to_owned()));
    }
}
