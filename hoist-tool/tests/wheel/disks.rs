//! Disks that are full or cannot be written to, under the commands that change files: the old file or the new one is there, and nothing else.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::interrupted::{Changed, GROW, PRUNE, RECOMPRESS};
use super::{image, layout, libraries};

/// Disks of more and more bytes, on which temporary files are as well; one that cannot be written to, and a folder of another one that cannot.
const DISKS: &str = r#"
slim() {
    if TMPDIR=$1 "$hoist" $how "$disk/$name" -o "$disk/$name" >/dev/null 2>said; then
        cmp "$disk/$name" out; echo "$2 new"
    else
        cmp "$disk/$name" $name; echo "$2 old"; test "$(wc -l <said)" = 1
    fi
    test "$(ls -A "$disk")" = $name
}
kib=$(($(wc -c <$name) / 1024 + 4))
for more in 0 4 8 16 32 64 128 2048; do
    mount -t tmpfs -o size=$((kib + more))k none "$disk"
    cp $name "$disk"
    slim "$disk" full
    umount "$disk"
done
mount -t tmpfs none "$disk"
cp $name "$disk"
mount -o remount,ro "$disk"
slim "$PWD" read-only
umount "$disk"
mkdir bound
cp $name bound
mount --bind bound "$disk"
mount -o remount,ro,bind "$disk"
slim "$PWD" read-only-folder
"#;

/// Libraries in a folder on disks of more and more bytes, their originals on the same or elsewhere: each is the old one or the new one, and
/// comes back when there is room.
const LIBRARIES_ON_DISKS: &str = r#"
slim() {
    if TMPDIR=$1 "$hoist" fatbin slim "$disk/site" --keep sm_80,ptx --mode size --backup "$2" >/dev/null 2>said; then
        end=done
    else
        end=failed; test "$(wc -l <said)" = 1
    fi
    for name in a b; do
        if cmp -s "$disk/site/$name.so" $name.old; then end="$end old"; else cmp "$disk/site/$name.so" $name.new; end="$end new"; fi
    done
    test "$(ls -A "$disk/site" | tr '\n' ' ')" = "a.so b.so "
    echo "$3 $end"
}
come_back() {
    if test -e "$1/slimmed.jsonl"; then "$hoist" fatbin slim --undo "$1" >/dev/null; fi
    for name in a b; do cmp "$disk/site/$name.so" $name.old; done
}
begin() {
    mount -t tmpfs -o size=$1 none "$disk"
    mkdir "$disk/site"
    for name in a b; do cp $name.old "$disk/site/$name.so"; done
}
cp lib.so a.old
(cat lib.so; echo another) >b.old
begin 64m
"$hoist" fatbin slim "$disk/site" --keep sm_80,ptx --mode size --backup "$disk/kept" >/dev/null
for name in a b; do cp "$disk/site/$name.so" $name.new; done
come_back "$disk/kept"
umount "$disk"
# back where there is little room, or none may be taken
undo() {
    if "$hoist" fatbin slim --undo kept >/dev/null 2>said; then end=done; else end=failed; test "$(wc -l <said)" = 1; fi
    for name in a b; do
        if cmp -s "$disk/site/$name.so" $name.old; then end="$end old"; else cmp "$disk/site/$name.so" $name.new; end="$end new"; fi
    done
    test "$(ls -A "$disk/site" | tr '\n' ' ')" = "a.so b.so "
    echo "undone $1 $end"
}
for more in $(seq 0 8 80); do
    begin 64m
    "$hoist" fatbin slim "$disk/site" --keep sm_80,ptx --mode size --backup kept >/dev/null
    mount -o remount,size=$(($(du -sk "$disk" | cut -f1) + more))k "$disk"
    undo full
    mount -o remount,size=64m "$disk"
    come_back kept
    umount "$disk"
    rm -r kept
done
begin 64m
"$hoist" fatbin slim "$disk/site" --keep sm_80,ptx --mode size --backup kept >/dev/null
mount -o remount,ro "$disk"
undo read-only
mount -o remount,rw "$disk"
come_back kept
umount "$disk"
rm -r kept
kib=$((2 * $(wc -c <lib.so) / 1024 + 16))
for more in $(seq 0 8 160) 2048; do
    begin $((kib + more))k
    slim "$disk" "$disk/kept" same
    mount -o remount,size=64m "$disk"
    come_back "$disk/kept"
    umount "$disk"
    begin $((kib + more))k
    slim "$disk" kept elsewhere
    mount -o remount,size=64m "$disk"
    come_back kept
    umount "$disk"
    rm -r kept
