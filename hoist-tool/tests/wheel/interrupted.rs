//! Whatever happens to `hoist wheel slim`, and to `hoist fatbin slim`, `recompress` and `prune`: the old file or the new one is there, and nothing
//! else. So it is with wheels, with images of containers, and with libraries, alone or in a folder.
#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use super::installed::{installed, is_right};
use super::{image, layout, libraries, printed, python};

const KEEP: [&str; 4] = ["--keep", "sm_80,ptx", "--mode", "size"];
/// The commands that change a file.
const WHEEL: &[&str] = &["wheel", "slim", "--keep", "sm_80,ptx", "--mode", "size"];
const IMAGE: &[&str] = &["fatbin", "slim", "--keep", "sm_80,ptx", "--mode", "size"];
pub(super) const RECOMPRESS: &[&str] = &["fatbin", "recompress", "--mode", "size"];
pub(super) const GROW: &[&str] = &["fatbin", "recompress", "--with", "none"];
pub(super) const PRUNE: &[&str] = &["fatbin", "prune", "--keep", "sm_80,ptx"];

/// How often a process is started to be killed: 30 times, or as `HOIST_KILLS` says.
fn kills() -> u32 {
    let wanted = std::env::var("HOIST_KILLS").ok();
    wanted.map_or(30, |text| text.parse().expect("HOIST_KILLS is a number"))
}

/// A file in a folder of its own, and what becomes of it by these words.
pub(super) struct Changed {
    pub(super) folder: tempfile::TempDir,
    pub(super) how: &'static [&'static str],
    pub(super) name: &'static str,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Changed {
    /// The wheel `in.whl`.
    pub(super) fn wheel(test: &str) -> Option<Self> {
        let folder = libraries(test)?;
        if !python(folder.path(), &["make", "in.whl"]) {
            println!("skipped: {test}: needs python3");
            return None;
        }
        Some(Self::of(folder, WHEEL, "in.whl"))
    }

    /// The image `in.tar`: with its layers compressed, and beside `index.json` what `docker save` writes.
    pub(super) fn image(test: &str) -> Option<Self> {
        let folder = libraries(test)?;
        let library = fs::read(folder.path().join("lib.so")).expect("a library");
        let bytes = image::oci("gzip", true, &library);
        fs::write(folder.path().join("in.tar"), bytes).expect("a file");
        Some(Self::of(folder, IMAGE, "in.tar"))
    }

    /// The library `lib.so`, compressed already if it is to grow.
    pub(super) fn library(test: &str, how: &'static [&'static str]) -> Option<Self> {
        let folder = libraries(test)?;
        if how == GROW {
            printed(folder.path(), &[RECOMPRESS, &["lib.so", "-o", "lib.so"]].concat());
        }
        Some(Self::of(folder, how, "lib.so"))
    }

    fn of(folder: tempfile::TempDir, how: &'static [&'static str], name: &'static str) -> Self {
        let at = folder.path();
        printed(at, &[how, &[name, "-o", "out"]].concat());
        let [old, new] = [name, "out"].map(|name| fs::read(at.join(name)).expect("a file"));
        assert!(old != new);
        let files = at.join("files");
        fs::create_dir(&files).expect("a folder");
        fs::write(files.join(name), &old).expect("a file");
        Self { folder, how, name, old, new }
    }

    /// What changes it where it is, in `files`.
    fn words(&self) -> Vec<&str> {
        [self.how, &[self.name, "-o", self.name]].concat()
    }

    /// Killed at any moment.
    fn is_killed(&self) {
        let at = &self.folder.path().join("files");
        let path = at.join(self.name);
        let mut changed = 0;
        let kills = killed(at, &self.words(), || {
            let found = fs::read(&path).expect("a file");
            assert!(found == self.old || found == self.new, "{} bytes", found.len());
            assert_eq!(names(at), BTreeSet::from([self.name.to_owned()]));
            changed += u32::from(found == self.new);
            fs::write(&path, &self.old).expect("a file");
        });
        println!("{}: {kills} kills, {changed} times changed", self.name);
        assert!(kills > 0 && changed > 0, "{kills} {changed}");
    }

    /// Four processes at once.
    fn is_shared(&self) {
        let at = &self.folder.path().join("files");
        let words = self.words();
        for _ in 0..8 {
            fs::write(at.join(self.name), &self.old).expect("a file");
            let start = |_| command(at, &words).spawn().expect("hoist runs");
            let children: Vec<_> = (0..4).map(start).collect();
            for mut child in children {
                assert!(child.wait().expect("it ends").success());
            }
            assert!(fs::read(at.join(self.name)).expect("a file") == self.new);
            assert_eq!(names(at).len(), 1);
        }
    }
}

