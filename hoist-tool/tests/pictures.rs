//! `hoist show --svg`, `hoist layout --svg`, `hoist cubin show --svg` and `hoist fatbin report`: well formed, to scale, and with all
//! that the numbers have.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use roxmltree::Document;
use serde_json::Value;

fn hoist(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hoist")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn fixtures(folder: &str, end: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(folder);
    let mut found: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.is_file() && path.to_str().unwrap().ends_with(end))
        .collect();
    found.sort();
    found
}

/// Blocks of a picture: name, size and start as their titles say, and the width of their rectangles.
fn blocks(picture: &str) -> Vec<(String, u64, u64, f64)> {
    let document = Document::parse(picture).unwrap_or_else(|error| panic!("{error}: {picture}"));
    assert_eq!(document.root_element().tag_name().name(), "svg");
    let groups = document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "g")));
    let block = |group: roxmltree::Node<'_, '_>| {
        let title = group.children().find(|node| node.tag_name().name() == "title")?.text()?;
        let rectangle = group.children().find(|node| node.tag_name().name() == "rect")?;
        let (name, numbers) = title.rsplit_once(": ")?;
        let (size, start) = numbers.split_once(" bytes at ")?;
        let start = start.split(',').next()?;
        let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let width = rectangle.attribute("width")?.parse().ok()?;
        Some((name.to_owned(), hex(size)?, hex(start)?, width))
    };
    groups.filter_map(block).collect()
}

#[test]
fn files_are_to_scale() {
    let mut files = fixtures("x86_64", ".o");
    files.extend(fixtures("riscv32", ".o"));
    files.extend(fixtures("loongarch64", ""));
    files.push(env!("CARGO_BIN_EXE_hoist").into());
    let (mut pictures, mut wide) = (0, 0);
    for path in files {
        let bytes = fs::read(&path).unwrap();
        if !bytes.starts_with(b"\x7fELF") {
            continue;
        }
        let path = path.to_str().unwrap();
        let found = blocks(&hoist(&["show", "--svg", path]));
        let shown: Value =
            serde_json::from_str(&hoist(&["show", "--json", "--sections", path])).unwrap();
        pictures += 1;
        let sections = shown["files"][0]["sections"].as_array().unwrap();
        for section in sections {
            let (size, offset) =
                (section["size"].as_u64().unwrap(), section["offset"].as_u64().unwrap());
            let expected = size as f64 / bytes.len() as f64 * 980.0;
            if section["type_name"] == "SHT_NOBITS" || expected < 1.0 {
                continue;
            }
            let block = found.iter().find(|block| (block.1, block.2) == (size, offset));
            let (name, .., width) = block.unwrap_or_else(|| panic!("{path}: no {section}"));
            assert_eq!(Some(name.as_str()), section["name"].as_str(), "{path}");
            assert!((width - expected).abs() < 0.02, "{path}: {name}: {width}, not {expected}");
            wide += 1;
        }
    }
    println!("{pictures} pictures, {wide} sections");
    assert!(pictures >= 100 && wide >= 1000, "{pictures} {wide}");
}

#[test]
fn images_have_every_part() {
    let mut parts = 0;
    for path in fixtures("aarch64", ".o").iter().chain(&fixtures("x86_64", ".o")) {
        let path = path.to_str().unwrap();
        let layout = Command::new(env!("CARGO_BIN_EXE_hoist"))
            .args(["layout", "--json", path])
            .output()
            .unwrap();
        if !layout.status.success() {
            continue;
        }
        let layout: Value = serde_json::from_slice(&layout.stdout).unwrap();
        let found = blocks(&hoist(&["layout", "--svg", path]));
        for segment in layout["segments"].as_array().unwrap() {
            for part in segment["parts"].as_array().unwrap() {
                let (size, offset) =
                    (part["size"].as_u64().unwrap(), part["offset"].as_u64().unwrap());
                let is_wide = size as f64 * 980.0 >= segment["size"].as_f64().unwrap();
                if !is_wide || part["takes_no_room"] == true {
                    continue;
                }
                assert!(
                    found.iter().any(|block| (block.1, block.2) == (size, offset)),
                    "{path}: {part}"
                );
                parts += 1;
            }
        }
    }
    println!("{parts} parts");
    assert!(parts >= 500, "{parts}");
}

