//! What is compared: lines of words, by what they speak of.

use std::collections::BTreeMap;

/// What a line speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Header,
    Section,
    Segment,
    Dynamic,
    Symbol,
    Relocation,
    PackedRelocation,
}

/// Lines by topic, in their order, with one blank between words.
#[derive(Debug, Default)]
pub(crate) struct Lines(BTreeMap<Topic, Vec<Line>>);

#[derive(Debug)]
struct Line {
    text: String,
    /// The same with a number for a name that not everybody knows.
    unnamed: Option<String>,
}

impl Lines {
    pub(crate) fn add(&mut self, topic: Topic, line: &str) {
        self.0.entry(topic).or_default().push(Line { text: words(line), unnamed: None });
    }

    /// A line and how it is without the name.
    pub(crate) fn add_either(&mut self, topic: Topic, line: &str, unnamed: &str) {
        self.0
            .entry(topic)
            .or_default()
            .push(Line { text: words(line), unnamed: Some(words(unnamed)) });
    }

    pub(crate) fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// What differs from `other`: topic, this line, other line.
    pub(crate) fn differences<'l>(&'l self, other: &'l Self) -> Vec<(Topic, &'l str, &'l str)> {
        let mut found = Vec::new();
        for topic in [
            Topic::Header,
            Topic::Section,
            Topic::Segment,
            Topic::Dynamic,
            Topic::Symbol,
            Topic::Relocation,
            Topic::PackedRelocation,
        ] {
            let (own, others) = (self.of(topic), other.of(topic));
            for at in 0..own.len().max(others.len()) {
                let text = |lines: &'l [Line]| {
                    lines.get(at).map_or("(no line)", |line| line.text.as_str())
                };
                let (line, other) = (text(own), text(others));
                let unnamed = own.get(at).and_then(|line| line.unnamed.as_deref());
                if line != other && unnamed != Some(other) {
                    found.push((topic, line, other));
                }
            }
        }
        found
    }

    fn of(&self, topic: Topic) -> &[Line] {
        self.0.get(&topic).map_or(&[], Vec::as_slice)
    }
}

/// The words of a line with one blank between.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
