//! What is printed for programs: every key is in JSON.md.

#![allow(clippy::expect_used, clippy::panic, missing_docs, reason = "a test")]

mod fixtures;

use std::collections::{BTreeSet, HashMap};
use std::process::Command;

use elf_layout::Options;
use hoist_tool::cmd::show::Selection;
use hoist_tool::cmd::{layout, link, show};
use hoist_tool::input::Input;
use hoist_tool::objects::Objects;
use serde_json::Value;

fn collect(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, keys)),
        Value::Object(entries) => {
            for (key, value) in entries {
                keys.insert(key.clone());
                collect(value, keys);
            }
        }
        _ => {}
    }
}

fn hoist(words: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_hoist")).args(words).output().expect("hoist runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn lines_have_all_that_objects_have() {
    let fixture = |name: &str| format!("{}/../fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let (object, cuda) = (fixture("x86_64/elftest.o"), fixture("cuda"));
    let cubin = fixture("cuda/kernels-13.5-sm_80.cubin");
    let mut lines = 0;
    for words in [
        &["show", &object, &cubin][..],
        &["layout", &object],
        &["cubin", "show", &cubin],
        &["cubin", "attributes", &cubin],
        &["cubin", "relocs", &cubin],
        &["cubin", "params", &cubin],
        &["fatbin", "list", &cuda],
        &["fatbin", "scan", &cuda],
        &["fatbin", "select", "--sm", "90", &fixture("cuda/gpu-13.0-sm_90.fatbin")],
        &["fatbin", "find", "*", &cuda],
        &["fatbin", "ptx", &fixture("cuda/kernels.ptx")],
        &["fatbin", "size", &cuda],
        &["fatbin", "diff", &cubin, &fixture("cuda/shapes-13.5-sm_80.cubin")],
        &["fatbin", "report", &cuda, "-o", "-"],
    ] {
        let whole: Value =
            serde_json::from_str(&hoist(&[words, &["--json"]].concat())).expect("JSON");
        let mut expected = Vec::new();
        for (key, value) in whole.as_object().expect("an object") {
            match value {
                Value::Array(elements) => expected.extend(elements.iter().map(|one| (key, one))),
                value => expected.push((key, value)),
            }
        }
        let printed = hoist(&[words, &["--json-lines"]].concat());
        let found: Vec<Value> = printed
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect();
        assert_eq!(found.len(), expected.len(), "{words:?}");
        // the order of keys is not that of `Value`
        for (key, one) in expected {
            let line = serde_json::json!({ key: one });
            assert!(found.contains(&line), "{words:?}: no {line}");
        }
        lines += found.len();
    }
    println!("{lines} lines");
    assert!(lines >= 300, "{lines}");
}

#[test]
fn every_key_is_documented() {
    let mut keys = BTreeSet::new();
    for (path, bytes) in fixtures::all() {
        let input = Input::of(path, bytes);
        for part in input.parts().expect("fixtures are whole") {
            let mut json = Vec::new();
            show::show(&part, "file", Selection::default(), true, &mut json)
                .expect("fixtures can be shown");
            collect(&serde_json::from_slice(&json).expect("JSON"), &mut keys);
        }
        let Ok(objects) = Objects::gather(std::slice::from_ref(&input), &["is_odd"]) else {
            continue;
        };
        if let Ok(placement) = layout::layout(&objects, Options::default()) {
            collect(&serde_json::to_value(placement).expect("JSON"), &mut keys);
        }
        if let Ok(image) =
            link::link(&objects, Options::default(), 0x40_0000, &HashMap::new(), None)
        {
            collect(&serde_json::to_value(image.map).expect("JSON"), &mut keys);
        }
    }
    let documented = include_str!("../JSON.md");
    let missing: Vec<_> =
        keys.iter().filter(|key| !documented.contains(&format!("`{key}`"))).collect();
    assert!(keys.len() > 60, "{keys:?}");
    assert!(missing.is_empty(), "not in JSON.md: {missing:?}");
}
