//! `hoist fatbin slim IMAGE -o OUT`: images of containers in every form that `docker save`, `podman save` and OCI layouts have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

use super::{archs, hoist, libraries, printed, refused};

pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn add(builder: &mut Builder<Vec<u8>>, name: &str, kind: EntryType, link: &str, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_mode(0o751);
    header.set_mtime(987_654_321);
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    if link.is_empty() {
        builder.append_data(&mut header, name, content).expect("a member");
    } else {
        builder.append_link(&mut header, name, link).expect("a member");
    }
}

/// A tar file of these.
pub(super) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, content) in files {
        add(&mut builder, name, EntryType::Regular, "", content);
    }
    builder.into_inner().expect("a tar file")
}

const INFO: &str = "usr/lib/python3/site-packages/thing-1.0.dist-info/RECORD";

/// What conda has of a package.
const CONDA: &str = "usr/conda-meta/thing-1.0-0.json";

/// What it says: of a file, of another name of it, of a link what is behind it, and of another link what that is.
fn conda(file: (&str, usize), behind: &[u8]) -> String {
    let (behind, size) = (digest(behind), behind.len());
    let file = format!(r#""sha256": "{}",  "size_in_bytes": {}"#, file.0, file.1);
    format!(
        r#"{{ "paths_data": {{"paths": [{{"_path": "lib/other.so", {file}}}, {{"_path": "lib/link.so", {file}}},
    {{"_path": "lib/name.so", "sha256": "{behind}", "size_in_bytes": {size}}}, {{"_path": "lib/far.so", "sha256": "BBBB"}}]}}}}"#
    )
}

/// Two layers: a package of Python with a library, under a long name and with links; and one with nothing of interest.
fn layers(library: &[u8]) -> [Vec<u8>; 2] {
    let deep = format!("usr/lib/python3/site-packages/thing/{}/lib.so", "long".repeat(30));
    let record = format!(
        "thing/{}/lib.so,sha256=AAAA,1\nthing/a.py,sha256=BBBB,2\nthing-1.0.dist-info/RECORD,,\n",
        "long".repeat(30)
    );
    let mut first = Builder::new(Vec::new());
    let attributes = [("SCHILY.xattr.user.kept", &b"as it is"[..])];
    first.append_pax_extensions(attributes).expect("attributes");
    add(&mut first, "usr/", EntryType::Directory, "", b"");
    add(&mut first, &deep, EntryType::Regular, "", library);
    add(&mut first, "usr/lib/link.so", EntryType::Link, "usr/lib/other.so", b"");
    first.append_pax_extensions(attributes).expect("attributes");
    add(&mut first, "usr/lib/other.so", EntryType::Regular, "", library);
    add(&mut first, "usr/lib/name.so", EntryType::Symlink, "other.so", b"");
    add(&mut first, "usr/lib/far.so", EntryType::Symlink, "/usr/lib/name.so", b"");
    add(&mut first, "usr/lib/.wh.gone", EntryType::Regular, "", b"");
    add(&mut first, INFO, EntryType::Regular, "", record.as_bytes());
    add(&mut first, CONDA, EntryType::Regular, "", conda(("AAAA", 1), library).as_bytes());
    let second = tar(&[("etc/.wh..wh..opq", b""), ("etc/text", b"text\n"), ("etc/empty", b"")]);
    [first.into_inner().expect("a tar file"), second]
}

pub(super) fn packed(form: &str, layer: &[u8]) -> Vec<u8> {
    match form {
        "gzip" => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(layer).expect("memory");
            encoder.finish().expect("memory")
        }
        "zstd" => zstd::encode_all(layer, 3).expect("memory"),
        _ => layer.to_vec(),
    }
}

pub(super) fn unpacked(layer: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match layer {
        [0x1f, 0x8b, ..] => {
            flate2::read::GzDecoder::new(layer).read_to_end(&mut bytes).expect("gzip");
        }
        [0x28, 0xb5, ..] => bytes = zstd::decode_all(layer).expect("Zstandard"),
        _ => layer.to_vec().clone_into(&mut bytes),
    }
    bytes
}