/// `hoist` with these words, which says nothing.
fn command(at: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.args(words).current_dir(at).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Names in a folder; a process that is killed may leave a file or folder that the next one removes.
fn names(at: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(at).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.into_string().expect("text"));
    names.filter(|name| !name.starts_with(".hoist-")).collect()
}

/// Starts a command again and again, kills it at any moment, and looks at what it left. How often it was killed.
fn killed(at: &Path, words: &[&str], mut look: impl FnMut()) -> u32 {
    let start = Instant::now();
    assert!(command(at, words).status().expect("hoist runs").success());
    let (whole, mut kills) = (start.elapsed(), 0);
    look();
    let moments = RandomState::new();
    for number in 0..self::kills() {
        let mut child = command(at, words).spawn().expect("hoist runs");
        thread::sleep(whole * (moments.hash_one(number) as u32 % 1000) / 1000);
        if child.try_wait().expect("a state").is_none() {
            child.kill().expect("it is ours");
            kills += 1;
        }
        child.wait().expect("it ends");
        look();
    }
    kills
}

#[test]
fn a_wheel_whose_change_is_killed_is_the_old_or_the_new_one() {
    const NAME: &str = "a_wheel_whose_change_is_killed_is_the_old_or_the_new_one";
    Changed::wheel(NAME).iter().for_each(Changed::is_killed);
}

#[test]
fn an_image_whose_change_is_killed_is_the_old_or_the_new_one() {
    const NAME: &str = "an_image_whose_change_is_killed_is_the_old_or_the_new_one";
    Changed::image(NAME).iter().for_each(Changed::is_killed);
}

#[test]
fn a_library_whose_change_is_killed_is_the_old_or_the_new_one() {
    const NAME: &str = "a_library_whose_change_is_killed_is_the_old_or_the_new_one";
    for how in [RECOMPRESS, GROW, PRUNE] {
        Changed::library(NAME, how).iter().for_each(Changed::is_killed);
    }
}

#[test]
fn libraries_whose_change_is_killed_come_back() {
    let Some(folder) = libraries("libraries_whose_change_is_killed_come_back") else { return };
    let at = folder.path();
    fs::create_dir(at.join("site")).expect("a folder");
    let files = ["site/a.so", "site/b.so"];
    let old = fs::read(at.join("lib.so")).expect("a file");
    for name in files {
        fs::write(at.join(name), &old).expect("a file");
    }
    let words = [&["fatbin", "slim", "site", "--backup", "kept"][..], &KEEP].concat();
    let mut states = BTreeSet::new();
    let kills = killed(at, &words, || {
        let found = files.map(|name| fs::read(at.join(name)).expect("a file"));
        states.insert(found.clone().map(|bytes| bytes == old));
        assert_eq!(names(&at.join("site")).len(), 2);
        if at.join("kept/slimmed.jsonl").exists() {
            printed(at, &["fatbin", "slim", "--undo", "kept"]);
            fs::remove_dir_all(at.join("kept")).expect("a folder");
        }
        let found = files.map(|name| fs::read(at.join(name)).expect("a file"));
        assert!(found.iter().all(|bytes| *bytes == old), "what was undone is the original");
    });
    println!("{kills} kills, {} states", states.len());
    assert!(kills > 0 && states.len() > 1, "{kills} {states:?}");
}