done
begin 64m
mount -o remount,ro "$disk"
slim "$PWD" kept read-only
come_back kept
umount "$disk"
mkdir -p bound/site
for name in a b; do cp $name.old bound/site/$name.so; done
mount --bind bound "$disk"
mount -o remount,ro,bind "$disk"
slim "$PWD" kept read-only-folder
come_back kept
"#;

/// What a script says that is run where `$disk` can be a disk of its own. Nothing if this system does not let us.
fn on_disks(test: &str, at: &Path, variables: &[(&str, &str)], script: &str) -> Option<String> {
    fs::create_dir(at.join("disk")).expect("a folder");
    let shell = |script: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["-rm", "/bin/sh", "-e", "-c", script]).env("disk", at.join("disk"));
        shell.envs(variables.iter().copied());
        shell.env("hoist", env!("CARGO_BIN_EXE_hoist")).current_dir(at).stdin(Stdio::null());
        shell
    };
    let mount = shell("mount -t tmpfs none \"$disk\"").stderr(Stdio::null()).status();
    if !mount.is_ok_and(|status| status.success()) {
        println!("skipped: {test}: needs unshare and mount");
        return None;
    }
    let output = shell(script).output().expect("a shell");
    let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
    assert!(output.status.success(), "{said}");
    Some(said)
}

/// What becomes of a file on such disks.
fn one_on_disks(test: &str, changed: &Changed) {
    let how = changed.how.join(" ");
    let variables = [("how", how.as_str()), ("name", changed.name)];
    let Some(said) = on_disks(test, changed.folder.path(), &variables, DISKS) else { return };
    assert!(said.starts_with("full old\n") && said.contains("full new\n"), "{said}");
    assert!(said.ends_with("read-only old\nread-only-folder old\n"), "{said}");
}

#[test]
fn a_full_or_read_only_disk_keeps_the_old_wheel() {
    const NAME: &str = "a_full_or_read_only_disk_keeps_the_old_wheel";
    Changed::wheel(NAME).iter().for_each(|wheel| one_on_disks(NAME, wheel));
}

#[test]
fn a_full_or_read_only_disk_keeps_the_old_image() {
    const NAME: &str = "a_full_or_read_only_disk_keeps_the_old_image";
    Changed::image(NAME).iter().for_each(|image| one_on_disks(NAME, image));
}

#[test]
fn a_full_or_read_only_disk_keeps_the_old_library() {
    const NAME: &str = "a_full_or_read_only_disk_keeps_the_old_library";
    for how in [RECOMPRESS, GROW, PRUNE] {
        Changed::library(NAME, how).iter().for_each(|library| one_on_disks(NAME, library));
    }
}

#[test]
fn libraries_on_a_full_or_read_only_disk_are_old_or_new_and_come_back() {
    const NAME: &str = "libraries_on_a_full_or_read_only_disk_are_old_or_new_and_come_back";
    let Some(folder) = libraries(NAME) else { return };
    let Some(said) = on_disks(NAME, folder.path(), &[], LIBRARIES_ON_DISKS) else { return };
    let all: BTreeSet<_> = said.lines().collect();
    println!("{} runs: {all:?}", said.lines().count());
    for disk in ["same", "elsewhere"] {
        assert!(all.contains(&*format!("{disk} failed old old")), "{said}");
        assert!(all.contains(&*format!("{disk} done new new")), "{said}");
    }
    let half =
        all.iter().any(|line| line.contains("failed new old") || line.contains("failed old new"));
    assert!(half, "{said}");
    let (undone, all): (Vec<_>, Vec<_>) = all.iter().partition(|line| line.starts_with("undone"));
    for line in ["full failed new new", "full done old old", "read-only failed new new"] {
        assert!(undone.contains(&&*format!("undone {line}")), "{said}");
    }
    assert!(
        !undone.iter().any(|line| line.contains("done ") && line.contains("done new")),
        "{said}"
    );
    assert!(!all.iter().any(|line| line.contains("done") && line.contains("old")), "{said}");
    let end = "read-only failed old old\nread-only-folder failed old old\n";
    assert!(said.ends_with(end), "{said}");
}

