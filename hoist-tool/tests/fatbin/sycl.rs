//! Images of SYCL in linked files: a section that is named for their target, and a table that says where each is.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{json, printed, read};

/// Two images and padding between, as Intel's compilers place them; the table is relocated where the file is a library.
const SOURCE: &str = r#"
#include <stddef.h>
#define SECTION(name) __attribute__((section(name), aligned(16), used))
static const unsigned char images[32] SECTION("__CLANG_OFFLOAD_BUNDLE__sycl-spir64") =
    "\x03\x02\x23\x07 first\0\0\0\0\0\0BC\xc0\xde second";
#ifdef TABLE
static const struct { const void *at; size_t size; } table[] SECTION(".tgtimg") = {{images, 10}, {images + 16, 11}};
#endif
int main(void) { return 0; }
"#;

fn compiled(at: &Path, words: &[&str]) -> bool {
    fs::write(at.join("images.c"), SOURCE).expect("a file");
    Command::new("cc")
        .args(words)
        .arg("images.c")
        .current_dir(at)
        .status()
        .is_ok_and(|it| it.success())
}

#[test]
fn each_image_of_sycl_is_taken_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for words in [["-shared", "-fPIC"], ["-no-pie", "-g0"], ["-pie", "-fPIE"]] {
        if !compiled(at, &[&words[..], &["-DTABLE", "-o", "linked"]].concat()) {
            println!("skipped: each_image_of_sycl_is_taken_out: needs cc");
            return;
        }
        let listed = json(at, &["offload", "list", "--json", "linked"]);
        let images = listed["files"][0]["images"].as_array().expect("images");
        let rows: Vec<_> = images
            .iter()
            .map(|one| (one["kind"].as_str().unwrap(), one["triple"].as_str().unwrap()))
            .collect();
        assert_eq!(rows, [("spv", "spir64"), ("bc", "spir64")], "{words:?}");
        let names = printed(at, &["offload", "extract", "linked", "-o", "out"]);
        let names: Vec<_> = names.lines().collect();
        assert_eq!(names, ["linked-spir64-.0.spv", "linked-spir64-.1.bc"]);
        assert_eq!(read(&at.join("out"), names[0]), b"\x03\x02\x23\x07 first");
        assert_eq!(read(&at.join("out"), names[1]), b"BC\xc0\xde second");
    }
    // without the table, as in objects, a section is one image
    assert!(compiled(at, &["-c", "-o", "object.o"]));
    printed(at, &["offload", "extract", "object.o", "-o", "out"]);
    assert_eq!(read(&at.join("out"), "object-spir64-.0.spv").len(), 32);
}
