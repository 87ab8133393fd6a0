//! Where everything that can be shown is shown.

use core::fmt::{Debug, Display, Write};

/// Takes text and keeps its length: showing a value reads all of it.
#[derive(Default)]
pub(super) struct Sink(usize);

impl Write for Sink {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0 = self.0.wrapping_add(text.len());
        Ok(())
    }
}

impl Sink {
    /// Shows a value to programmers.
    pub(super) fn debug(&mut self, value: impl Debug) {
        write!(self, "{value:?}").expect("the sink takes everything");
    }

    /// Shows a value to users: never an empty text.
    pub(super) fn display(&mut self, value: impl Display) {
        let before = self.0;
        write!(self, "{value}").expect("the sink takes everything");
        assert!(self.0 > before, "an empty message");
    }

    /// Shows a value, or why there is none.
    pub(super) fn result<T: Debug, E: Display>(&mut self, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => {
                self.debug(&value);
                Some(value)
            }
            Err(error) => {
                self.display(error);
                None
            }
        }
    }
}