/// The same of an image in a folder, as OCI lays it out: whole, whatever happened, and as at first when it came back.
const LAYOUT_ON_DISKS: &str = r#"
digests() {
    (cd "$disk/image/blobs/sha256" && for blob in *; do echo "$blob  $blob"; done | sha256sum --check --quiet >&2)
}
slim() {
    if TMPDIR=$1 "$hoist" fatbin slim "$disk/image" --keep sm_80,ptx --mode size --backup "$2" >/dev/null 2>said; then
        end=done
    else
        end=failed; test "$(wc -l <said)" = 1
    fi
    digests
    test -z "$(find "$disk/image" -name '.hoist-*')"
    if diff -r "$disk/image" image >/dev/null; then echo "$3 $end old"; else echo "$3 $end new"; fi
}
come_back() {
    if test -e "$1/slimmed.jsonl"; then "$hoist" fatbin slim --undo "$1" >/dev/null; fi
    diff -r "$disk/image" image
}
begin() {
    mount -t tmpfs -o size=$1 none "$disk"
    cp -r image "$disk"
}
# back where there is little room, or none may be taken
undo() {
    if "$hoist" fatbin slim --undo kept >/dev/null 2>said; then end=done; else end=failed; fi
    digests
    test -z "$(find "$disk/image" -name '.hoist-*')"
    if diff -r "$disk/image" image >/dev/null; then echo "undone $1 $end old"; else echo "undone $1 $end new"; fi
}
for more in $(seq 0 16 96); do
    begin 64m
    slim "$PWD" kept room
    mount -o remount,size=$(($(du -sk "$disk" | cut -f1) + more))k "$disk"
    undo full
    mount -o remount,size=64m "$disk"
    come_back kept
    umount "$disk"
    rm -r kept
done
begin 64m
slim "$PWD" kept room
mount -o remount,ro "$disk"
undo read-only
mount -o remount,rw "$disk"
come_back kept
umount "$disk"
rm -r kept
kib=$(du -sk image | cut -f1)
for more in $(seq 0 8 96) 4096; do
    begin $((kib + more))k
    slim "$disk" "$disk/kept" same
    mount -o remount,size=64m "$disk"
    come_back "$disk/kept"
    umount "$disk"
    begin $((kib + more))k
    slim "$PWD" kept elsewhere
    mount -o remount,size=64m "$disk"
    come_back kept
    umount "$disk"
    rm -r kept
done
begin 64m
mount -o remount,ro "$disk"
slim "$PWD" kept read-only
come_back kept
umount "$disk"
cp -r image bound
mkdir "$disk/image"
mount --bind bound "$disk/image"
mount -o remount,ro,bind "$disk/image"
slim "$PWD" kept read-only-folder
come_back kept
"#;

#[test]
fn an_image_in_a_folder_on_a_full_or_read_only_disk_is_whole_and_comes_back() {
    const NAME: &str = "an_image_in_a_folder_on_a_full_or_read_only_disk_is_whole_and_comes_back";
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    let library = fs::read(at.join("lib.so")).expect("a library");
    layout::lay_out(at, "image", &image::oci("gzip", true, &library));
    let Some(said) = on_disks(NAME, at, &[], LAYOUT_ON_DISKS) else { return };
    let all: BTreeSet<_> = said.lines().collect();
    println!("{} runs: {all:?}", said.lines().count());
    // what is elsewhere leaves room for the smaller blobs
    for line in [
        "same failed old",
        "same done new",
        "elsewhere done new",
        "room done new",
        "undone full failed new",
        "undone full done old",
        "undone read-only failed new",
    ] {
        assert!(all.contains(line), "{said}");
    }
    assert!(
        !all.iter().any(|line| line.ends_with(" done old") && !line.starts_with("undone")),
        "{said}"
    );
    assert!(!all.contains("undone full done new"), "{said}");
    assert!(said.ends_with("read-only failed old\nread-only-folder failed old\n"), "{said}");
}