#[test]
fn an_image_in_a_folder_whose_change_is_killed_is_whole_and_comes_back() {
    const NAME: &str = "an_image_in_a_folder_whose_change_is_killed_is_whole_and_comes_back";
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    let library = fs::read(at.join("lib.so")).expect("a library");
    layout::lay_out(at, "image", &image::oci("gzip", true, &library));
    let old = layout::files(&at.join("image"));
    let before = image::verified(&layout::packed(&old));
    let words = [&["fatbin", "slim", "image", "--backup", "kept"][..], &KEEP].concat();
    let (mut changed, mut half) = (0, 0);
    let kills = killed(at, &words, || {
        let found = layout::files(&at.join("image"));
        changed += u32::from(image::verified(&layout::packed(&found)) != before);
        half += u32::from(found.len() != old.len());
        if at.join("kept/slimmed.jsonl").exists() {
            printed(at, &["fatbin", "slim", "--undo", "kept"]);
            fs::remove_dir_all(at.join("kept")).expect("a folder");
        }
        let found = layout::files(&at.join("image"));
        assert!(found == old, "{:?} {:?}", found.keys(), old.keys());
    });
    println!("{kills} kills, {changed} times changed, {half} times with blobs of both");
    assert!(kills > 0 && changed > 0, "{kills} {changed}");
}

#[test]
fn a_copy_of_an_image_in_a_folder_that_is_killed_is_whole_or_not_there() {
    const NAME: &str = "a_copy_of_an_image_in_a_folder_that_is_killed_is_whole_or_not_there";
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    let library = fs::read(at.join("lib.so")).expect("a library");
    layout::lay_out(at, "image", &image::oci("gzip", true, &library));
    let words = [&["fatbin", "slim", "image", "-o", "copy"][..], &KEEP].concat();
    let all = || fs::read_dir(at).expect("a folder").count();
    let (mut whole, mut left) = (0, 0);
    let kills = killed(at, &words, || {
        left += u32::from(all() > names(at).len());
        if at.join("copy").exists() {
            whole += 1;
            image::verified(&layout::packed(&layout::files(&at.join("copy"))));
            fs::remove_dir_all(at.join("copy")).expect("a folder");
        }
    });
    println!("{kills} kills, {whole} whole copies, {left} times one was left that was not");
    assert!(kills > 0 && whole > 0, "{kills} {whole}");
    assert!(command(at, &words).status().expect("hoist runs").success());
    assert_eq!(all(), names(at).len(), "what was left goes with the next copy");
}

/// `--undo`, killed at any moment: `look` sees what is there then, and all comes back by another. `again` brings back what was changed.
fn undoing_is_killed(at: &Path, mut look: impl FnMut(), mut again: impl FnMut()) {
    let undo = ["fatbin", "slim", "--undo", "kept"];
    let kills = killed(at, &undo, || {
        look();
        printed(at, &undo);
        again();
    });
    println!("{kills} kills");
    assert!(kills > 0);
}

#[test]
fn an_undoing_that_is_killed_goes_on() {
    let Some(folder) = installed("an_undoing_that_is_killed_goes_on") else { return };
    let at = folder.path();
    let site = at.join("site");
    let contents = || -> BTreeMap<_, _> {
        let all = layout::files(&site).into_iter().filter(|(name, _)| !name.contains(".hoist-"));
        all.map(|(name, (content, ..))| (name, content)).collect()
    };
    let old = contents();
    printed(at, &[&["fatbin", "slim", "site", "--backup", "kept"][..], &KEEP].concat());
    let new = contents();
    let mut states = BTreeSet::new();
    let look = || {
        let found = contents();
        assert!(found.keys().eq(old.keys()));
        let is_old = |(name, content): (&String, &Vec<u8>)| {
            assert!(*content == old[name] || *content == new[name], "{name}");
            *content == old[name]
        };
        states.insert(found.iter().map(is_old).collect::<Vec<_>>());
    };
    undoing_is_killed(at, look, || {
        assert!(contents() == old && is_right(at));
        for (name, content) in &new {
            fs::write(site.join(name), content).expect("a file");
        }
    });
    println!("{} states", states.len());
    assert!(states.len() > 1);
}

