//! Who leads to whom, in order.

/// The numbers up to `count`, each before those that it leads to, as far as that can be: depth first, beginning with those that `from` gives.
pub(crate) fn sorted<T: IntoIterator<Item = usize>>(
    from: impl Iterator<Item = usize>,
    count: usize,
    leads: impl Fn(usize) -> T,
) -> Vec<usize> {
    let (mut visited, mut done) = (vec![false; count], Vec::with_capacity(count));
    let mut enter = |index: usize| {
        let place = visited.get_mut(index).filter(|place| !**place);
        place.map(|place| *place = true).map(|()| (index, leads(index).into_iter()))
    };
    for start in from {
        let mut path: Vec<_> = enter(start).into_iter().collect();
        while let Some((index, next)) = path.last_mut() {
            match next.find_map(&mut enter) {
                Some(deeper) => path.push(deeper),
                None => {
                    done.push(*index);
                    path.pop();
                }
            }
        }
    }
    done.reverse();
    done
}
