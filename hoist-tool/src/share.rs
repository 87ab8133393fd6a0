//! Work that several do who look at the same files: each takes a share.

use core::fmt;
use core::str::FromStr;

/// The second of three: `2/3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// From 0 on.
    index: u64,
    of: u64,
}

impl Share {
    /// All of the work.
    pub const ALL: Self = Self { index: 0, of: 1 };

    /// Whether nobody comes after it: who has it also tells what is found once, and not in each share.
    #[must_use]
    pub const fn is_last(self) -> bool {
        self.index + 1 == self.of
    }

    /// Leaves what belongs to this share of pieces in a row: those whose middle lies in it. What all shares have, one after another, is
    /// the whole row.
    pub fn retain<T>(self, pieces: &mut Vec<T>, cost: impl Fn(&T) -> u64) {
        if self == Self::ALL {
            return;
        }
        let all: u128 = pieces.iter().map(|piece| u128::from(cost(piece))).sum();
        let mut before = 0_u128;
        pieces.retain(|piece| {
            let cost = u128::from(cost(piece));
            let middle = before.saturating_mul(2).saturating_add(cost);
            before = before.saturating_add(cost);
            // pieces that cost nothing at the end belong to the last
            let index = middle.saturating_mul(self.of.into()) / all.saturating_mul(2).max(1);
            index.min(u128::from(self.of) - 1) == u128::from(self.index)
        });
    }
}

/// What is no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoShare;

impl core::error::Error for NoShare {}

impl fmt::Display for NoShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a share is its number and how many there are, no more than 4096: `1/2`")
    }
}

impl FromStr for Share {
    type Err = NoShare;

    fn from_str(text: &str) -> Result<Self, NoShare> {
        let (number, of) = text.split_once('/').ok_or(NoShare)?;
        let [number, of] = [number, of].map(|text| text.parse::<u64>().map_err(|_| NoShare));
        let (number, of) = (number?, of?);
        if of > 4096 || !(1..=of).contains(&number) {
            return Err(NoShare);
        }
        Ok(Self { index: number - 1, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_whole_in_order() {
        for costs in [&[][..], &[0, 0, 0], &[7], &[1, 1, 1, 1], &[0, 9, 0, 1, u64::MAX, 3, 0]] {
            for of in 1..6 {
                let mut all = Vec::new();
                for number in 1..=of {
                    let share: Share = format!("{number}/{of}").parse().unwrap();
                    assert_eq!(share.is_last(), number == of);
                    let mut mine: Vec<_> = costs.iter().enumerate().collect();
                    share.retain(&mut mine, |(_, cost)| **cost);
                    all.extend(mine);
                }
                assert_eq!(all, costs.iter().enumerate().collect::<Vec<_>>(), "{of}");
            }
        }
        let mut halves = vec![1; 10];
        Share { index: 1, of: 2 }.retain(&mut halves, |cost| *cost);
        assert_eq!(halves.len(), 5);
    }

    #[test]
    fn what_is_no_share() {
        for text in ["", "1", "0/1", "2/1", "1/4097", "-1/2", "1/2/3", "1/18446744073709551616"] {
            assert_eq!(text.parse::<Share>(), Err(NoShare), "{text}");
        }
        assert_eq!("1/1".parse(), Ok(Share::ALL));
    }
}