fn config(layers: &[Vec<u8>]) -> Vec<u8> {
    let ids: Vec<_> = layers.iter().map(|layer| format!("sha256:{}", digest(layer))).collect();
    let text = json!({"architecture": "amd64", "config": {"Cmd": ["\u{1f600}<a>"]}, "rootfs": {"type": "layers", "diff_ids": ids}});
    format!(" {text}\n").into_bytes()
}

/// An image as OCI lays it out, with an index in the index, an attestation, and a manifest that is not there; `docker` adds what
/// `docker save` does.
pub(super) fn oci(form: &str, docker: bool, library: &[u8]) -> Vec<u8> {
    let (form, is_stargz) = if form == "stargz" { ("gzip", true) } else { (form, false) };
    let layers = layers(library);
    let config = config(&layers);
    let mut blobs = BTreeMap::new();
    let mut blob = |kind: &str, bytes: Vec<u8>| {
        let descriptor = json!({"mediaType": kind, "digest": format!("sha256:{}", digest(&bytes)), "size": bytes.len()});
        blobs.insert(format!("blobs/sha256/{}", digest(&bytes)), bytes);
        descriptor
    };
    let suffix = if form.is_empty() { String::new() } else { format!("+{form}") };
    let kind = format!("application/vnd.oci.image.layer.v1.tar{suffix}");
    let mut layer = |layer: &Vec<u8>| {
        let mut descriptor = blob(&kind, packed(form, layer));
        if is_stargz {
            descriptor["annotations"] =
                json!({"containerd.io/snapshot/stargz/toc.digest": "sha256:1"});
        }
        descriptor
    };
    let all: Vec<_> = layers.iter().map(&mut layer).collect();
    let config_descriptor = blob("application/vnd.oci.image.config.v1+json", config.clone());
    let manifest = json!({"schemaVersion": 2, "config": config_descriptor, "layers": all});
    let manifest =
        blob("application/vnd.oci.image.manifest.v1+json", format!("{manifest:#}").into_bytes());
    let statement = json!({"subject": [{"digest": {"sha256": manifest["digest"]}}]});
    let statement = blob("application/vnd.in-toto+json", statement.to_string().into_bytes());
    let about = json!({"schemaVersion": 2, "config": config_descriptor, "layers": [statement]});
    let mut about =
        blob("application/vnd.oci.image.manifest.v1+json", about.to_string().into_bytes());
    about["annotations"] = json!({"vnd.docker.reference.digest": manifest["digest"]});
    let mut absent = manifest.clone();
    absent["digest"] = format!("sha256:{}", "0".repeat(64)).into();
    let index = json!({"manifests": [manifest, about, absent]});
    let index = blob("application/vnd.oci.image.index.v1+json", format!("{index:#}").into_bytes());
    let top = json!({"schemaVersion": 2, "manifests": [index]}).to_string();
    let path = |bytes: &[u8]| format!("blobs/sha256/{}", digest(bytes));
    let names: Vec<_> = layers.iter().map(|layer| path(&packed(form, layer))).collect();
    let sources: BTreeMap<_, _> = layers
        .iter()
        .zip(&all)
        .map(|(layer, all)| (format!("sha256:{}", digest(layer)), all))
        .collect();
    let manifest = json!([{"Config": path(&config), "RepoTags": ["a:b"], "Layers": names, "LayerSources": sources}]).to_string();
    let mut files: Vec<(&str, &[u8])> =
        vec![("oci-layout", b"{\"imageLayoutVersion\":\"1.0.0\"}"), ("index.json", top.as_bytes())];
    if docker {
        files.push(("manifest.json", manifest.as_bytes()));
    }
    files.extend(blobs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
    tar(&files)
}

/// An image as `docker save` wrote them before.
fn legacy(library: &[u8]) -> Vec<u8> {
    let layers = layers(library);
    let config = config(&layers);
    let name = format!("{}.json", digest(&config));
    let ids = ["1", "2", "3"].map(|digit| digit.repeat(64));
    let names = ids.clone().map(|id| format!("{id}/layer.tar"));
    let manifest = json!([{"Config": name, "RepoTags": null, "Layers": names}]).to_string();
    let repositories = json!({"a": {"b": ids[1]}}).to_string();
    let mut builder = Builder::new(Vec::new());
    add(&mut builder, &name, EntryType::Regular, "", &config);
    add(&mut builder, &names[0], EntryType::Regular, "", &layers[0]);
    add(&mut builder, &names[1], EntryType::Regular, "", &layers[1]);
    add(&mut builder, &names[2], EntryType::Symlink, &format!("../{}", names[0]), b"");
    add(&mut builder, "manifest.json", EntryType::Regular, "", manifest.as_bytes());
    add(&mut builder, "repositories", EntryType::Regular, "", repositories.as_bytes());
    builder.into_inner().expect("a tar file")
}

/// The members of a tar file in order: what is in their headers but size and checksum, and their contents.
fn members(bytes: &[u8]) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let mut archive = tar::Archive::new(bytes);
    let entries = archive.entries().expect("a tar file").map(|entry| {
        let mut entry = entry.expect("a member");
        let name = String::from_utf8(entry.path_bytes().into_owned()).expect("text");
        let mut header = entry.header().as_bytes().to_vec();
        header[124..136].fill(0);
        header[148..156].fill(0);
        for record in entry.pax_extensions().expect("records").into_iter().flatten() {
            header.extend(record.expect("a record").value_bytes());
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).expect("contents");
        (name, header, content)
    });
    entries.collect()
}

