//! Code that the compiler cannot check: `UNSAFE.md` against the sources. Its table has a row a file: how often it says `unsafe`, what it
//! relies on, and which tests show that. What a library asks for with `unsafe` has an example that must not compile without.
//!
//! A test is named `PROGRAM::TEST`, of a program in the crate's `tests/` (in Rust or Python), or `FILE::TEST`, of a file of the crate or, by its path from
//! the root, of another: `arena::threads_run_meanwhile`, `src/compile_fail::constructors`. What must not compile is a test, too: its name is
//! that of the item that it documents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use proc_macro2::{TokenStream, TokenTree};

use crate::packages::Package;
use crate::workspace::Workspace;

/// The list, at the root of the workspace.
const LIST: &str = "UNSAFE.md";

/// Crates that no program is made of.
const OUTSIDE: &[&str] = &["benches", "xtask"];

/// Crates that others call: what is `unsafe` to ask of them has an example.
const LIBRARIES: &[&str] = &["exec-core", "exec-host", "exec-nv"];

/// How often each file says `unsafe`, by its path from the root.
type Counts = BTreeMap<String, usize>;

/// A row of the table, but for the name of its file and the words.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    number: usize,
    tests: Vec<String>,
}

/// The rows, by their files.
type Rows = BTreeMap<String, Row>;

/// Faults: files of the crates that the list does not have, or has otherwise.
pub(crate) fn faults(packages: &[Package], workspace: &Workspace) -> Result<Vec<String>> {
    let path = workspace.root().join(LIST);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {LIST}"))?;
    let listed = listed(&text).context(LIST)?;
    let mut real = Counts::new();
    let mut asked = Vec::new();
    for package in packages.iter().filter(|package| !OUTSIDE.contains(&package.name.as_str())) {
        for root in package.roots() {
            let folder = root.parent().unwrap_or(root);
            let is_source = folder.file_name().is_some_and(|name| name == "src");
            if !is_source {
                continue;
            }
            let mut source = Source::default();
            for file in sources(folder)? {
                let text = fs::read_to_string(&file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                let tokens = tokens(&text).with_context(|| file.display().to_string())?;
                let count = count(tokens.clone());
                source.read(tokens);
                let name = file.strip_prefix(workspace.root()).unwrap_or(&file);
                if count > 0 {
                    real.insert(name.display().to_string(), count);
                }
            }
            if LIBRARIES.contains(&package.name.as_str()) {
                asked.extend(source.without_example(&package.name));
            }
        }
    }
    let mut faults = differences(&listed, &real);
    faults.extend(missing_tests(&listed, workspace.root())?);
    faults.extend(asked);
    Ok(faults)
}

/// All files of Rust in a folder and those in it.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

/// How often a text says `unsafe`, comments and strings aside: blocks, functions, implementations, pointers to functions. Attributes
/// (`unsafe_code`, `unsafe(naked)`) have words of their own, or belong to one that is counted.
fn count(tokens: TokenStream) -> usize {
    let one = |token| match token {
        TokenTree::Group(group) => count(group.stream()),
        TokenTree::Ident(ident) => usize::from(ident == "unsafe"),
        _ => 0,
    };
    tokens.into_iter().map(one).sum()
}

fn tokens(text: &str) -> Result<TokenStream> {
    text.parse().map_err(|error| anyhow::anyhow!("{error}"))
}

/// What is found in a source, or several.
#[derive(Default)]
struct Source {
    /// Names of functions that are tests, and of items with an example that must not compile.
    tests: BTreeSet<String>,
    /// The examples that must not compile without `unsafe` (E0133, E0200).
    examples: String,
    /// What is public and `unsafe`: functions, traits.
    asked: BTreeSet<String>,
}

/// Words before the name of an item.
const KEYWORDS: &[&str] = &["fn", "mod", "struct", "enum", "trait"];

impl Source {
    fn read(&mut self, tokens: TokenStream) {
        // what was said since the last item began
        let (mut is_test, mut is_public, mut is_unsafe) = (false, false, false);
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    if let Some(TokenTree::Group(group)) = tokens.next_if(is_group) {
                        is_test |= self.attribute(group.stream());
                    }
                }
                TokenTree::Ident(word) if KEYWORDS.contains(&word.to_string().as_str()) => {
                    let name = tokens.next_if(|next| matches!(next, TokenTree::Ident(_)));
                    // `fn(..)` is a type
                    let Some(name) = name else { continue };
                    if is_test {
                        self.tests.insert(name.to_string());
                    }
                    if is_public && is_unsafe {
                        self.asked.insert(name.to_string());
                    }
                    (is_test, is_public, is_unsafe) = (false, false, false);
                }
                // `pub(crate)` is not for others
                TokenTree::Ident(word) if word == "pub" => {
                    is_public = tokens.next_if(is_group).is_none();
                }
                TokenTree::Ident(word) => is_unsafe |= word == "unsafe",
                TokenTree::Group(group) => {
                    self.read(group.stream());
                    (is_test, is_public, is_unsafe) = (false, false, false);
                }
                TokenTree::Punct(mark) if mark.as_char() == ';' => {
                    (is_test, is_public, is_unsafe) = (false, false, false);
                }
                _ => {}
            }
        }
    }

    /// Whether an attribute makes a test of what it stands at. Documentation comes line by line.
    fn attribute(&mut self, content: TokenStream) -> bool {
        let mut content = content.into_iter();
        match content.next() {
            Some(TokenTree::Ident(word)) if word == "doc" => {
                let line = content.nth(1).map(|literal| literal.to_string()).unwrap_or_default();
                self.examples.push_str(&line);
                self.examples.push('\n');
                line.contains("```compile_fail,")
            }
            Some(TokenTree::Ident(word)) => word == "test",
            _ => false,
        }
    }

    /// A line for each thing that is `unsafe` to ask for, and has no example.
    fn without_example(&self, package: &str) -> Vec<String> {
        let mut examples = BTreeSet::new();
        let mut is_example = false;
        for line in self.examples.lines() {
            if line.contains("```") {
                is_example =
                    line.contains("compile_fail,E0133") || line.contains("compile_fail,E0200");
            } else if is_example {
                let words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
                examples.extend(words.map(str::to_owned));
            }
        }
        let missing = self.asked.iter().filter(|name| !examples.contains(*name));
        missing
            .map(|name| {
                format!(
                    "{package}: {name} is public and unsafe: no example must not compile without"
                )
            })
            .collect()
    }
}

