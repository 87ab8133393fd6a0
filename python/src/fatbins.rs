//! Device code inside files: which there is, its bytes, and which a device takes.

use crate::errors::{Failure, format};
use crate::held::Held;
use fatbin::{
    Container, CudaVersion, Error, Fit, RegionEntry, Search, Selected, Span, TargetDevice,
};
use hoist_tool::cmd::fatbin::rows::RegionRow;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

fn failure(label: &str, error: &Error) -> Failure {
    let mut failure = format(error, error.at);
    failure.prefix(label);
    failure
}

/// All containers of a file as JSON (the keys are those of `hoist fatbin list --json`), and what is wrong with some.
#[pyfunction]
pub(crate) fn entries<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    search: bool,
) -> PyResult<(Bound<'py, PyBytes>, Vec<String>)> {
    let data = Held::of(data)?;
    let search = if search { Search::Always } else { Search::Never };
    let (json, errors) = py.detach(|| {
        let (mut rows, mut errors) = (Vec::new(), Vec::new());
        for found in fatbin::walk(data.as_ref(), search) {
            match found {
                Ok(found) => {
                    let (row, error) = RegionRow::of(rows.len(), &found);
                    rows.push(row);
                    errors.extend(error.map(|error| error.to_string()));
                }
                Err(error) => errors.push(error.to_string()),
            }
        }
        (serde_json::to_vec(&rows), errors)
    });
    let json = json.map_err(|error| Failure::new("FormatError", error).error(py))?;
    Ok((PyBytes::new(py, &json), errors))
}

/// The bytes of an entry whose header is at `offset`, unpacked: at most `limit` of them.
#[pyfunction]
pub(crate) fn payload<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    label: &str,
    offset: u64,
    limit: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let data = Held::of(data)?;
    let unpacked = py.detach(|| {
        let rest =
            usize::try_from(offset).ok().and_then(|at| data.as_ref().get(at..)).unwrap_or_default();
        let entry = RegionEntry::parse(Span::new(rest, offset))?;
        entry.unpack(limit).map(std::borrow::Cow::into_owned)
    });
    unpacked
        .map(|bytes| PyBytes::new(py, &bytes))
        .map_err(|error: Error| failure(label, &error).error(py))
}

/// What a device takes of each fatbin region: its offset, the offset of the entry, the part of it as offset and size, and how
/// they fit. Nothing stands for a region of which nothing runs.
type Choice = (u64, Option<(u64, Option<(u64, u64)>, &'static str)>);

/// What drivers select for a device of `sm`.
#[pyfunction]
pub(crate) fn select(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    label: &str,
    sm: u32,
    cuda: Option<(u16, u16)>,
    search: bool,
) -> PyResult<Vec<Choice>> {
    let data = Held::of(data)?;
    let search = if search { Search::Always } else { Search::Never };
    let driver =
        cuda.map_or(CudaVersion::new(u16::MAX, 0), |(major, minor)| CudaVersion::new(major, minor));
    let device = TargetDevice { sm, driver };
    let choices = py.detach(|| {
        let mut choices = Vec::new();
        for found in fatbin::walk(data.as_ref(), search) {
            let Container::Region(region) = found?.container else { continue };
            let chosen = fatbin::select(region.entries(), device)?;
            choices.push((region.at(), chosen.map(|one| chosen_of(&one))));
        }
        Ok(choices)
    });
    choices.map_err(|error: Error| failure(label, &error).error(py))
}

fn chosen_of(selected: &Selected<'_>) -> (u64, Option<(u64, u64)>, &'static str) {
    let fit = match selected.fit {
        Fit::Compiled => "compiled",
        Fit::LowerMinor => "lower minor",
        Fit::Family => "family",
        Fit::Exact => "exact",
    };
    (selected.entry.at(), selected.part.map(|part| (part.offset, part.size)), fit)
}
