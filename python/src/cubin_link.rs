//! Relocatable cubins into one.

use crate::errors::{Failure, Field};
use crate::held::Held;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use reloc_cuda::link::{
    LinkErrorKind, LinkErrors, LinkOptions, LinkedCubin, LinkedMercury, link_relocatable, link_with,
};

/// The bytes of a linked cubin, names of the kernels whose stack has no bound, and why its Mercury form is left out, if it is.
type Linked<'py> = (Bound<'py, PyBytes>, Vec<String>, Option<String>);

/// Links cubins, each a label and its bytes: to one that can be loaded, or to one that is relocatable still.
#[pyfunction]
#[pyo3(signature = (objects, sm, kernels, relocatable))]
pub(crate) fn link_cubins<'py>(
    py: Python<'py>,
    objects: Vec<(String, Bound<'py, PyAny>)>,
    sm: Option<u32>,
    kernels: Vec<String>,
    relocatable: bool,
) -> PyResult<Linked<'py>> {
    let (labels, bytes): (Vec<String>, Vec<_>) = objects.into_iter().unzip();
    let held: Vec<Held> = bytes.iter().map(Held::of).collect::<PyResult<_>>()?;
    let linked = py.detach(|| {
        let bytes: Vec<&[u8]> = held.iter().map(AsRef::as_ref).collect();
        if relocatable {
            return link_relocatable(&bytes, sm);
        }
        let kernels: Vec<&str> = kernels.iter().map(String::as_str).collect();
        link_with(&bytes, LinkOptions { sm, kernels: &kernels })
    });
    let LinkedCubin { bytes, unbounded, mercury, .. } =
        linked.map_err(|errors| failure(&errors, &labels).error(py))?;
    let left_out = match mercury {
        LinkedMercury::LeftOut { object, why } => {
            Some(format!("{}: {why}", labels.get(object).map_or("", String::as_str)))
        }
        _ => None,
    };
    Ok((PyBytes::new(py, &bytes), unbounded, left_out))
}

/// All errors in words, and what is known of the first.
fn failure(errors: &LinkErrors, labels: &[String]) -> Failure {
    let label = |object: usize| labels.get(object).map_or("", String::as_str);
    let name = |object: usize| label(object).to_owned();
    let words = errors.0.iter().map(|error| error.with_names(name).to_string());
    let message = words.collect::<Vec<_>>().join("; ");
    let Some(first) = errors.0.first() else { return Failure::new("LinkError", message) };
    let told = |class| {
        Failure::new(class, &message).with("file", Field::Text(label(first.object).to_owned()))
    };
    let text = |name: &str| Field::Text(name.to_owned());
    match &first.kind {
        LinkErrorKind::Cubin(error) => told("FormatError").with("offset", Field::Number(error.at)),
        LinkErrorKind::NotRelocatable
        | LinkErrorKind::Form
        | LinkErrorKind::Toolkit { .. }
        | LinkErrorKind::Architecture { .. }
        | LinkErrorKind::Section(_) => told("UnsupportedError"),
        LinkErrorKind::Undefined(name) => told("UndefinedSymbolError").with("symbol", text(name)),
        LinkErrorKind::Apply { section, error } => {
            let told = told("RelocationError")
                .with("section", text(section))
                .with("offset", Field::Number(error.offset));
            match error.name {
                Some(name) => told.with("relocation", text(name)),
                None => told,
            }
        }
        kind => match kind.conflict() {
            Some((symbol, _)) => told("LinkError").with("symbol", text(symbol)),
            None => told("LinkError"),
        },
    }
}