/// Titles of the points of a picture of kernels, by kernel: threads, warps, of so many, limiter.
fn curves(picture: &str) -> Vec<Vec<(u64, u64, u64, String)>> {
    let document = Document::parse(picture).unwrap_or_else(|error| panic!("{error}: {picture}"));
    let titles = document.descendants().filter(|node| node.has_tag_name("title"));
    let point = |title: roxmltree::Node<'_, '_>| {
        let (threads, rest) = title.text()?.split_once(" threads: ")?;
        let (warps, rest) = rest.split_once(" of ")?;
        let (of, limiter) = rest.split_once(" warps, limited by ")?;
        let number = |text: &str| text.parse().ok();
        Some((number(threads)?, number(warps)?, number(of)?, limiter.to_owned()))
    };
    let points: Vec<_> = titles.filter_map(point).collect();
    points.chunk_by(|one, next| one.0 < next.0).map(<[_]>::to_vec).collect()
}

#[test]
fn kernels_have_their_curve() {
    let (mut kernels, mut compared) = (0, 0);
    for path in fixtures("cuda", ".cubin") {
        let path = path.to_str().unwrap();
        let picture = hoist(&["cubin", "show", "--svg", path]);
        let found = curves(&picture);
        let marks = picture.matches("class=\"said\"").count();
        for threads in [32, 256, 480, 1024] {
            let number = threads.to_string();
            let shown = hoist(&["cubin", "show", "--json", "--threads", &number, path]);
            let shown: Value = serde_json::from_str(&shown).unwrap();
            let shown = shown["files"][0]["kernels"].as_array().unwrap();
            let limited = shown.iter().filter(|kernel| !kernel["occupancy"].is_null());
            let expected: Vec<_> = limited.map(|kernel| &kernel["occupancy"]).collect();
            assert_eq!((found.len(), marks), (expected.len(), expected.len()), "{path}");
            for (curve, expected) in found.iter().zip(expected) {
                assert_eq!(curve.len(), 32, "{path}");
                let point = curve.iter().find(|point| point.0 == threads).unwrap();
                let limiter = expected["limiter"].as_str().unwrap().to_owned();
                let [warps, of] = ["warps", "of_warps"].map(|key| expected[key].as_u64().unwrap());
                assert_eq!(*point, (threads, warps, of, limiter), "{path}");
                compared += 1;
            }
        }
        kernels += found.len();
    }
    println!("{kernels} kernels, {compared} points");
    assert!(kernels >= 50 && compared == kernels * 4, "{kernels} {compared}");
}

#[test]
fn kernels_are_drawn_as_they_are_asked_for() {
    let cuda = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    let cubin = cuda.join("kernels-13.5-sm_80.cubin");
    let cubin = cubin.to_str().unwrap();
    let shown: Value =
        serde_json::from_str(&hoist(&["cubin", "show", "--json", "--sort", "size", cubin]))
            .unwrap();
    let kernel = &shown["files"][0]["kernels"][0];
    let picture = hoist(&["cubin", "show", "--svg", "--sort", "size", "--limit", "1", cubin]);
    let text: Vec<String> = {
        let document = Document::parse(&picture).unwrap();
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        texts.filter_map(|node| Some(node.text()?.trim().to_owned())).collect()
    };
    let name = kernel["demangled"].as_str().or(kernel["name"].as_str()).unwrap();
    let percent = kernel["occupancy"]["warps"].as_u64().unwrap() * 100
        / kernel["occupancy"]["of_warps"].as_u64().unwrap();
    for expected in [
        name.to_owned(),
        format!("{} of 256 of a thread", kernel["registers"]),
        format!("{} of 166912 bytes", kernel["shared"]),
        format!("{} bytes", kernel["code_size"]),
        format!(
            "{} threads: {percent}%, {} blocks",
            kernel["occupancy"]["threads"], kernel["occupancy"]["blocks"]
        ),
    ] {
        assert!(text.contains(&expected), "{expected}: {text:?}");
    }
    assert_eq!(curves(&picture).len(), 1);
    let refused = Command::new(env!("CARGO_BIN_EXE_hoist"))
        .args(["cubin", "show", "--svg", "--kernel", "no such kernel", cubin])
        .output()
        .unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty());
}

/// What a page shows: lines of JSON.
fn data(page: &str) -> &str {
    let start = page.split_once("id=\"data\">").unwrap().1;
    start.split_once("</script>").unwrap().0
}

/// Lines as the object that they are parts of: elements of lists one by one, all else whole.
fn object(lines: &str, lists: &Value) -> Value {
    let mut all = serde_json::Map::new();
    for line in lines.lines() {
        let Value::Object(part) = serde_json::from_str(line).unwrap() else { unreachable!() };
        for (key, value) in part {
            match lists[&key].is_array() {
                true => {
                    let list = all.entry(key).or_insert_with(|| Value::Array(Vec::new()));
                    list.as_array_mut().unwrap().push(value);
                }
                false => assert!(all.insert(key, value).is_none()),
            }
        }
    }
    Value::Object(all)
}

