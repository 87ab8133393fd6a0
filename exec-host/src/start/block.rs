//! What a program finds on its stack, or `main` is given (psABI, "Process Initialization").

use crate::word::wide;
use core::ffi::{c_char, c_int, c_ulong};
use core::ptr;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt as _;

/// Largest type of entry of auxiliary vectors that is asked for; the kernel's are below 52.
const MOST: c_ulong = 63;

/// Number of arguments, their addresses, those of the environment, the auxiliary vector, one behind the other. Nothing of it is ever given
/// back: a program may keep its arguments.
#[derive(Clone, Copy, Debug)]
pub struct StartBlock {
    words: &'static [usize],
    count: c_int,
}

impl StartBlock {
    /// A block of these texts and entries of the auxiliary vector, type and value; the one that ends it is added.
    #[must_use]
    pub fn new(arguments: &[CString], environment: &[CString], auxiliary: &[(u64, u64)]) -> Self {
        // programs write their titles over all of them, as the kernel has them: one behind the other
        let all = arguments.iter().chain(environment);
        let texts: Vec<u8> = all.flat_map(|text| text.as_bytes_with_nul()).copied().collect();
        let mut next = Vec::leak(texts).as_mut_ptr().expose_provenance();
        let mut words = vec![arguments.len()];
        for texts in [arguments, environment] {
            for text in texts {
                words.push(next);
                next = next.wrapping_add(text.as_bytes_with_nul().len());
            }
            words.push(0);
        }
        words.extend(
            auxiliary.iter().flat_map(|&(r#type, value)| [r#type as usize, value as usize]),
        );
        words.extend([0, 0]);
        // more have no place in memory
        let count = c_int::try_from(arguments.len()).unwrap_or(c_int::MAX);
        Self { words: Vec::leak(words), count }
    }

    /// The address of a copy that stays.
    pub(crate) fn leak(text: &CString) -> u64 {
        text.clone().into_raw().expose_provenance() as u64
    }

    /// The environment of this process, as blocks have it: `NAME=VALUE`.
    #[must_use]
    pub fn environment_of_process() -> Vec<CString> {
        let line = |(name, value): (OsString, OsString)| {
            let line = [name.into_vec(), b"=".into(), value.into_vec()].concat();
            // none has a NUL inside
            CString::new(line).ok()
        };
        std::env::vars_os().filter_map(line).collect()
    }

    /// The auxiliary vector of this process: what the kernel has told it.
    #[must_use]
    pub fn auxiliary_of_process() -> Vec<(u64, u64)> {
        let entry = |r#type: c_ulong| {
            // SAFETY: asks only; `errno` is this thread's.
            let (value, error) = unsafe {
                *libc::__errno_location() = 0;
                (libc::getauxval(r#type), *libc::__errno_location())
            };
            // an entry may be 0: number of a user
            (value != 0 || error == 0).then_some((wide(r#type), wide(value)))
        };
        (1..=MOST).filter_map(entry).collect()
    }

    /// All of it, from the number of arguments on.
    #[must_use]
    pub const fn words(&self) -> &'static [usize] {
        self.words
    }

    /// `argc`.
    #[must_use]
    pub const fn count(&self) -> c_int {
        self.count
    }

    /// `argv`.
    #[must_use]
    pub fn arguments(&self) -> *const *const c_char {
        self.from(1)
    }

    /// `envp`.
    #[must_use]
    pub fn environment(&self) -> *const *const c_char {
        self.from(usize::try_from(self.count).unwrap_or(0).saturating_add(2))
    }

    /// The words from one of them on, which are addresses up to a null one.
    fn from(&self, index: usize) -> *const *const c_char {
        self.words.get(index..).map_or(ptr::null(), |words| words.as_ptr().cast())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::CStr;

    #[test]
    fn words_as_the_abi_has_them() {
        let block = StartBlock::new(
            &[c"program".into(), c"one".into()],
            &[c"NAME=value".into()],
            &[(wide(libc::AT_PAGESZ), 4096)],
        );
        let &[2, _, one, 0, _, 0, page_size, 4096, 0, 0] = block.words() else {
            panic!("{:?}", block.words());
        };
        assert_eq!(page_size, libc::AT_PAGESZ as usize);
        // SAFETY: the texts are there, and the pointers to them.
        unsafe {
            assert_eq!(CStr::from_ptr(ptr::with_exposed_provenance(one)), c"one");
            assert_eq!(CStr::from_ptr(block.arguments().read()), c"program");
            assert_eq!(CStr::from_ptr(block.environment().read()), c"NAME=value");
        }
        assert_eq!(block.count(), 2);
        let &[_, first, second, _, variable, ..] = block.words() else { panic!("{block:?}") };
        let distances = (second.wrapping_sub(first), variable.wrapping_sub(second));
        assert_eq!(distances, (b"program\0".len(), b"one\0".len()), "one behind the other");
    }

    #[test]
    fn the_kernel_has_told_this_process() {
        let entries = StartBlock::auxiliary_of_process();
        let value = |wanted| entries.iter().find(|(it, _)| *it == wanted).map(|(_, value)| *value);
        assert_eq!(value(wide(libc::AT_PAGESZ)), Some(rustix::param::page_size() as u64));
        // SAFETY: asks only.
        let user = unsafe { libc::getuid() };
        assert_eq!(value(wide(libc::AT_UID)), Some(user.into()), "of root it is 0");
        assert_eq!(value(wide(MOST)), None);
    }
}