fn is_group(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(_))
}

/// A line for each test that is named and not there.
fn missing_tests(rows: &Rows, root: &Path) -> Result<Vec<String>> {
    let mut known: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    let mut faults = Vec::new();
    for (file, row) in rows {
        let package = root.join(file.split('/').next().unwrap_or_default());
        if row.tests.is_empty() {
            faults.push(format!("{file}: no test shows it"));
        }
        for test in &row.tests {
            let Some((place, name)) = test.rsplit_once("::") else {
                faults.push(format!("{file}: {test} is no name of a test"));
                continue;
            };
            let script = package.join("tests").join(format!("{place}.py"));
            if script.is_file() {
                let text = fs::read_to_string(&script)?;
                if !text.lines().any(|line| line.starts_with(&format!("def {name}("))) {
                    faults.push(format!("{file}: there is no test {test}"));
                }
                continue;
            }
            let place = format!("{place}.rs");
            let places =
                [package.join("tests").join(&place), package.join(&place), root.join(&place)];
            let Some(path) = places.into_iter().find(|path| path.is_file()) else {
                faults.push(format!("{file}: {test}: there is no {place}"));
                continue;
            };
            if !known.contains_key(&path) {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let mut source = Source::default();
                source.read(tokens(&text).with_context(|| path.display().to_string())?);
                known.insert(path.clone(), source.tests);
            }
            if !known.get(&path).is_some_and(|tests| tests.contains(name)) {
                faults.push(format!("{file}: there is no test {test}"));
            }
        }
    }
    Ok(faults)
}

/// The rows of the table: a file, a number, words, tests.
fn listed(text: &str) -> Result<Rows> {
    let mut rows = Rows::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [file, number, words, tests] = cells[..] else { bail!("not four columns: {line}") };
        let number = number.parse().with_context(|| format!("no number: {line}"))?;
        if words.is_empty() {
            bail!("does not say what it relies on: {line}");
        }
        let tests = tests.split_whitespace().map(|test| test.trim_matches('`').to_owned());
        let row = Row { number, tests: tests.collect() };
        if rows.insert(file.trim_matches('`').to_owned(), row).is_some() {
            bail!("{file} has two rows");
        }
    }
    Ok(rows)
}

