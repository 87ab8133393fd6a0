//! Versions of the kernel driver: which form of a structure it takes.

use core::fmt;

use super::error::Error;

/// A version of the driver, such as 580.95.05.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriverVersion {
    /// Branch: 580.
    pub branch: u32,
    /// Release of the branch.
    pub release: u32,
    /// Patch of the release.
    pub patch: u32,
}

/// Branches whose structures are known: all of their headers were compared.
const KNOWN: core::ops::RangeInclusive<u32> = 570..=599;

impl DriverVersion {
    /// Reads what the driver writes: text up to the first zero byte.
    ///
    /// # Errors
    /// [`Error::Version`] if it is none, or one whose structures are not known.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let text = String::from_utf8_lossy(bytes.get(..end).unwrap_or(bytes));
        let mut parts = text.split('.').map(|part| part.parse().ok());
        let mut part = || parts.next().flatten();
        match (part(), part(), part().unwrap_or(0)) {
            (Some(branch), Some(release), patch) if KNOWN.contains(&branch) => {
                Ok(Self { branch, release, patch })
            }
            _ => Err(Error::Version { found: text.into_owned() }),
        }
    }

    /// Whether structures have the forms that came with 580.
    #[must_use]
    pub const fn is_580(self) -> bool {
        self.branch >= 580
    }

    /// Whether structures have the forms that came with 595.
    #[must_use]
    pub const fn is_595(self) -> bool {
        self.branch >= 595
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{:02}", self.branch, self.release, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_driver_writes_them() {
        let version = DriverVersion::parse(b"580.95.05\0\0\0").unwrap();
        assert_eq!(version, DriverVersion { branch: 580, release: 95, patch: 5 });
        assert!(version.is_580() && !version.is_595());
        assert_eq!(version.to_string(), "580.95.05");
        assert!(DriverVersion::parse(b"595.45.04").unwrap().is_595());
        assert!(!DriverVersion::parse(b"570.172.08").unwrap().is_580());
        assert_eq!(DriverVersion::parse(b"590.48").unwrap().patch, 0);
    }

    #[test]
    fn what_is_not_known_is_named() {
        let error = DriverVersion::parse(b"550.144.03\0").unwrap_err();
        let expected = "driver 550.144.03: its structures are not known (known: 570 to 595)";
        assert_eq!(error.to_string(), expected);
        for odd in [&b""[..], b"\0", b"580", b"x.y.z", b"610.43.02", b"580.", b"\xff\xff"] {
            assert!(DriverVersion::parse(odd).is_err(), "{odd:?}");
        }
    }
}