/// All text with digests and numbers left out.
fn shape(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).into_owned();
    let mut words = Vec::new();
    for word in text.split('"') {
        let word = word.trim_end_matches(".json");
        let is_digest = word.len() >= 64
            && word[word.len() - 64..].bytes().all(|byte| byte.is_ascii_hexdigit());
        words.push(if is_digest {
            "DIGEST".into()
        } else {
            word.replace(|byte: char| byte.is_ascii_digit(), "")
        });
    }
    words.join("\"")
}

/// Looks whether everything in an image is called by the digest and size that it has; its layers.
pub(super) fn verified(image: &[u8]) -> BTreeSet<Vec<u8>> {
    let files: BTreeMap<_, _> =
        members(image).into_iter().map(|(name, _, content)| (name, content)).collect();
    for (name, content) in &files {
        let own = name.trim_start_matches("blobs/sha256/").trim_end_matches(".json");
        assert!(own.len() != 64 || own == digest(content), "{name}");
    }
    let mut layers = BTreeSet::new();
    let mut ids = |config: &Value, layers_of: Vec<&Vec<u8>>| {
        let ids = config["rootfs"]["diff_ids"].as_array().expect("identities").clone();
        for (id, layer) in ids.iter().zip(layers_of) {
            let layer = unpacked(layer);
            assert_eq!(id.as_str(), Some(&*format!("sha256:{}", digest(&layer))));
            layers.insert(layer);
        }
    };
    let parse = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).expect("JSON") };
    let blob = |descriptor: &Value| {
        let name = descriptor["digest"].as_str().expect("a digest").replacen(':', "/", 1);
        let found = files.get(&format!("blobs/{name}"));
        assert!(found.is_none_or(|found| descriptor["size"] == found.len()), "{descriptor}");
        found
    };
    if let Some(index) = files.get("index.json") {
        let mut stack = vec![parse(index)];
        while let Some(value) = stack.pop() {
            for manifest in value["manifests"].as_array().into_iter().flatten() {
                stack.extend(blob(manifest).map(|bytes| parse(bytes)));
            }
            if let Some(all) = value["layers"].as_array() {
                let all: Vec<_> = all.iter().map(|layer| blob(layer).expect("a layer")).collect();
                if unpacked(all[0]).len() > 1024 {
                    ids(&parse(blob(&value["config"]).expect("a configuration")), all);
                }
            }
        }
    }
    if let Some(manifest) = files.get("manifest.json") {
        let image = &parse(manifest)[0];
        let file = |name: &Value| &files[name.as_str().expect("a name")];
        let all = image["Layers"].as_array().expect("layers").iter().map(file);
        ids(&parse(file(&image["Config"])), all.filter(|layer| !layer.is_empty()).collect());
        for (id, source) in image["LayerSources"].as_object().into_iter().flatten() {
            assert_eq!(
                *id,
                format!("sha256:{}", digest(&unpacked(blob(source).expect("a layer"))))
            );
        }
    }
    layers
}

