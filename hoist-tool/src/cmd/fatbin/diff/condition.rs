//! `--fail-on`: what must not become of kernels.

use std::str::FromStr;

use super::difference::{Change, Difference, Needs};

/// `registers > +8`: a metric, a comparison, a number.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    text: String,
    metric: Metric,
    comparison: Comparison,
    number: f64,
    measure: Measure,
}

#[derive(Clone, Copy, Debug)]
enum Metric {
    /// Of every kernel that is in both.
    Kernel(fn(&Needs) -> Option<u64>),
    /// A number of kernels.
    Count(fn(&Difference) -> usize),
}

type Comparison = fn(&f64, &f64) -> bool;

/// What is compared with the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// The value after.
    After,
    /// How much more it is than before.
    More,
    /// The same in hundredths of what was before.
    Percent,
}

const METRICS: [(&str, Metric); 8] = [
    ("registers", Metric::Kernel(|needs| needs.registers.map(u64::from))),
    ("shared", Metric::Kernel(|needs| needs.shared)),
    ("stack", Metric::Kernel(|needs| needs.stack)),
    ("local", Metric::Kernel(|needs| needs.local)),
    ("code", Metric::Kernel(|needs| Some(needs.code_size))),
    ("added", Metric::Count(|found| found.added.len())),
    ("gone", Metric::Count(|found| found.gone.len())),
    ("changed", Metric::Count(|found| found.changed.len())),
];

/// Those of two letters first.
const COMPARISONS: [(&str, Comparison); 6] = [
    (">=", f64::ge),
    ("<=", f64::le),
    ("==", f64::eq),
    ("!=", f64::ne),
    (">", f64::gt),
    ("<", f64::lt),
];

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let names: Vec<_> = METRICS.iter().map(|(name, _)| *name).collect();
            format!("expected `METRIC > NUMBER` with one of {}", names.join(", "))
        };
        let find = |(sign, comparison): &(&str, Comparison)| {
            text.split_once(sign).map(|(metric, number)| (metric, *comparison, number))
        };
        let (metric, comparison, number) = COMPARISONS.iter().find_map(find).ok_or_else(wrong)?;
        let metric = METRICS.iter().find(|(name, _)| *name == metric.trim()).ok_or_else(wrong)?.1;
        let (number, is_percent) = match number.trim().strip_suffix('%') {
            Some(number) => (number.trim(), true),
            None => (number.trim(), false),
        };
        let is_signed = number.starts_with(['+', '-']);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let measure = match (is_percent, is_signed) {
            (true, _) => Measure::Percent,
            (false, true) => Measure::More,
            (false, false) => Measure::After,
        };
        if matches!(metric, Metric::Count(_)) && measure != Measure::After || !number.is_finite() {
            return Err(wrong());
        }
        Ok(Self { text: text.to_owned(), metric, comparison, number, measure })
    }
}

impl Condition {
    /// What it holds of, in words; one line for all kernels.
    pub(super) fn holds(&self, found: &Difference) -> Option<String> {
        let text = &self.text;
        let metric = match self.metric {
            Metric::Count(count) => {
                let count = count(found);
                return (self.comparison)(&(count as f64), &self.number)
                    .then(|| format!("{text}: {count} kernels"));
            }
            Metric::Kernel(metric) => metric,
        };
        let holds = |change: &&Change| {
            let value = |side: &Option<Needs>| side.as_ref().and_then(metric);
            let pair = value(&change.old).zip(value(&change.new));
            pair.is_some_and(|(old, new)| {
                let (old, new) = (old as f64, new as f64);
                let measured = match self.measure {
                    Measure::After => new,
                    Measure::More => new - old,
                    Measure::Percent if old == new => 0.0,
                    Measure::Percent => (new - old) / old * 100.0,
                };
                (self.comparison)(&measured, &self.number)
            })
        };
        let kernels: Vec<_> = found.changed.iter().filter(holds).collect();
        let first = kernels.first()?;
        let name = first.demangled.as_deref().unwrap_or(&first.name);
        let more = match kernels.len() {
            1 => String::new(),
            count => format!(" and {} more kernels", count - 1),
        };
        Some(format!("{text}: {name} for {}{more}", first.arch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_name::Text;

    fn changed(registers: [u32; 2], code: [u64; 2]) -> Difference {
        let [old, new] = [0, 1].map(|side| {
            let needs = |registers: [u32; 2], code: [u64; 2]| Needs {
                registers: registers.get(side).copied(),
                shared: Some(0),
                stack: None,
                local: Some(0),
                code_size: code.get(side).copied().unwrap_or(0),
                code: 0,
            };
            Some(needs(registers, code))
        });
        let [name, arch, file] = ["k", "sm_90", ""].map(Text::from);
        let one = Change { name, demangled: None, arch, file, old, new, other_code: false };
        Difference { changed: vec![one], ..Difference::default() }
    }

    #[test]
    fn conditions() {
        let holds = |text: &str| {
            let condition: Condition = text.parse().unwrap();
            condition.holds(&changed([32, 40], [1000, 900])).is_some()
        };
        for text in [
            "registers > +7",
            "registers>=40",
            "code < -5%",
            "changed > 0",
            "code != 1",
            "registers > 20%",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in [
            "registers > +8",
            "registers > 40",
            "code > +0%",
            "gone > 0",
            "stack > 0",
            "shared > +0",
        ] {
            assert!(!holds(text), "{text}");
        }
        for text in ["registers", "speed > 1", "gone > +1", "code > much", "registers > inf"] {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
        let said = "registers > +7".parse::<Condition>().unwrap().holds(&changed([1, 9], [1, 1]));
        assert_eq!(said.as_deref(), Some("registers > +7: k for sm_90"));
    }
}
