//! Several processes that change the same files at once: each has what the one before it left, nothing is lost, and all of it comes back.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::installed::{RECORD, installed, is_right};
use super::{hoist, image, layout, libraries, printed};

const MODES: [&str; 3] = ["speed", "balance", "size"];
const ROUNDS: usize = 2;

/// Starts `hoist` with these words.
fn start(at: &Path, words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.args(words).current_dir(at).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("hoist runs")
}

/// What each of these says that was refused; nothing of those that were not.
fn ended(children: Vec<Child>) -> Vec<String> {
    let outputs = children.into_iter().map(|child| child.wait_with_output().expect("it ends"));
    let failed = outputs.filter(|output| !output.status.success());
    failed.map(|output| String::from_utf8(output.stderr).expect("text")).collect()
}

/// Undoes what is in these folders of originals, in whatever order that goes: each time at least one change of each file goes. One of what another
/// left is not known where that came back, too.
fn all_undone(at: &Path, folders: &[&str]) {
    for _ in folders {
        for folder in folders.iter().filter(|folder| at.join(folder).exists()) {
            hoist(at, &["fatbin", "slim", "--undo", folder]);
        }
    }
    for folder in folders.iter().filter(|folder| at.join(folder).exists()) {
        fs::remove_dir_all(at.join(folder)).expect("a folder");
    }
}

/// Undoes the changes of an image in these folders of originals, the last one first.
fn image_undone(at: &Path, folders: &[&str]) {
    let index = || fs::read(at.join("image/index.json")).expect("an index");
    let made_it = |folder: &&&str| {
        let now = format!("\"slimmed\":\"{}\"", image::digest(&index()));
        let list = fs::read_to_string(at.join(folder).join("slimmed.jsonl"));
        list.is_ok_and(|list| {
            list.lines().any(|line| line.contains("/index.json") && line.contains(&now))
        })
    };
    while let Some(folder) = folders.iter().find(made_it) {
        printed(at, &["fatbin", "slim", "--undo", folder]);
    }
    for folder in folders {
        let _ = fs::remove_dir_all(at.join(folder));
    }
}

/// All files below a folder, by their names.
fn files(at: &Path) -> BTreeMap<String, Vec<u8>> {
    let all = layout::files(at).into_iter();
    all.map(|(name, (content, ..))| (name, content)).collect()
}

#[test]
fn installed_libraries_that_several_change_come_back() {
    let Some(folder) = installed("installed_libraries_that_several_change_come_back") else {
        return;
    };
    let at = folder.path();
    // one more, with two names
    fs::copy(at.join("lib.so"), at.join("site/more.so")).expect("a copy");
    fs::hard_link(at.join("site/more.so"), at.join("site/name.so")).expect("a link");
    let old = files(&at.join("site"));
    for round in 0..ROUNDS {
        for (what, kept) in [("one folder", ["kept"; 3]), ("three", ["k0", "k1", "k2"])] {
            let children = MODES.iter().zip(kept).map(|(mode, kept)| {
                let site = if *mode == "size" { "site/thing" } else { "site" };
                let words = ["fatbin", "slim", site, "--mode", mode, "--backup", kept];
                start(at, &[&words[..], &["--keep", "sm_80,ptx"]].concat())
            });
            assert_eq!(ended(children.collect()), [""; 0], "{what}, {round}");
            assert!(is_right(at), "{what}, {round}");
            let now = files(&at.join("site"));
            assert!(now.keys().eq(old.keys()), "{what}: {:?}", now.keys());
            assert!(now["more.so"] == now["name.so"] && now["more.so"] != old["more.so"]);
            all_undone(at, &["kept", "k0", "k1", "k2"]);
            assert!(is_right(at) && files(&at.join("site")) == old, "{what}, {round}");
        }
        // one that changes and one that undoes
        let words = ["fatbin", "slim", "site", "--mode", "size", "--backup", "kept"];
        printed(at, &words);
        let undo = ["fatbin", "slim", "--undo", "kept"];
        let said = ended([&words[..], &undo, &words, &undo].map(|words| start(at, words)).into());
        assert_eq!(said, [""; 0], "{round}");
        assert!(is_right(at), "{round}");
        all_undone(at, &["kept"]);
        assert!(files(&at.join("site")) == old && old.contains_key(&RECORD[5..]), "{round}");
    }
}

