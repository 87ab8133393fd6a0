//! TLS descriptors of Arm: of variables that other objects see GNU ld makes initial exec where hoist makes local exec, in code of the
//! same size.

/// `R_ARM_TLS_GOTDESC`: a word that code loads. Its addend says how far before it the call is, and whether that is Thumb code.
pub(crate) const WORD: u32 = 90;

/// A section as its object and as a linker has it.
pub(crate) struct Codes<'a> {
    pub(crate) original: &'a [u8],
    pub(crate) theirs: &'a [u8],
    pub(crate) address: u64,
    /// Whether data are big-endian, beside little-endian code.
    pub(crate) big_endian: bool,
}

impl Codes<'_> {
    /// Takes the linker's code and word of the descriptor whose word is at `place` if both make the same of it: whether so.
    pub(crate) fn take_initial_exec(
        &self,
        place: usize,
        ours: &mut [u8],
        got: &dyn Fn(u64) -> Option<u64>,
    ) -> bool {
        let word =
            |bytes: &[u8], at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let data = |bytes: &[u8], at| {
            let word = word(bytes, at)?;
            Some(if self.big_endian { word.swap_bytes() } else { word })
        };
        let call = || {
            let held = data(self.original, place)?;
            let call = place.checked_sub((held & !1) as usize)?;
            // ldr r0, [pc, r0]; or add r0, pc and ldr r0, [r0]; for nop
            let (initial, local, ahead) = match held & 1 {
                0 => (0xe79f_0000, 0xe1a0_0000, 8),
                _ => (0x6800_4478, 0x8000_f3af, 4),
            };
            if word(self.theirs, call)? != initial || word(ours, call)? != local {
                return None;
            }
            let counted = (self.address as u32).wrapping_add(call as u32 + ahead);
            let entry = counted.wrapping_add(data(self.theirs, place)?);
            let is_same = got(entry.into())? == u64::from(data(ours, place)?);
            is_same.then_some(call)
        };
        let Some(call) = call() else { return false };
        for at in [call, place] {
            ours[at..at + 4].copy_from_slice(&self.theirs[at..at + 4]);
        }
        true
    }
}
