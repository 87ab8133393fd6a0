//! What came of tests, read from what their runners print.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What the closing lines of all test runners say together.
#[derive(Default)]
pub(crate) struct Total {
    passed: u64,
    pub(super) failed: u64,
    ignored: u64,
    /// The packages of the programs that run tests, by their file names.
    programs: BTreeMap<String, String>,
    /// The package whose lines come.
    package: String,
    /// The runner whose lines come: the name of the library or file of tests.
    runner: String,
    /// The test whose output comes.
    test: String,
    /// Tests that passed without testing, by their full names, and why: lines `skipped: NAME: REASON`.
    skipped: BTreeMap<String, BTreeSet<String>>,
    /// Tests that are marked so, in the same way.
    marked: BTreeMap<String, BTreeSet<String>>,
}

impl Total {
    /// Of programs that run tests of these packages.
    pub(super) fn of_programs(programs: BTreeMap<String, String>) -> Self {
        Self { programs, ..Self::default() }
    }

    /// Of tests of one package.
    pub(crate) fn of_package(name: &str) -> Self {
        Self { package: name.to_owned(), ..Self::default() }
    }

    /// The tests that were skipped, by full name (`PACKAGE/RUNNER::TEST`), and why.
    pub(super) fn skipped(&self) -> impl Iterator<Item = (&str, &BTreeSet<String>)> {
        let all = self.skipped.iter().chain(&self.marked);
        all.map(|(name, reasons)| (name.as_str(), reasons))
    }

    /// Notes whose output comes next.
    fn follow(&mut self, line: &str) {
        let line = line.trim_start();
        if let Some(library) = line.strip_prefix("Doc-tests ") {
            self.package = library.replace('_', "-");
            (self.runner, self.test) = (String::from("doc"), String::new());
        } else if let Some((_, program)) =
            line.strip_prefix("Running ").and_then(|rest| rest.split_once(" ("))
        {
            let file = program.trim_end_matches(')').rsplit('/').next().unwrap_or_default();
            if let Some(package) = self.programs.get(file) {
                self.package.clone_from(package);
            }
            let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
            (self.runner, self.test) = (name.to_owned(), String::new());
        } else if let Some(test) =
            line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.test = test.to_owned();
        }
    }

    /// The full name of a test of the current runner.
    fn full(&self, test: &str) -> String {
        format!("{}/{}::{test}", self.package, self.runner)
    }

    /// Takes in one line of output.
    pub(crate) fn read(&mut self, line: &str) {
        let line = line.trim_end();
        self.follow(line);
        if let Some((name, reason)) =
            line.strip_prefix("skipped: ").and_then(|rest| rest.split_once(": "))
        {
            let test = self.full(if self.test.is_empty() { name } else { &self.test });
            self.skipped.entry(test).or_default().insert(reason.to_owned());
        }
        let marked = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ignored"));
        if let Some((test, reason)) = marked {
            let reason = reason.trim_start_matches(", ").to_owned();
            self.marked.entry(self.full(test)).or_default().insert(reason);
        }
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let Some((_verdict, counts)) = counts.split_once(". ") else { return };
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

/// `N passed, N failed, N skipped`. A test that skipped itself was counted among the passed ones by its runner.
impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self.skipped.len() as u64;
        let passed = self.passed.saturating_sub(skipped);
        let skipped = self.ignored + skipped;
        write!(f, "{passed} passed, {} failed, {skipped} skipped", self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(lines: &[&str]) -> String {
        let mut total = Total::default();
        lines.iter().for_each(|line| total.read(line));
        total.to_string()
    }

    #[test]
    fn sums_closing_lines() {
        let lines = [
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
            "test a::b ... ok\n",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s\n",
        ];
        assert_eq!(total(&lines), "7 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn a_test_that_skips_itself_has_not_passed() {
        let lines = [
            "skipped: runs_on_gpu: no driver\n",
            "skipped: runs_on_gpu: no driver\n",
            "skipped: nothing\n",
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        ];
        assert_eq!(total(&lines), "1 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn skips_have_full_names() {
        let programs =
            [("elf_core-01", "elf-core"), ("links-02", "elf-layout"), ("links-03", "exec-host")];
        let programs = programs.map(|(file, package)| (file.to_owned(), package.to_owned()));
        let mut total = Total::of_programs(programs.into());
        for line in [
            "     Running unittests src/lib.rs (target/debug/deps/elf_core-01)",
            "test file::tests::slow ... ignored, takes minutes",
            "     Running tests/links.rs (target/debug/deps/links-02)",
            "---- one stdout ----",
            "skipped: links: needs cc",
            "---- two stdout ----",
            "skipped: links: needs cc",
            "skipped: links: needs ld",
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s",
            "     Running tests/links.rs (target/debug/deps/links-03)",
            "---- one stdout ----",
            "skipped: links: needs cc",
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s",
            "   Doc-tests exec_host",
            "test exec-host/src/lib.rs - (line 3) ... ignored",
        ] {
            total.read(line);
        }
        assert_eq!(total.to_string(), "1 passed, 0 failed, 3 skipped");
        let names: Vec<&str> = total.skipped().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "elf-layout/links::one",
                "elf-layout/links::two",
                "exec-host/links::one",
                "elf-core/elf_core::file::tests::slow",
                "exec-host/doc::exec-host/src/lib.rs - (line 3)",
            ]
        );
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(total(&[]), "0 passed, 0 failed, 0 skipped");
    }
}
