//! What is printed for programs: every key is in JSON.md.

#![allow(clippy::expect_used, clippy::panic, missing_docs, reason = "a test")]

mod fixtures;

use std::collections::{BTreeSet, HashMap};

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
