//! Files that cannot be opened and memory that cannot be mapped, each in turn, on every generation.

use super::fake::{Class, Fake};
use super::launch_test::scenario;

/// Everything once, with the n-th of something refused, until all of them have been: how many there are.
fn each_refused(class: Class, what: &str, refuse: impl Fn(&Fake, usize), words: &str) -> usize {
    for index in 0.. {
        let fake = Fake::new(class);
        refuse(&fake, index);
        let outcome = scenario(&fake, class);
        let is_over = {
            let state = fake.state();
            state.fail_open.or(state.fail_map).is_some()
        };
        let call = format!("{class:x?}, {what} {index}: {outcome:?}");
        match &outcome {
            Ok(()) => assert!(is_over, "{call} was not noticed"),
            Err(error) => assert!(!is_over && error.contains(words), "{call}"),
        }
        let left = (fake.left(), fake.state().abandoned.clone());
        assert_eq!(left, (String::new(), String::new()), "{call}");
        if is_over {
            return index;
        }
    }
    0
}

#[test]
fn every_file_can_be_refused() {
    for class in Class::GENERATIONS {
        let refuse = |fake: &Fake, index| fake.state().fail_open = Some(index);
        let count = each_refused(class, "file", refuse, "cannot be opened: errno 24");
        assert!(count > 10, "{class:x?}: {count} files");
    }
}

#[test]
fn every_mapping_can_be_refused() {
    for class in Class::GENERATIONS {
        let refuse = |fake: &Fake, index| fake.state().fail_map = Some(index);
        let count = each_refused(class, "mapping", refuse, "bytes cannot be mapped: errno 12");
        assert!(count > 7, "{class:x?}: {count} mappings");
    }
}
