//! Sorting without a panic.

/// Heapsort: in place, and without the panics of the standard one.
pub(crate) fn sort<T>(items: &mut [T], key: impl Fn(&T) -> u32) {
    let sift = |items: &mut [T], start: usize, end: usize| {
        let mut parent = start;
        loop {
            let left = parent.saturating_mul(2).saturating_add(1);
            let right = left.saturating_add(1);
            let of = |index: usize| items.get(index).filter(|_| index < end).map(&key);
            let Some(child) =
                (if of(right) > of(left) { Some(right) } else { of(left).map(|_| left) })
            else {
                return;
            };
            if of(child) <= of(parent) {
                return;
            }
            swap(items, parent, child);
            parent = child;
        }
    };
    let len = items.len();
    for start in (0..len / 2).rev() {
        sift(items, start, len);
    }
    for end in (1..len).rev() {
        swap(items, 0, end);
        sift(items, 0, end);
    }
}

fn swap<T>(items: &mut [T], one: usize, other: usize) {
    if let Ok([one, other]) = items.get_disjoint_mut([one, other]) {
        core::mem::swap(one, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn sorts() {
        for len in 0..40u32 {
            let mut items: Vec<u32> =
                (0..len).map(|index| index.wrapping_mul(2654435761) % 17).collect();
            let mut expected = items.clone();
            expected.sort();
            sort(&mut items, |item| *item);
            assert_eq!(items, expected);
        }
    }
}