#[test]
fn an_image_in_a_folder_that_several_change_comes_back() {
    let Some(folder) = libraries("an_image_in_a_folder_that_several_change_comes_back") else {
        return;
    };
    let at = folder.path();
    let library = fs::read(at.join("lib.so")).expect("a library");
    layout::lay_out(at, "image", &image::oci("gzip", true, &library));
    let mut old = layout::files(&at.join("image"));
    let whole = || image::verified(&layout::packed(&layout::files(&at.join("image"))));
    let before = whole();
    for round in 0..ROUNDS {
        for (what, kept) in [("one folder", ["kept"; 3]), ("three", ["k0", "k1", "k2"])] {
            let children = MODES.iter().zip(kept).map(|(mode, kept)| {
                let words = ["fatbin", "slim", "image", "--mode", mode, "--backup", kept];
                start(at, &[&words[..], &["--keep", "sm_80,ptx"]].concat())
            });
            assert_eq!(ended(children.collect()), [""; 0], "{what}, {round}");
            assert!(whole() != before, "{what}, {round}");
            image_undone(at, &["kept", "k0", "k1", "k2"]);
            assert!(layout::files(&at.join("image")) == old, "{what}, {round}");
        }
        // one that changes and one that undoes what another changed
        let words = |kept| ["fatbin", "slim", "image", "--mode", "size", "--backup", kept];
        printed(at, &words("k0"));
        let undo = ["fatbin", "slim", "--undo", "k0"];
        let slim = ["fatbin", "slim", "image", "--keep", "sm_80,ptx", "--backup", "k1"];
        let said = ended([&slim[..], &undo].map(|words| start(at, words)).into());
        assert!(said.iter().all(|line| line.contains("was changed since")), "{said:?}");
        whole();
        // what came first is undone last, and then blobs of its own may have stayed
        image_undone(at, &["k0", "k1"]);
        let now = layout::files(&at.join("image"));
        assert!(old.iter().all(|(name, file)| now.get(name) == Some(file)), "{round}");
        assert!(!said.is_empty() || now == old, "{round}");
        fs::remove_dir_all(at.join("image")).expect("a folder");
        layout::lay_out(at, "image", &image::oci("gzip", true, &library));
        // into one folder: one of them writes it
        let words = ["fatbin", "slim", "image", "--mode", "size", "-o", "new"];
        let said = ended((0..3).map(|_| start(at, &words)).collect());
        assert!(said.len() == 2 && said.iter().all(|line| line.starts_with("hoist: new: ")));
        image::verified(&layout::packed(&layout::files(&at.join("new"))));
        let temporary = fs::read_dir(at).expect("a folder").flatten();
        assert!(
            !temporary.into_iter().any(|entry| entry.file_name().as_encoded_bytes()[0] == b'.')
        );
        fs::remove_dir_all(at.join("new")).expect("a folder");
        old = layout::files(&at.join("image"));
    }
}

/// What two changes make of a library, one after the other in both orders, is what they make of it at once; what each replaced is kept.
#[test]
fn two_changes_of_a_library_at_once_are_both_made() {
    let Some(folder) = libraries("two_changes_of_a_library_at_once_are_both_made") else { return };
    let at = folder.path();
    let old = fs::read(at.join("lib.so")).expect("a library");
    let changes: [&[&str]; 4] = [
        &["recompress", "--with", "none"],
        &["recompress", "--mode", "size"],
        &["prune", "--keep", "sm_80,ptx"],
        &["recompress", "--mode", "speed"],
    ];
    let words = |change: &'static [&'static str]| {
        let more = ["now.so", "-o", "now.so", "--backup=numbered"];
        [&["fatbin"], change, &more].concat()
    };
    let now = || fs::read(at.join("now.so")).expect("a library");
    let begin = || {
        for name in ["now.so.~1~", "now.so.~2~"] {
            let _ = fs::remove_file(at.join(name));
        }
        fs::write(at.join("now.so"), &old).expect("a file");
    };
    for pair in [[0, 1], [1, 2], [2, 3]] {
        let orders = [pair, [pair[1], pair[0]]].map(|order| {
            begin();
            let states = order.map(|change| {
                printed(at, &words(changes[change]));
                now()
            });
            (states, order)
        });
        for round in 0..ROUNDS {
            begin();
            let both = pair.map(|change| start(at, &words(changes[change])));
            assert_eq!(ended(both.into()), [""; 0], "{pair:?}, {round}");
            let kept = |name: &str| fs::read(at.join(name)).expect("what was replaced");
            let found = (kept("now.so.~2~"), now());
            assert!(kept("now.so.~1~") == old, "{pair:?}, {round}");
            let is_it =
                |([first, both], _): &([Vec<u8>; 2], _)| (first, both) == (&found.0, &found.1);
            assert!(orders.iter().any(is_it), "{pair:?}, {round}");
        }
    }
}

/// Who asks for no turn is not overwritten.
#[test]
fn what_others_change_in_the_meantime_stays() {
    let Some(folder) = libraries("what_others_change_in_the_meantime_stays") else { return };
    let at = folder.path();
    let old = fs::read(at.join("lib.so")).expect("a library");
    let mut refused = 0;
    for delay in (0..200).step_by(10) {
        fs::write(at.join("now.so"), &old).expect("a file");
        let child =
            start(at, &["fatbin", "recompress", "now.so", "-o", "now.so", "--mode", "size"]);
        std::thread::sleep(std::time::Duration::from_millis(delay));
        fs::write(at.join("another"), [&old[..], b"another"].concat()).expect("a file");
        fs::rename(at.join("another"), at.join("now.so")).expect("a file");
        for said in ended(vec![child]) {
            assert!(said.contains("now.so: was changed in the meantime"), "{said}");
            refused += 1;
        }
        let now = fs::read(at.join("now.so")).expect("a library");
        assert!(now.ends_with(b"another"), "{delay}");
    }
    println!("{refused} refused");
}