#[test]
fn images_become_smaller_and_stay_images() {
    let Some(folder) = libraries("images_become_smaller_and_stay_images") else { return };
    let at = folder.path();
    let library = fs::read(at.join("lib.so")).expect("a file");
    for (what, image) in [
        ("plain", oci("", false, &library)),
        ("gzip", oci("gzip", false, &library)),
        ("zstd", oci("zstd", false, &library)),
        ("docker", oci("", true, &library)),
        ("docker gzip", oci("gzip", true, &library)),
        ("legacy", legacy(&library)),
    ] {
        assert_eq!(verified(&image).len(), 2, "{what}");
        fs::write(at.join("in.tar"), &image).expect("a file");
        let words =
            ["fatbin", "slim", "in.tar", "-o", "out.tar", "--keep", "sm_80,ptx", "--mode", "size"];
        let said = printed(at, &words);
        assert!(said.contains("2 files changed"), "{what}: {said}");
        let new = fs::read(at.join("out.tar")).expect("a file");
        assert!(fs::read(at.join("in.tar")).expect("a file") == image);
        assert!(new.len() < image.len() || what.contains("gzip") || what == "zstd", "{what}");
        assert_eq!(archs(at, "out.tar").len(), 3, "{what}");
        same_but_libraries(what, &image, &new);
        // where it is; and once more: not a byte
        fs::rename(at.join("out.tar"), at.join("in.tar")).expect("a file");
        let words = words.map(|word| if word == "out.tar" { "in.tar" } else { word });
        assert!(printed(at, &words).contains("nothing of the image changes"));
        assert!(fs::read(at.join("in.tar")).expect("a file") == new, "{what}");
    }
}

#[test]
fn an_image_that_was_replaced_comes_back() {
    let Some(folder) = libraries("an_image_that_was_replaced_comes_back") else { return };
    let at = folder.path();
    let library = fs::read(at.join("lib.so")).expect("a file");
    let image = oci("gzip", true, &library);
    fs::write(at.join("in.tar"), &image).expect("a file");
    let old = fs::metadata(at.join("in.tar")).and_then(|old| old.modified()).expect("a time");
    let slim = |output: &str, words: &[&str]| {
        let first = ["fatbin", "slim", "in.tar", "-o", output, "--backup", "kept", "--json"];
        let said = printed(at, &[&first[..], words].concat());
        serde_json::from_str::<Value>(&said).expect("JSON")
    };
    // what is nowhere yet replaces nothing
    let said = slim("out.tar", &["--mode", "speed"]);
    assert_eq!(said["backup"], Value::Null, "{said}");
    assert!(said["notes"].to_string().contains("nothing was replaced"), "{said}");
    assert!(printed(at, &["fatbin", "slim", "--undo", "kept"]).ends_with("0 files changed\n"));
    // changed once, and once more
    let said = slim("in.tar", &["--mode", "speed"]);
    assert!(said["notes"].to_string().contains("--undo kept brings it back"), "{said}");
    let kept = said["backup"].as_str().expect("a name");
    assert!(fs::read(kept).expect("a file") == image);
    let once = fs::read(at.join("in.tar")).expect("a file");
    slim("in.tar", &["--keep", "sm_80,ptx"]);
    let twice = fs::read(at.join("in.tar")).expect("a file");
    assert!(image != once && once != twice && once == fs::read(at.join("out.tar")).expect("one"));
    let said = printed(at, &["fatbin", "slim", "--undo", "kept"]);
    assert!(said.ends_with("1 files changed\n"), "{said}");
    assert!(fs::read(at.join("in.tar")).expect("a file") == image);
    let new = fs::metadata(at.join("in.tar")).and_then(|new| new.modified()).expect("a time");
    assert_eq!(new, old);
    assert!(printed(at, &["fatbin", "slim", "--undo", "kept"]).ends_with("0 files changed\n"));
}

