//! nvlink's way to sort, of which the order of what compares equal is seen in linked files.

use alloc::collections::VecDeque;

/// Sorts by merging. Items are dealt to the fronts of two lists by turns, these are sorted and put together: the first item of
/// the first list goes before that of the second if `goes_first` says so of both.
pub(super) fn sort<T>(
    items: impl IntoIterator<Item = T>,
    goes_first: &impl Fn(&T, &T) -> bool,
) -> VecDeque<T> {
    let (mut first, mut second) = (VecDeque::new(), VecDeque::new());
    for (item, is_odd) in items.into_iter().zip([false, true].into_iter().cycle()) {
        if is_odd { &mut second } else { &mut first }.push_front(item);
    }
    if second.is_empty() {
        return first;
    }
    let (mut first, mut second) = (sort(first, goes_first), sort(second, goes_first));
    let mut merged = VecDeque::new();
    while let Some((a, b)) = first.front().zip(second.front()) {
        let list = if goes_first(a, b) { &mut first } else { &mut second };
        merged.extend(list.pop_front());
    }
    merged.append(&mut first);
    merged.append(&mut second);
    merged
}

#[cfg(test)]
mod tests {
    use super::sort;
    use alloc::vec::Vec;

    #[test]
    fn equal_items_are_in_the_order_of_nvlink() {
        let order = |count, equal| Vec::from(sort(0..count, &|_, _| equal));
        assert_eq!(order(1, false), [0]);
        assert_eq!(order(6, false), [3, 5, 1, 2, 4, 0]);
        assert_eq!(order(6, true), [0, 4, 2, 1, 5, 3]);
    }

    #[test]
    fn items_are_sorted() {
        let items = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5];
        let sorted = Vec::from(sort(items, &|a: &i32, b: &i32| a < b));
        assert_eq!(sorted, [1, 1, 2, 3, 3, 4, 5, 5, 5, 6, 9]);
    }
}
