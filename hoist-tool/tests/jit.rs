//! `hoist jit` and `hoist cache`, as they are typed.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::process::{Command, Output};

use exec_core::NoCache;
use exec_host::compile::GccCompiler;
use tempfile::TempDir;

const C: &str = r#"
    #include "factor.h"
    int times(int x) { return FACTOR * x; }
    const char *name(void) { return "jit"; }
    void fill(float *to, unsigned count, float value) { while (count--) *to++ = value; }
"#;

struct Setup(TempDir);

impl Setup {
    fn new(test: &str) -> Option<Self> {
        if GccCompiler::find(&NoCache).is_err() {
            println!("skipped: {test}: needs gcc");
            return None;
        }
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("code.c"), C).unwrap();
        fs::write(folder.path().join("factor.h"), "#define FACTOR 3\n").unwrap();
        Some(Self(folder))
    }

    fn hoist(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        command
            .args(words)
            .env("HOIST_CACHE_DIR", self.0.path().join("cache"))
            .env_remove("HOIST_CACHE");
        command.current_dir(self.0.path().parent().unwrap());
        command.output().unwrap()
    }

    fn jit(&self, words: &[&str]) -> Output {
        let source = self.0.path().join("code.c");
        let head = ["jit", "--compiler", "gcc", source.to_str().unwrap()];
        self.hoist(&[&head, words].concat())
    }
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn calls_what_it_compiled() {
    let Some(setup) = Setup::new("calls_what_it_compiled") else { return };
    assert_eq!(text(&setup.jit(&["times", "i32:14", "--ret", "i32"])), "42\n");
    assert_eq!(text(&setup.jit(&["name", "--ret", "str"])), "jit\n");
    let filled = setup.jit(&["fill", "zeros:f32:3", "u32:2", "f32:1.5", "--show-buffers"]);
    assert_eq!(text(&filled), "buf:f32:1.5,1.5,0\n");
    let shown = text(&setup.jit(&["times", "--disasm"]));
    assert!(shown.contains("times") && shown.contains("ret"), "{shown}");
    let timed = text(&setup.jit(&["times", "i32:1", "--ret", "i32", "--time", "--repeat", "5"]));
    assert!(timed.contains("from the cache") && timed.contains("median"), "{timed}");
}

#[test]
fn debuggers_and_profilers_are_told() {
    let Some(setup) = Setup::new("debuggers_and_profilers_are_told") else { return };
    let folder = setup.0.path().to_str().unwrap();
    let options = ["--gdb", "--perf-map", "--dual-mapping", "--huge-pages", "--jitdump", folder];
    let call = ["times", "i32:14", "--ret", "i32"];
    assert_eq!(text(&setup.jit(&[&call[..], &options].concat())), "42\n");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let dump = names.map(|name| name.into_string().unwrap()).find(|name| name.ends_with(".dump"));
    let number = dump.as_deref().and_then(|name| name.strip_prefix("jit-")?.strip_suffix(".dump"));
    let map = format!("/tmp/perf-{}.map", number.unwrap());
    assert!(fs::read_to_string(&map).unwrap().lines().any(|line| line.ends_with(" times")));
    fs::remove_file(map).unwrap();
    let refused = setup.jit(&[&call[..], &["--jitdump", "/nonexistent"]].concat());
    assert!(error(&refused).starts_with("hoist: /nonexistent: "), "{}", error(&refused));
}

#[test]
fn a_changed_header_is_compiled_anew() {
    let Some(setup) = Setup::new("a_changed_header_is_compiled_anew") else { return };
    let words = ["times", "i32:10", "--ret", "i32"];
    assert_eq!(text(&setup.jit(&words)), "30\n");
    fs::write(setup.0.path().join("factor.h"), "#define FACTOR 4\n").unwrap();
    assert_eq!(text(&setup.jit(&words)), "40\n");
}

#[test]
fn the_cache_is_used_as_it_is_told() {
    let Some(setup) = Setup::new("the_cache_is_used_as_it_is_told") else { return };
    let with = |r#use| setup.jit(&["times", "i32:1", "--ret", "i32", "--time", "--cache", r#use]);
    assert!(error(&with("required")).contains("the cache has no image"));
    assert!(text(&with("off")).contains("compiled"));
    assert!(text(&setup.hoist(&["cache", "stats"])).contains("0 images"));
    assert!(text(&with("on")).contains("compiled"));
    for r#use in ["on", "read-only", "required"] {
        assert!(text(&with(r#use)).contains("from the cache"));
    }
    assert!(text(&setup.hoist(&["cache", "stats"])).contains("2 images"));
    assert_eq!(text(&setup.hoist(&["cache", "verify"])), "2 images are good\n");
    assert!(text(&setup.hoist(&["cache", "clear"])).starts_with("2 images, "));
    assert!(error(&with("required")).contains("the cache has no image"));
}

#[test]
fn damage_is_told_and_mended() {
    let Some(setup) = Setup::new("damage_is_told_and_mended") else { return };
    let words = ["times", "i32:2", "--ret", "i32"];
    text(&setup.jit(&words));
    let path = setup.0.path().join("cache").join("images-1.db");
    let mut bytes = fs::read(&path).unwrap();
    let code = bytes.windows(4).rposition(|window| window == b"\x7fELF").unwrap();
    for byte in bytes.iter_mut().skip(code + 200).take(4) {
        *byte ^= 0xff;
    }
    fs::write(&path, &bytes).unwrap();
    let output = setup.jit(&words);
    assert_eq!(text(&output), "6\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("damaged"));
    let output = setup.jit(&words);
    assert_eq!((text(&output), output.stderr.len()), ("6\n".to_owned(), 0));
}

#[test]
fn what_is_wrong_is_said() {
    let Some(setup) = Setup::new("what_is_wrong_is_said") else { return };
    assert!(error(&setup.jit(&["missing"])).contains("no object defines missing"));
    assert!(error(&setup.jit(&["tiems"])).contains("no object defines tiems: there is times"));
    assert!(error(&setup.jit(&["times", "i32:x"])).contains("is no i32"));
    for (words, message) in [
        (&["times", "3"], "hoist: 3 is no function: arguments have a type, as i32:3"),
        (&["times", "0.5"], "hoist: 0.5 is no function: arguments have a type, as f64:0.5"),
        (&["times", "i23:3"], "hoist: argument \"i23:3\": unknown type \"i23\": one of"),
    ] {
        let said = error(&setup.jit(words));
        assert!(said.starts_with(message), "{said}");
    }
    fs::write(setup.0.path().join("code.c"), "int f(void) { return nothing; }").unwrap();
    let message = error(&setup.jit(&["f"]));
    assert!(
        message.contains("code.c:1:22: error: ") && message.contains("code.c: gcc rejects it"),
        "{message}"
    );
}