/// Compares an image, and what became of it.
fn same_but_libraries(what: &str, old: &[u8], new: &[u8]) {
    let (before, after) = (verified(old), verified(new));
    assert_eq!((after.len(), before.intersection(&after).count()), (2, 1), "{what}");
    let [one, other] = [&before, &after]
        .map(|layers| members(layers.iter().max_by_key(|layer| layer.len()).expect("a layer")));
    assert_eq!(one.len(), other.len());
    let mut changed = Vec::new();
    for ((name, header, content), new) in one.iter().zip(&other) {
        assert!(*name == new.0 && *header == new.1, "{what}: {name}");
        if *content != new.2 {
            changed.push((name.as_str(), &new.2));
        }
    }
    assert_eq!(changed.len(), 4, "{what}");
    let (_, list) = changed.iter().find(|(name, _)| *name == CONDA).expect("a list");
    let (_, other) = changed.iter().find(|(name, _)| *name == "usr/lib/other.so").expect("one");
    let expected = conda((&digest(other), other.len()), other);
    assert_eq!(String::from_utf8_lossy(list), expected, "{what}");
    let (_, record) = changed.iter().find(|(name, _)| *name == INFO).expect("a list");
    let (_, library) = changed[0];
    let record = String::from_utf8_lossy(record);
    assert!(
        record.contains(&format!(",{}\nthing/a.py,sha256=BBBB,2\n", library.len()))
            && !record.contains("AAAA"),
        "{record}"
    );
    let [one, other] = [old, new].map(members);
    assert_eq!(one.len(), other.len());
    for ((name, _, content), (new_name, _, new)) in one.iter().zip(&other) {
        assert_eq!(
            shape(format!("\"{name}\"").as_bytes()),
            shape(format!("\"{new_name}\"").as_bytes())
        );
        match content.first() {
            Some(b'{' | b'[' | b' ') => assert_eq!(shape(content), shape(new), "{what}: {name}"),
            _ => assert_eq!(
                content != new,
                name != new_name || content.len() != new.len(),
                "{what}: {name}"
            ),
        }
    }
    let attestation = |bytes: &[u8]| {
        members(bytes).into_iter().find(|(.., content)| content.starts_with(b"{\"subject\""))
    };
    assert_eq!(attestation(old), attestation(new), "{what}");
}

#[test]
fn bad_images_are_refused() {
    let Some(folder) = libraries("bad_images_are_refused") else { return };
    let at = folder.path();
    let library = fs::read(at.join("lib.so")).expect("a file");
    let slim = ["fatbin", "slim", "in.tar", "-o", "out.tar", "--keep", "sm_80,ptx"];
    let says = |image: &[u8], word: &str| {
        fs::write(at.join("in.tar"), image).expect("a file");
        let said = refused(at, &slim);
        assert!(said.contains("in.tar: ") && said.contains(word), "{said}");
        assert!(!at.join("out.tar").exists());
    };
    let image = oci("gzip", false, &library);
    says(&packed("gzip", &image), "is compressed as a whole");
    says(b"BZh91AY&SY\xff\xfe\xfd", "is compressed as a whole");
    says(&tar(&[("a", b"b")]), "no manifest names layers");
    says(&library, "is no image: a tar file is expected\n");
    says(
        &oci("stargz", false, &library),
        "says where files are in it (containerd.io/snapshot/stargz",
    );
    // an image without -o
    fs::write(at.join("in.tar"), &image).expect("a file");
    let said =
        refused(at, &["fatbin", "slim", "in.tar", "--backup", "kept", "--keep", "sm_80,ptx"]);
    assert!(said.contains("in.tar: is a tar file: -o"), "{said}");
    // every cut, and bytes that are others: an error, or an image that is right; never part of one
    for end in (0..image.len()).step_by(image.len() / 30) {
        fs::write(at.join("in.tar"), &image[..end]).expect("a file");
        let output = hoist(at, &slim);
        assert_eq!(output.status.code(), Some(1), "{end}");
    }
    let mut right = 0;
    for place in (0..image.len()).step_by(image.len() / 60) {
        let mut bytes = image.clone();
        bytes[place] ^= 0x55;
        fs::write(at.join("in.tar"), bytes).expect("a file");
        let output = hoist(at, &slim);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{place}");
        assert_eq!(at.join("out.tar").exists(), output.status.success());
        right += u32::from(output.status.success());
        let _ = fs::remove_file(at.join("out.tar"));
    }
    println!("{right} of 60 damaged images could be changed");
}
