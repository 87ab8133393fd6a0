//! Huge pages: who has many of them misses the translation buffers less.

use core::ops::Range;
use std::io;

/// Size of a huge page in bytes: that of both architectures with base pages of 4 KiB.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// How many bytes of `range` are on huge pages now, as the system tells in `/proc/self/smaps`.
pub(crate) fn bytes_in_huge_pages(range: &Range<u64>) -> io::Result<u64> {
    /// Kibibytes on huge pages: anonymous, of a shared file, mapped, from the pool.
    const KINDS: [&str; 5] =
        ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped", "Private_Hugetlb", "Shared_Hugetlb"];
    let text = std::fs::read_to_string("/proc/self/smaps")?;
    let mut is_inside = false;
    let mut total = 0u64;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some(kind) = first.strip_suffix(':') {
            let kibibytes = words.next().and_then(|word| word.parse::<u64>().ok());
            if is_inside && KINDS.contains(&kind) {
                total = total.saturating_add(kibibytes.unwrap_or(0).saturating_mul(1024));
            }
        } else if let Some((start, _)) = first.split_once('-') {
            is_inside = u64::from_str_radix(start, 16).is_ok_and(|start| range.contains(&start));
        }
    }
    Ok(total)
}
