//! In which order libraries are asked: breadth first, and what stands in for a library before it, as ld.so has it (`_dl_map_object_deps`).

/// What a library leads to, and whether that is asked before it (`DT_FILTER`, `DT_AUXILIARY`).
pub(super) type Leads<T> = Vec<(T, bool)>;

/// What leads to what.
pub(super) trait Graph {
    type Library;

    /// What a library leads to, in order.
    fn leads(&self, library: &Self::Library) -> Leads<Self::Library>;

    /// Whether it leads to one that is asked before it.
    fn has_stand_ins(&self, library: &Self::Library) -> bool;

    fn are_one(&self, one: &Self::Library, other: &Self::Library) -> bool;
}

/// How often what is in the list already may be moved: libraries that stand in for each other would be so for ever.
const MOST_MOVES: usize = 4096;

/// A library and all that it leads to, each once, found out as far as it is asked for.
#[derive(Debug)]
pub(super) struct SearchList<T> {
    /// Each with whether all that it leads to is in the list.
    list: Vec<(T, bool)>,
    /// Up to here all are so.
    at: usize,
    /// So many are what they stay.
    known: usize,
    moves: usize,
}

impl<T> SearchList<T> {
    pub(super) fn new(first: T) -> Self {
        Self { list: vec![(first, false)], ..Self::empty() }
    }

    /// Without any.
    pub(super) const fn empty() -> Self {
        Self { list: Vec::new(), at: 0, known: 0, moves: 0 }
    }

    /// Whether it has to be found out which library is asked at this number.
    #[inline]
    pub(super) const fn is_at_end(&self, number: usize) -> bool {
        number >= self.list.len()
    }

    /// The library that is asked at this number.
    #[inline]
    pub(super) fn get(&mut self, number: usize, graph: &impl Graph<Library = T>) -> Option<&T> {
        while number >= self.known && self.at < self.list.len() {
            let before = self.list.get(self.at..=number);
            let is_known = before.is_some_and(|before| {
                before.iter().all(|(library, is_done)| *is_done || !graph.has_stand_ins(library))
            });
            if is_known {
                self.known = number.saturating_add(1);
            } else {
                self.go_on(graph);
            }
        }
        self.list.get(number).map(|(library, _)| library)
    }

    /// Puts what the next one leads to into the list.
    fn go_on(&mut self, graph: &impl Graph<Library = T>) {
        let Some((library, is_done)) = self.list.get_mut(self.at) else { return };
        if core::mem::replace(is_done, true) {
            self.at = self.at.saturating_add(1);
            return;
        }
        // where the library is: those before it come in front
        let mut here = self.at;
        for (other, is_before) in graph.leads(library) {
            let known = self.list.iter().position(|(known, _)| graph.are_one(known, &other));
            let entry = match known {
                None => (other, false),
                Some(behind) if is_before && behind > here && self.moves < MOST_MOVES => {
                    self.moves = self.moves.saturating_add(1);
                    (self.list.remove(behind).0, false)
                }
                Some(_) => continue,
            };
            if is_before {
                self.list.insert(here, entry);
                here = here.saturating_add(1);
            } else {
                self.list.push(entry);
            }
        }
    }

    /// All of them.
    pub(super) fn all(mut self, graph: &impl Graph<Library = T>) -> Vec<T> {
        while self.at < self.list.len() {
            self.go_on(graph);
        }
        self.list.into_iter().map(|(library, _)| library).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Edges(&'static [(u8, u8, bool)]);

    impl Graph for Edges {
        type Library = u8;

        fn leads(&self, library: &u8) -> Leads<u8> {
            let all = self.0.iter().filter(|(of, ..)| of == library);
            all.map(|(_, to, is_before)| (*to, *is_before)).collect()
        }

        fn has_stand_ins(&self, library: &u8) -> bool {
            self.0.iter().any(|(of, _, is_before)| of == library && *is_before)
        }

        fn are_one(&self, one: &u8, other: &u8) -> bool {
            one == other
        }
    }

    /// The list, all at once and one after the other.
    fn list(edges: &'static [(u8, u8, bool)]) -> Vec<u8> {
        let all = SearchList::new(0).all(&Edges(edges));
        let mut list = SearchList::new(0);
        for (number, library) in all.iter().enumerate() {
            assert_eq!(list.get(number, &Edges(edges)), Some(library), "{edges:?}");
        }
        assert_eq!(list.get(all.len(), &Edges(edges)), None, "{edges:?}");
        all
    }

    #[test]
    fn breadth_first_and_stand_ins_before() {
        let diamond = &[(0, 1, false), (0, 2, false), (1, 3, false), (2, 1, false), (3, 4, false)];
        assert_eq!(list(diamond), [0, 1, 2, 3, 4]);
        // of the first, of another one, of what stands in
        assert_eq!(list(&[(0, 1, false), (0, 2, true), (0, 3, true)]), [2, 3, 0, 1]);
        assert_eq!(list(&[(0, 1, false), (1, 2, true), (2, 3, true)]), [0, 3, 2, 1]);
        // behind it already: moved; before it, or itself: not
        assert_eq!(list(&[(0, 1, false), (0, 2, false), (1, 2, true)]), [0, 2, 1]);
        assert_eq!(list(&[(0, 1, false), (0, 2, false), (2, 1, true)]), [0, 1, 2]);
        assert_eq!(list(&[(0, 0, true)]), [0]);
        // for each other: it ends
        assert_eq!(SearchList::new(0).all(&Edges(&[(0, 1, true), (1, 0, true)])).len(), 2);
    }

    /// Nothing is asked what it leads to before it has to be.
    #[test]
    fn no_more_than_is_asked_for() {
        let edges = Edges(&[(0, 1, false), (0, 2, false), (1, 3, false)]);
        let mut list = SearchList::new(0);
        for (number, count) in [(0, 1), (2, 3), (3, 4)] {
            assert_eq!(list.get(number, &edges), Some(&(number as u8)));
            assert_eq!(list.list.len(), count);
        }
    }
}