#[test]
fn reports_have_every_kernel() {
    let scratch = tempfile::tempdir().unwrap();
    let page = scratch.path().join("report.html");
    let (page, folder) =
        (page.to_str().unwrap(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda"));
    let folder = folder.to_str().unwrap();
    assert_eq!(hoist(&["fatbin", "report", folder, "-o", page, "--title", "<b>fixtures"]), "");
    let text = fs::read_to_string(page).unwrap();
    assert!(text.contains("<title>&lt;b>fixtures</title>"));
    let print = |form: &str| {
        hoist(&["fatbin", "report", folder, "-o", "-", form, "--title", "<b>fixtures"])
    };
    let printed: Value = serde_json::from_str(&print("--json")).unwrap();
    let shown = object(data(&text), &printed);
    assert_eq!(shown, object(&print("--json-lines"), &printed));
    for (key, value) in printed.as_object().unwrap() {
        // an empty list, and what there is not, have no line
        let is_there = !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
        assert!(!is_there || shown[key] == *value, "{key}");
    }

    let found: Value =
        serde_json::from_str(&hoist(&["fatbin", "find", "*", folder, "--kind", "elf", "--json"]))
            .unwrap();
    let found = found["kernels"].as_array().unwrap();
    let kernels = shown["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), found.len());
    assert!(kernels.len() >= 50, "{}", kernels.len());
    let mut rows: Vec<String> = Vec::new();
    for kernel in kernels {
        let named =
            |list: &str, key: &str| shown[list][kernel[key].as_u64().unwrap() as usize].clone();
        let texts = [named("files", "file"), named("archs", "arch"), named("names", "name")];
        let needs =
            ["registers", "shared", "stack", "local", "code"].map(|key| kernel[key].clone());
        rows.push(format!("{texts:?} {needs:?}"));
        let curve = &shown["curves"][kernel["curve"].as_u64().expect("limits are known") as usize];
        assert_eq!(curve["warps"].as_array().unwrap().len(), 32);
    }
    let mut expected: Vec<String> = Vec::new();
    for row in found {
        let name = if row["demangled"].is_null() { &row["name"] } else { &row["demangled"] };
        let texts = [row["file"].clone(), row["arch"].clone(), name.clone()];
        let needs =
            ["registers", "shared", "stack", "local", "code_size"].map(|key| row[key].clone());
        expected.push(format!("{texts:?} {needs:?}"));
    }
    rows.sort();
    expected.sort();
    assert_eq!(rows, expected);
    let sums: Value = serde_json::from_str(&hoist(&["fatbin", "size", folder, "--json"])).unwrap();
    let stored: u64 = shown["images"]
        .as_array()
        .unwrap()
        .iter()
        .map(|image| image["stored"].as_u64().unwrap())
        .sum();
    assert_eq!(sums["all"]["stored"], stored);
}

#[test]
fn marks_of_direction_are_escaped_in_reports() {
    let cubin = fixtures("cuda", "kernels-13.5-sm_80.cubin").remove(0);
    let title = "one \u{202e} two";
    let words =
        ["fatbin", "report", cubin.to_str().unwrap(), "-o", "-", "--json", "--title", title];
    let printed = hoist(&words);
    assert!(!printed.contains('\u{202e}'));
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["title"], title);
}

#[test]
fn reports_show_what_changed() {
    let scratch = tempfile::tempdir().unwrap();
    let cuda = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    let [old, new] = ["old", "new"].map(|side| scratch.path().join(side));
    for (side, file) in [(&old, "kernels-13.5-sm_80.cubin"), (&new, "shapes-13.5-sm_80.cubin")] {
        fs::create_dir(side).unwrap();
        fs::copy(cuda.join(file), side.join("kernels.cubin")).unwrap();
    }
    let [old, new] = [&old, &new].map(|side| side.to_str().unwrap());
    let printed = hoist(&["fatbin", "report", new, "--old", old, "-o", "-", "--json"]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let difference: Value =
        serde_json::from_str(&hoist(&["fatbin", "diff", old, new, "--json"])).unwrap();
    for (list, least) in [("added", 1), ("gone", 1), ("changed", 0)] {
        let [ours, theirs] = [&printed["changes"][list], &difference[list]]
            .map(|list| list.as_array().unwrap().len());
        assert_eq!(ours, theirs, "{list}");
        assert!(ours >= least, "{list}");
    }
    assert_eq!(printed["changes"]["same"], difference["same"]);
}