#[test]
fn an_undoing_of_an_image_that_is_killed_goes_on() {
    let Some(folder) = libraries("an_undoing_of_an_image_that_is_killed_goes_on") else { return };
    let at = folder.path();
    let image = at.join("image");
    let library = fs::read(at.join("lib.so")).expect("a library");
    layout::lay_out(at, "image", &image::oci("gzip", true, &library));
    let old = layout::files(&image);
    printed(at, &[&["fatbin", "slim", "image", "--backup", "kept"][..], &KEEP].concat());
    let new = layout::files(&image);
    let whole = || {
        let mut found = layout::files(&image);
        found.retain(|name, _| !name.contains(".hoist-"));
        image::verified(&layout::packed(&found))
    };
    let mut states = BTreeSet::new();
    let look = || {
        states.insert(whole());
    };
    undoing_is_killed(at, look, || {
        assert!(layout::contents(&layout::files(&image)) == layout::contents(&old));
        fs::remove_dir_all(&image).expect("a folder");
        for (name, (content, ..)) in &new {
            let path = image.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, content).expect("a file");
        }
    });
    println!("{} states", states.len());
    assert!(states.len() > 1);
}

#[test]
fn two_at_once_leave_the_new_wheel() {
    Changed::wheel("two_at_once_leave_the_new_wheel").iter().for_each(Changed::is_shared);
}

#[test]
fn two_at_once_leave_the_new_image() {
    Changed::image("two_at_once_leave_the_new_image").iter().for_each(Changed::is_shared);
}

#[test]
fn two_at_once_leave_the_new_library() {
    for how in [RECOMPRESS, PRUNE] {
        let library = Changed::library("two_at_once_leave_the_new_library", how);
        library.iter().for_each(Changed::is_shared);
    }
}

#[test]
fn what_is_replaced_is_kept() {
    let Some(Changed { folder, old, new, .. }) = Changed::wheel("what_is_replaced_is_kept") else {
        return;
    };
    let at = folder.path();
    let words = [&["wheel", "slim", "in.whl", "-o", "in.whl", "--json"][..], &KEEP].concat();
    let said = printed(at, &[&words[..], &["--backup"]].concat());
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert!(said["backup"].as_str().is_some_and(|name| name.ends_with("/in.whl~")), "{said}");
    let read = |name: &str| fs::read(at.join(name)).expect("a file");
    assert!(read("in.whl~") == old && read("in.whl") == new);
    // libraries, by every command that changes one where it is
    let library = read("lib.so");
    for words in [
        &["prune", "--keep", "sm_80,ptx", "-S", ".old"][..],
        &["recompress", "--mode", "size", "-S", ".old"],
        &["replace", "--region", "0", "--entry", "1", "--with", "k75.cubin", "--any", "-S", ".old"],
    ] {
        fs::write(at.join("lib.so"), &library).expect("a file");
        let all = [&["fatbin", words[0], "lib.so", "-o", "lib.so"], &words[1..]].concat();
        let said = printed(at, &all);
        assert!(
            said.contains("what was replaced is kept as") && said.contains("lib.so.old"),
            "{said}"
        );
        assert!(read("lib.so.old") == library && read("lib.so") != library);
        fs::remove_file(at.join("lib.so.old")).expect("a file");
    }
    // killed at any moment: the old one is there, under its name or the other
    fs::write(at.join("in.whl"), &old).expect("a file");
    let kills = killed(at, &[&words[..], &["--backup=numbered"]].concat(), || {
        let found = read("in.whl");
        assert!(found == old || found == new);
        let kept = at.join("in.whl.~1~");
        assert!(found == old || fs::read(&kept).expect("what was replaced") == old);
        for kept in fs::read_dir(at).expect("a folder").flatten() {
            if kept.file_name().to_string_lossy().starts_with("in.whl.~") {
                fs::remove_file(kept.path()).expect("a file");
            }
        }
        fs::write(at.join("in.whl"), &old).expect("a file");
    });
    println!("{kills} kills");
}
