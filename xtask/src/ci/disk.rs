//! How full the disk is that everything is built on: what fails for want of room says all kinds of things, or nothing.

use std::fmt::{self, Display};
use std::path::Path;

/// With less than this, little can be built.
const LITTLE: u64 = 1 << 30;

/// Bytes that were free.
pub(super) struct Disk {
    first: u64,
    last: u64,
    least: u64,
}

impl Disk {
    /// That of a file, now; `None` where it cannot be asked.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let free = free(path)?;
        Some(Self { first: free, last: free, least: free })
    }

    /// Asks again.
    pub(super) fn look(&mut self, path: &Path) {
        self.last = free(path).unwrap_or(self.last);
        self.least = self.least.min(self.last);
    }

    /// Whether what has failed may have failed for this.
    pub(super) const fn was_full(&self) -> bool {
        self.least < LITTLE
    }
}

impl Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, last, least] = [self.first, self.last, self.least].map(|bytes| bytes >> 20);
        write!(f, "MiB free on the disk: {first} at first, {least} at least, {last} at the end")
    }
}

/// Bytes that are free on the disk of a file.
fn free(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_full_if_it_was_once() {
        let disk = |least| Disk { first: 5 << 30, last: 4 << 30, least };
        assert!(disk(LITTLE - 1).was_full() && !disk(LITTLE).was_full());
        assert_eq!(
            disk(3 << 30).to_string(),
            "MiB free on the disk: 5120 at first, 3072 at least, 4096 at the end"
        );
        let mut real = Disk::of(Path::new(".")).unwrap();
        real.least = u64::MAX;
        real.look(Path::new("."));
        assert_eq!(real.least, real.last);
        assert!(real.last > 0);
    }
}
