//! The command line: for `python -m hoist`, and for functions that give its JSON to programs.

use hoist_tool::cmd::CommandLine;
use hoist_tool::line;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Runs a command; gives what it printed, its exit status, and what went wrong.
#[pyfunction]
pub(crate) fn command<'py>(
    py: Python<'py>,
    words: Vec<std::ffi::OsString>,
) -> (Bound<'py, PyBytes>, u8, Vec<String>) {
    let (out, complaints) = py.detach(|| {
        let mut out = Vec::new();
        let words = core::iter::once(std::ffi::OsString::from("hoist")).chain(words);
        let complaints = match <CommandLine as hoist_tool::line::Parser>::try_parse_from(words) {
            Ok(line) => line
                .command
                .run(&mut out)
                .map_or_else(|error| line::complaints(&error), |()| Vec::new()),
            // help, or the version
            Err(told) if !told.use_stderr() => {
                out.extend_from_slice(told.to_string().as_bytes());
                Vec::new()
            }
            Err(error) => vec![error.to_string()],
        };
        (out, complaints)
    });
    let status = u8::from(!complaints.is_empty());
    (PyBytes::new(py, &out), status, complaints)
}

/// What `hoist` does with these words, its name first: the exit status.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, words: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| line::main(words))
}
