//! Classes of the objects that a launch needs, by generation (`class/*.h`).

use super::error::Error;
use super::qmd;

/// `NV01_DEVICE_0`.
pub(super) const DEVICE: u32 = 0x80;
/// `NV20_SUBDEVICE_0`.
pub(super) const SUBDEVICE: u32 = 0x2080;
/// `NV01_MEMORY_LOCAL_USER`: memory of the GPU.
pub(super) const MEMORY_LOCAL_USER: u32 = 0x40;
/// `NV01_MEMORY_SYSTEM`: memory of the host.
pub(super) const MEMORY_SYSTEM: u32 = 0x3e;
/// `FERMI_VASPACE_A`: an address space.
pub(super) const VASPACE: u32 = 0x90f1;
/// `KEPLER_CHANNEL_GROUP_A`.
pub(super) const CHANNEL_GROUP: u32 = 0xa06c;
/// `FERMI_CONTEXT_SHARE_A`.
pub(super) const CONTEXT_SHARE: u32 = 0x9067;
/// `GT200_DEBUGGER`: tells which access failed.
pub(super) const DEBUGGER: u32 = 0x83de;

/// The newest classes first: the first that a GPU offers is taken.
const CHANNEL: &[u32] = &[0xca6f, 0xc96f, 0xc86f, 0xc56f];
const COMPUTE: &[u32] = &[0xcec0, 0xcdc0, 0xcbc0, 0xc9c0, 0xc7c0, 0xc6c0];
const COPY: &[u32] = &[0xcab5, 0xc9b5, 0xc8b5, 0xc7b5, 0xc6b5];
const USERMODE: &[u32] = &[0xc761, 0xc661, 0xc561];

/// The classes that are used on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Of channels.
    pub channel: u32,
    /// Of the compute engine.
    pub compute: u32,
    /// Of the copy engines.
    pub copy: u32,
    /// Of the region with the doorbell.
    pub usermode: u32,
}

impl Classes {
    /// The newest of each that a GPU offers.
    ///
    /// # Errors
    /// [`Error::NoClass`]: older than Ampere, or newer than what is known here.
    pub fn choose(offered: &[u32]) -> Result<Self, Error> {
        let first = |purpose, known: &[u32]| {
            let found = known.iter().find(|class| offered.contains(class));
            found.copied().ok_or(Error::NoClass { purpose })
        };
        Ok(Self {
            channel: first("channel", CHANNEL)?,
            compute: first("compute", COMPUTE)?,
            copy: first("copy", COPY)?,
            usermode: first("usermode", USERMODE)?,
        })
    }

    /// Whether copies need a group of channels of their own, on a copy engine: Hopper takes a copy channel in the group of graphics
    /// and compute for one of those.
    #[must_use]
    pub const fn has_copy_group(&self) -> bool {
        self.channel == 0xc86f
    }

    /// The launch block that the compute class takes.
    #[must_use]
    pub const fn qmd(&self) -> &'static qmd::Version {
        match self.compute {
            0xcdc0.. => &qmd::V5,
            0xcbc0.. => &qmd::V4,
            _ => &qmd::V3,
        }
    }

    /// Whether the doorbell can be mapped through BAR1: from Hopper on.
    #[must_use]
    pub const fn has_bar1_doorbell(&self) -> bool {
        self.usermode >= 0xc661
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_that_is_offered() {
        // What driver 580 lists for GH100.
        let hopper =
            [0xc361, 0xc461, 0xc561, 0xc661, 0xc36f, 0xc46f, 0xc56f, 0xc86f, 0xcbc0, 0xc8b5];
        let classes = Classes::choose(&hopper).unwrap();
        let expected = Classes { channel: 0xc86f, compute: 0xcbc0, copy: 0xc8b5, usermode: 0xc661 };
        assert_eq!(classes, expected);
        assert!(classes.has_bar1_doorbell());
        let error = Classes::choose(&[0xc46f, 0xc5c0, 0xc5b5, 0xc461]).unwrap_err();
        assert_eq!(error.to_string(), "the GPU offers no channel class known here");
    }
}
