//! Errors of GPUs, as C sees them.

use crate::error::{Error, Known, Status};
use crate::faults::of_container;
use exec_nv::own::OwnError;
use exec_nv::{Error as NvError, LaunchError};

/// A value, and the ends of what could be.
fn beyond(value: u64, least: u64, most: u64) -> Known {
    let limits = Some((least.into(), most.into()));
    Known { value: Some(value), limits, ..Known::default() }
}

/// What the executor for NVIDIA's GPUs says.
pub(crate) fn nv(error: &NvError) -> Error {
    let of = |status| Error::new(status, error);
    match error {
        NvError::NoLibrary { .. } | NvError::OldDriver { .. } | NvError::NoDevice => {
            of(Status::NoDevice)
        }
        NvError::NoSuchDevice { ordinal, count } => {
            of(Status::NoDevice).with(beyond((*ordinal).into(), 0, count.saturating_sub(1).into()))
        }
        NvError::Driver { function, code, .. } => {
            let numbers = Known { value: Some((*code).into()), ..Known::default() };
            of(Status::Device).symbol(*function).with(numbers)
        }
        NvError::NoDriverFunction { function } => of(Status::Device).symbol(*function),
        NvError::NoPeerAccess | NvError::NotLinked => of(Status::Unsupported),
        NvError::NoCode | NvError::OtherArchitecture { .. } => of(Status::NoFit),
        NvError::NoKernel { name, .. } | NvError::NoVariable { name } => {
            of(Status::NotFound).symbol(name.as_str())
        }
        NvError::Parameters { kernel } => of(Status::BadFile).symbol(kernel.as_str()),
        NvError::Container(container) => {
            let (status, numbers) = of_container(container);
            of(status).with(numbers)
        }
        NvError::Cubin(cubin) => {
            of(Status::BadFile).with(Known { offset: Some(cubin.at), ..Known::default() })
        }
        NvError::Launch(launch) => of(Status::Launch).with(refused(launch)),
        NvError::Own(OwnError::Damaged { .. }) => of(Status::BadFile),
        NvError::Own(OwnError::Load(_)) => of(Status::Layout),
        NvError::Own(_) => of(Status::Unsupported),
        NvError::Core(error) => core(error),
        _ => of(Status::Device),
    }
}

/// The number that keeps a launch from being made.
fn refused(error: &LaunchError) -> Known {
    match error {
        LaunchError::Threads { found, limit, .. }
        | LaunchError::ClusterSize { found, limit }
        | LaunchError::Cooperation { found, limit } => beyond(*found, 1, *limit),
        LaunchError::Shared { declared, dynamic, limit } => {
            beyond(declared.saturating_add(*dynamic), 0, *limit)
        }
        LaunchError::ArgumentCount { expected, found } => {
            let expected = *expected as u64;
            beyond(*found as u64, expected, expected)
        }
        LaunchError::ArgumentSize { expected, found, .. } => {
            beyond(*found as u64, (*expected).into(), (*expected).into())
        }
        _ => Known::default(),
    }
}

/// What devices of all kinds have in common.
pub(crate) fn core(error: &exec_core::Error) -> Error {
    use exec_core::Error as Core;
    let of = |status| Error::new(status, error);
    match error {
        Core::Empty
        | Core::Alignment { .. }
        | Core::Sizes { .. }
        | Core::Overlap { .. }
        | Core::OtherDevice { .. } => of(Status::InvalidArgument),
        Core::OutOfMemory { size } => {
            of(Status::Memory).with(Known { value: Some(*size), ..Known::default() })
        }
        Core::Unsupported { .. } => of(Status::Unsupported),
        Core::InUse => of(Status::Busy),
        Core::Outside { offset, size, available } => {
            of(Status::OutOfRange).with(beyond(offset.saturating_add(*size), 0, *available))
        }
        Core::Load(cause)
        | Core::NoFunction { cause, .. }
        | Core::Refused(cause)
        | Core::Device(cause) => {
            // what is known is in the layer below, the words are of this one
            let below = cause.downcast_ref::<NvError>().map(nv);
            let below = below.or_else(|| {
                let launch = cause.downcast_ref::<LaunchError>()?;
                Some(of(Status::Launch).with(refused(launch)))
            });
            let below = below.unwrap_or_else(|| of(Status::Device));
            below.in_words(&error.to_string())
        }
        _ => of(Status::Device),
    }
}
