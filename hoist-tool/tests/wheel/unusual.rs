//! Wheels as other tools write them: names, digests and methods that zipfile and pip do not choose.

use std::path::Path;
use std::process::Command;

use super::{libraries, printed, refused};

/// Writes a wheel in an unusual way, or looks at one: each line of RECORD says what the member is, by the digest that it had before.
const PYTHON: &str = r#"
import base64, csv, hashlib, io, sys, zipfile
def digest(algorithm, data):
    return algorithm + "=" + base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).rstrip(b"=").decode()
def make(name, how):
    library, info = open("lib.so", "rb").read(), "thing-1.0.dist-info/"
    method = {"bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}.get(how, zipfile.ZIP_DEFLATED)
    path = "thing/l!b.so" if how == "page437" else "thing/lib.so"
    files = [("thing/first.so", library, zipfile.ZIP_DEFLATED), (path, library, method)]
    files.append((info + "METADATA", b"Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n", zipfile.ZIP_DEFLATED))
    if how == "lzma":
        files.append(("thing/other.so", library, method))
    if how == "fatbin":
        files.append(("thing/code.fatbin", open("code.fatbin", "rb").read(), zipfile.ZIP_DEFLATED))
    if how == "damaged":
        files.append(("thing/damaged.so", library[:1000], zipfile.ZIP_DEFLATED))
    if how == "several":
        files.append((path, library, zipfile.ZIP_DEFLATED))
    if how == "signed":
        files += [(info + "RECORD.jws", b"{}", zipfile.ZIP_STORED), (info + "RECORD.p7s", b"-", zipfile.ZIP_STORED)]
    written = {"dots": lambda path: "./" + path, "backslashes": lambda path: path.replace("/", "\\"),
        "page437": lambda path: path.replace("!", "\u00e9")}.get(how, lambda path: path)
    text = io.StringIO("\ufeff" if how == "mark" else "")
    text.seek(0, 2)
    rows = csv.writer(text, lineterminator="\n")
    for path, data, _ in files:
        if ".dist-info/RECORD." not in path:
            for _ in range(2 if how == "twice" else 1):
                rows.writerow([written(path), digest(how if how.startswith("sha") else "sha256", data), len(data)])
    rows.writerow([info + "RECORD", "", ""])
    files.append((info + "RECORD", text.getvalue().encode(), zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(name, "w") as wheel:
        for path, data, method in files:
            wheel.writestr(zipfile.ZipInfo(path, (2001, 2, 3, 4, 5, 6)), data, method)
    if how in ("page437", "encrypted"):
        with open(name, "rb") as file:
            data = bytearray(file.read().replace(b"l!b.so", b"l\x82b.so"))
        if how == "encrypted":
            for start, flags in ((data.find(b"thing/lib.so"), 30 - 6), (data.rfind(b"thing/lib.so"), 46 - 8)):
                data[start - flags] |= 1
        open(name, "wb").write(data)
def look(name, how):
    with zipfile.ZipFile(name) as wheel:
        names = {entry.filename: entry for entry in wheel.infolist()}
        for path, value, size in csv.reader(io.StringIO(wheel.read("thing-1.0.dist-info/RECORD").decode())):
            if value:
                path = path.lstrip("\ufeff").replace("\\", "/")
                entry = names[path[2:] if path.startswith("./") else path]
                algorithm = value.split("=")[0]
                assert algorithm == (how if how.startswith("sha") else "sha256"), value
                if how != "encrypted" or path != "thing/lib.so":
                    data = wheel.read(entry)
                    assert value == digest(algorithm, data) and len(data) == int(size), path
{"make": make, "look": look}[sys.argv[1]](*sys.argv[2:])
"#;

fn python(at: &Path, words: &[&str]) -> bool {
    let mut python = Command::new("python3");
    python.args(["-W", "ignore", "-c", PYTHON]).args(words).current_dir(at);
    let Ok(output) = python.output() else { return false };
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    true
}

#[test]
fn wheels_of_other_tools_become_smaller_and_stay_right() {
    const NAME: &str = "wheels_of_other_tools_become_smaller_and_stay_right";
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    printed(at, &["fatbin", "pack", "-o", "code.fatbin", "k75.cubin", "k80.cubin", "k.ptx"]);
    let words = ["wheel", "slim", "in.whl", "-o", "out.whl", "--keep", "sm_80,ptx"];
    for (how, changed, told) in [
        ("sha384", 2, &[][..]),
        ("sha512", 2, &[]),
        ("dots", 2, &[]),
        ("backslashes", 2, &[]),
        ("mark", 2, &[]),
        ("twice", 2, &[]),
        ("page437", 2, &["thing/l\u{e9}b.so: "]),
        (
            "bzip2",
            1,
            &["thing/lib.so: is compressed by method 12 (bzip2), which is not read: it stays"],
        ),
        ("lzma", 1, &["thing/lib.so and 1 more: is compressed by method 14 (LZMA), "]),
        ("encrypted", 1, &["thing/lib.so: is encrypted, which is not read: it stays as it is"]),
        ("damaged", 2, &["thing/damaged.so cannot be read, and stays as it is", "its 0x3e8 bytes"]),
        ("fatbin", 3, &["thing/code.fatbin: 2 of 3 entries"]),
        ("signed", 2, &["RECORD.jws is kept: the signature does", "RECORD.p7s is kept"]),
    ] {
        if !python(at, &["make", "in.whl", how]) {
            println!("skipped: {NAME}: needs python3");
            return;
        }
        let said = printed(at, &words);
        assert!(said.contains(&format!("out.whl: {changed} files changed")), "{how}: {said}");
        assert!(told.iter().all(|told| said.contains(told)), "{how}: {said}");
        python(at, &["look", "out.whl", how]);
    }
    python(at, &["make", "in.whl", "several"]);
    let said = refused(at, &words);
    assert!(
        said.contains("thing/lib.so: there are several members of this name, and RECORD means one"),
        "{said}"
    );
}
