//! Wheels with values of 64 bits: in extra fields, behind members, and at the end of the directory.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{libraries, printed, python};

/// Writes a wheel anew: with sizes of 64 bits behind each member (`wide`), with more members than 16 bits count (`many`), and with a member
/// before all others that takes more than 32 bits say (`far`).
const PYTHON: &str = r#"
import copy, struct, sys, zipfile
class Stream:
    def __init__(self, file): self.file = file
    def write(self, data): return self.file.write(data)
    def flush(self): self.file.flush()
old, new, how = sys.argv[1:]
extra = struct.pack("<HH", 0xcafe, 3) + b"abc"
with zipfile.ZipFile(old) as one, open(new, "wb") as file:
    with zipfile.ZipFile(Stream(file) if how == "wide" else file, "w") as other:
        other.comment = one.comment
        if how == "far":
            entry = zipfile.ZipInfo("thing/far", (2001, 2, 3, 4, 5, 6))
            entry.extra = extra
            with other.open(entry, "w", force_zip64=True) as out:
                for _ in range(67):
                    out.write(bytes(1 << 26))
        for entry in one.infolist():
            again = copy.copy(entry)
            with other.open(again, "w", force_zip64=how == "wide") as out:
                out.write(one.read(entry))
        for number in range(66000 if how == "many" else 0):
            entry = zipfile.ZipInfo(f"thing/{number}", (2001, 2, 3, 4, 5, 6))
            entry.extra = extra
            other.writestr(entry, b"")
"#;

/// A wheel that is written so, changed, compared, and changed once more, which leaves it as it is.
fn changes(test: &str, hows: &[&str]) {
    let Some(folder) = libraries(test) else { return };
    let at = folder.path();
    if !python(at, &["make", "in.whl"]) {
        println!("skipped: {test}: needs python3");
        return;
    }
    for how in hows {
        let mut anew = Command::new("python3");
        anew.args(["-c", PYTHON, "in.whl", "wide.whl", how]).current_dir(at);
        assert!(anew.status().expect("Python").success(), "{how}");
        let words =
            ["wheel", "slim", "wide.whl", "-o", "out.whl", "--keep", "sm_80,ptx", "--mode", "size"];
        let said = printed(at, &words);
        assert!(said.contains("out.whl: 2 files changed"), "{how}: {said}");
        let changed =
            ["thing/lib/lib.so", "thing/lib/it's, \"stored\".so", "thing-1.0.dist-info/RECORD"];
        python(at, &[&["compare", "wide.whl", "out.whl"][..], &changed].concat());
        is_listed(at, how);
        let words = words.map(|word| if word == "wide.whl" { "out.whl" } else { word });
        let once = fs::metadata(at.join("out.whl")).expect("a wheel").len();
        assert!(printed(at, &words).contains("nothing of the wheel changes"), "{how}");
        assert_eq!(fs::metadata(at.join("out.whl")).expect("a wheel").len(), once, "{how}");
    }
}

/// What lists the device code of wheels reads it, too.
fn is_listed(at: &Path, how: &str) {
    let listed = |name: &str| {
        let listed = printed(at, &["fatbin", "list", "--json", name]);
        let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
        listed["files"].as_array().expect("files").len()
    };
    assert_eq!(listed("wide.whl"), listed("out.whl"), "{how}");
}

#[test]
fn wheels_with_values_of_64_bits_become_smaller() {
    changes("wheels_with_values_of_64_bits_become_smaller", &["wide", "many"]);
}

#[test]
#[ignore = "needs 9 GB of disk: a wheel of more than 4 GiB"]
fn a_wheel_of_more_than_32_bits_becomes_smaller() {
    changes("a_wheel_of_more_than_32_bits_becomes_smaller", &["far"]);
}
