//! Which targets go together, in LLVM's words.

use elf_core::Name;

/// A target: triple and architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadTarget<'a> {
    /// `nvptx64-nvidia-cuda`.
    pub triple: Name<'a>,
    /// `sm_90`, `gfx90a:xnack+`, `generic`.
    pub arch: Name<'a>,
}

impl OffloadTarget<'_> {
    /// Whether code for one goes with code for the other: equal triples, and equal architectures, or one of them `generic`;
    /// for AMD GPUs the same processor, with no feature (`xnack`, `sramecc`) on in one and off in the other
    /// (`areTargetsCompatible`, OffloadBinary.cpp).
    #[must_use]
    pub fn is_compatible(self, other: Self) -> bool {
        if trimmed(self.triple.as_bytes()) != trimmed(other.triple.as_bytes()) {
            return false;
        }
        let amd = self.triple.as_bytes().starts_with(b"amdgcn");
        self.arch == other.arch
            || self.arch == "generic"
            || other.arch == "generic"
            || (amd
                && processor(self.arch) == processor(other.arch)
                && !contradicts(self.arch, other.arch))
    }
}

/// A triple without the dashes at its end: its environment is often empty.
pub(crate) fn trimmed(triple: &[u8]) -> &[u8] {
    let mut bytes = triple;
    while let Some(rest) = bytes.strip_suffix(b"-") {
        bytes = rest;
    }
    bytes
}

/// What comes before the features.
fn processor(arch: Name<'_>) -> Option<&[u8]> {
    arch.as_bytes().split(|&byte| byte == b':').next()
}

/// Whether a feature is on in one and off in the other.
fn contradicts(one: Name<'_>, other: Name<'_>) -> bool {
    let has = |arch: Name<'_>, feature: &[u8]| {
        arch.as_bytes().split(|&byte| byte == b':').any(|part| part == feature)
    };
    let pairs: [(&[u8], &[u8]); 2] = [(b"xnack+", b"xnack-"), (b"sramecc+", b"sramecc-")];
    pairs
        .iter()
        .any(|&(on, off)| (has(one, on) && has(other, off)) || (has(one, off) && has(other, on)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compatibility() {
        for (one, other, expected) in [
            (("nvptx64-nvidia-cuda", "sm_90"), ("nvptx64-nvidia-cuda", "sm_90"), true),
            (("nvptx64-nvidia-cuda", "sm_90"), ("nvptx64-nvidia-cuda", "sm_80"), false),
            (("nvptx64-nvidia-cuda", "sm_90"), ("nvptx64-nvidia-cuda", "generic"), true),
            (("nvptx64-nvidia-cuda", "generic"), ("amdgcn-amd-amdhsa", "gfx90a"), false),
            (("amdgcn-amd-amdhsa", "gfx90a"), ("amdgcn-amd-amdhsa--", "gfx90a:xnack+"), true),
            (("amdgcn-amd-amdhsa", "gfx90a:xnack-"), ("amdgcn-amd-amdhsa", "gfx90a:xnack+"), false),
            (
                ("amdgcn-amd-amdhsa", "gfx90a:xnack-"),
                ("amdgcn-amd-amdhsa", "gfx90a:sramecc+"),
                true,
            ),
            (
                ("amdgcn-amd-amdhsa", "gfx90a:sramecc+:xnack-"),
                ("amdgcn-amd-amdhsa", "gfx90a:sramecc-"),
                false,
            ),
            (("amdgcn-amd-amdhsa", "gfx90a"), ("amdgcn-amd-amdhsa", "gfx908"), false),
        ] {
            let target = |(triple, arch): (&'static str, &'static str)| OffloadTarget {
                triple: triple.into(),
                arch: arch.into(),
            };
            assert_eq!(target(one).is_compatible(target(other)), expected, "{one:?} {other:?}");
            assert_eq!(target(other).is_compatible(target(one)), expected, "{other:?} {one:?}");
        }
    }
}