/// A line for each file that is not as it is listed.
fn differences(listed: &Rows, real: &Counts) -> Vec<String> {
    let said = |file: &String| listed.get(file).map(|row| row.number);
    let new = real.iter().filter(|(file, count)| said(file) != Some(**count));
    let new = new.map(|(file, count)| {
        let said = said(file).map_or("no row".to_owned(), |number| number.to_string());
        format!("{file}: says `unsafe` {count} times, {LIST}: {said}")
    });
    let gone = listed.keys().filter(|file| !real.contains_key(*file));
    new.chain(gone.map(|file| format!("{file}: in {LIST}, and without `unsafe`"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_where_they_are_code() {
        let text = "// unsafe\n/// unsafe\nfn a() { let unsafe_code = \"unsafe\"; unsafe { b() } }\n\
                    unsafe extern \"C\" { fn c(); }\nmacro_rules! d { () => { unsafe { c() } }; }";
        assert_eq!(count(tokens(text).unwrap()), 3);
        assert!(tokens("fn a( {").is_err());
    }

    const TABLE: &str = "# Title\n\n| file | number | relies on | shown by |\n|---|---:|---|---|\n\
                         | `x/a.rs` | 2 | x | `t::one` `src/a::two` |\n| `x/b.rs` | 1 | y | |\n";

    #[test]
    fn rows_and_their_differences() {
        let list = listed(TABLE).unwrap();
        let row = |number, tests: &[&str]| Row {
            number,
            tests: tests.iter().map(|test| (*test).to_owned()).collect(),
        };
        assert_eq!(
            list,
            Rows::from([
                ("x/a.rs".into(), row(2, &["t::one", "src/a::two"])),
                ("x/b.rs".into(), row(1, &[]))
            ])
        );
        let real = Counts::from([("x/a.rs".into(), 3), ("c.rs".into(), 1)]);
        assert_eq!(
            differences(&list, &real),
            [
                "c.rs: says `unsafe` 1 times, UNSAFE.md: no row",
                "x/a.rs: says `unsafe` 3 times, UNSAFE.md: 2",
                "x/b.rs: in UNSAFE.md, and without `unsafe`",
            ]
        );
        for bad in ["| `a` | 1 |", "| `a` | x | y | t::a |", "| `a` | 1 | | t::a |"] {
            assert!(listed(bad).is_err(), "{bad}");
        }
        assert!(listed(&TABLE.replace("b.rs", "a.rs")).is_err());
    }

    #[test]
    fn named_tests_have_to_be_there() {
        let root = std::env::temp_dir().join(format!("hoist-unsafe-{}", std::process::id()));
        fs::create_dir_all(root.join("x/tests")).unwrap();
        fs::create_dir_all(root.join("x/src")).unwrap();
        fs::write(root.join("x/tests/t.rs"), "#[test]\nfn other() {}\nfn one() {}\n").unwrap();
        fs::write(
            root.join("x/src/a.rs"),
            r#"mod tests { #[test] #[ignore = "long"] fn two() {} }"#,
        )
        .unwrap();
        let faults = |table: &str| missing_tests(&listed(table).unwrap(), &root).unwrap();
        let found = faults(TABLE);
        let none = faults("| `x/a.rs` | 2 | x | `u::one` `two` `x/tests/t::other` |");
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, ["x/a.rs: there is no test t::one", "x/b.rs: no test shows it"]);
        assert_eq!(none, ["x/a.rs: u::one: there is no u.rs", "x/a.rs: two is no name of a test"]);
    }

    #[test]
    fn what_is_asked_for_has_an_example() {
        let mut source = Source::default();
        let text = "/// ```compile_fail,E0133\n/// a.first();\n/// ```\n/// second\nmod example {}\n\
                    pub unsafe fn first() {} pub const unsafe fn second(f: unsafe fn()) {}\n\
                    pub(crate) unsafe fn inner() {} pub fn safe() { unsafe { inner() } }\n\
                    pub unsafe trait Third {} unsafe impl Third for u8 { unsafe fn no() {} }";
        source.read(tokens(text).unwrap());
        assert_eq!(source.tests, BTreeSet::from(["example".to_owned()]));
        assert_eq!(
            source.without_example("x"),
            ["Third", "second"].map(|name| format!(
                "x: {name} is public and unsafe: no example must not compile without"
            ))
        );
    }
}
