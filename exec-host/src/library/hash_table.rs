//! Hash tables of libraries of the dynamic loader (GNU gABI, "DT_GNU_HASH"), copied: whoever has opened a library may close it.

use crate::word;

/// A copy of a hash table, but for the symbols.
#[derive(Debug)]
pub(super) struct Table {
    /// Index of the first symbol that is in it.
    first: u32,
    shift: u32,
    filter: Box<[usize]>,
    buckets: Box<[u32]>,
    chains: Box<[u32]>,
}

impl Table {
    /// Whether the filter lets a hash pass, whatever its lowest bit is: of names that are not there it does few.
    #[inline]
    fn may_pass(&self, hash: u32) -> bool {
        // a power of two of words
        let at = (hash / usize::BITS) as usize & self.filter.len().wrapping_sub(1);
        let word = self.filter.get(at).copied().unwrap_or(0);
        // of the filter's two bits for a hash one is that of its lower bits, where two stand side by side for both hashes
        let either = word.wrapping_shr(hash & !1) & 3;
        let other = word.wrapping_shr(hash.wrapping_shr(self.shift)) & 1;
        either != 0 && (other != 0 || self.shift == 0)
    }

    /// Whether a name has this hash, but for the lowest bit.
    #[inline]
    pub(super) fn may_hold(&self, hash: u32) -> bool {
        self.may_pass(hash) && (self.is_in_chain(hash & !1) || self.is_in_chain(hash | 1))
    }

    fn is_in_chain(&self, hash: u32) -> bool {
        self.chain(hash).next().is_some()
    }

    /// Whether a symbol may have this hash, as the filter says.
    #[inline]
    pub(super) fn passes(&self, hash: u32) -> bool {
        let at = (hash / usize::BITS) as usize & self.filter.len().wrapping_sub(1);
        let bits = 1usize.wrapping_shl(hash) | 1usize.wrapping_shl(hash.wrapping_shr(self.shift));
        self.filter.get(at).is_some_and(|word| word & bits == bits)
    }

    /// The numbers of symbols that have this hash, in order, but for the lowest bit.
    #[inline]
    pub(super) fn chain(&self, hash: u32) -> impl Iterator<Item = u32> {
        let bucket = (hash as usize).checked_rem(self.buckets.len());
        let start = bucket.and_then(|bucket| self.buckets.get(bucket)).copied().unwrap_or(0);
        let at = start.checked_sub(self.first).and_then(|first| usize::try_from(first).ok());
        let chain = at.and_then(|at| self.chains.get(at..)).unwrap_or_default();
        let mut is_over = false;
        let chain = chain.iter().take_while(move |word| {
            let is_in = !is_over;
            is_over = **word & 1 != 0;
            is_in
        });
        let of_hash = chain.zip(start..).filter(move |(word, _)| (*word ^ hash) >> 1 == 0);
        of_hash.map(|(_, index)| index)
    }

    /// The words of all symbols that are in it: their hashes, but for the lowest bit.
    pub(super) fn hashes(&self) -> &[u32] {
        &self.chains
    }

    /// The numbers of some of the symbols that are in a table of a library: the first of each bucket, up to so many buckets.
    ///
    /// # Safety
    /// There is one, of a library that is loaded, as long as the result is used.
    pub(super) unsafe fn some(table: u64) -> impl Iterator<Item = u32> {
        const MOST: u32 = 256;
        // SAFETY: as the caller guarantees.
        let [buckets, _, filter, _] = unsafe { read::<[u32; 4]>(table) };
        let at = table.wrapping_add(16).wrapping_add(u64::from(filter) * word::SIZE);
        // SAFETY: so many buckets are there.
        let buckets = unsafe { slice::<u32>(at, buckets.min(MOST)) };
        buckets.iter().copied().filter(|first| *first != 0)
    }

    /// Copies a table.
    ///
    /// # Safety
    /// There is one, of a library that is loaded.
    pub(super) unsafe fn copy(table: u64) -> Self {
        // SAFETY: as the caller guarantees.
        let [buckets, first, filter, shift] = unsafe { read::<[u32; 4]>(table) };
        let filter_at = table.wrapping_add(16);
        let buckets_at = filter_at.wrapping_add(u64::from(filter) * word::SIZE);
        let chains_at = buckets_at.wrapping_add(u64::from(buckets) * 4);
        // SAFETY: so many words and buckets are there.
        let (filter, buckets): (Box<[usize]>, Box<[u32]>) =
            unsafe { (slice(filter_at, filter).into(), slice(buckets_at, buckets).into()) };
        let last = buckets.iter().copied().max().unwrap_or(0).checked_sub(first);
        let count = last.map_or(0, |last| {
            let word = |index: u32| chains_at.wrapping_add(u64::from(index) * 4);
            // SAFETY: symbols have a word each, and the last chain an end.
            let is_end = |index: &u32| unsafe { read::<u32>(word(*index)) } & 1 != 0;
            (last..u32::MAX).find(is_end).unwrap_or(last).saturating_add(1)
        });
        // SAFETY: so many there are, as was just found.
        let chains = unsafe { slice(chains_at, count) }.into();
        Self { first, shift, filter, buckets, chains }
    }
}

/// # Safety
/// There is a value of this type, aligned.
pub(super) unsafe fn read<T>(address: u64) -> T {
    // SAFETY: as the caller guarantees.
    unsafe { core::ptr::with_exposed_provenance::<T>(address as usize).read() }
}

/// # Safety
/// There are so many numbers, aligned, which nobody writes to as long as the result is used.
unsafe fn slice<'a, T>(address: u64, count: u32) -> &'a [T] {
    let start = core::ptr::with_exposed_provenance::<T>(address as usize);
    // SAFETY: as the caller guarantees.
    unsafe { core::slice::from_raw_parts(start, count as usize) }
}
