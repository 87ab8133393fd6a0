//! Forty kinds of libraries: of four linkers and two machines, with other tables, alignments and segments.

use std::process::{Command, Stdio};

/// What makes libraries, and loads them.
pub(super) struct Maker {
    pub(super) name: &'static str,
    /// As `hoist fatbin pack` calls it.
    pub(super) machine: &'static str,
    /// The compiler, with options.
    pub(super) compiler: &'static [&'static str],
    /// What the names of GNU's tools begin with.
    prefix: &'static str,
    pub(super) emulator: &'static [&'static str],
    /// How often images are there: enough for several of its largest pages.
    pub(super) images: usize,
    /// What else has to be there.
    needs: &'static [&'static str],
}

/// How a library is linked.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) options: &'static [&'static str],
    /// Whether older linkers cannot do so.
    pub(super) is_new: bool,
}

pub(super) const HERE: Maker = Maker {
    name: "cc",
    machine: "x86_64",
    compiler: &["cc"],
    prefix: "",
    emulator: &[],
    images: 6,
    needs: &[],
};

pub(super) const GOLD: Maker =
    Maker { name: "gold", compiler: &["cc", "-fuse-ld=gold"], needs: &["ld.gold"], ..HERE };

pub(super) const LLD: Maker = Maker {
    name: "lld",
    compiler: &["clang-19", "-fuse-ld=lld"],
    needs: &["clang-19", "ld.lld-19"],
    ..HERE
};

pub(super) const MOLD: Maker =
    Maker { name: "mold", compiler: &["cc", "-fuse-ld=mold"], needs: &["ld.mold"], ..HERE };

pub(super) const AARCH64: Maker = Maker {
    name: "aarch64",
    machine: "aarch64",
    compiler: &["aarch64-linux-gnu-gcc"],
    prefix: "aarch64-linux-gnu-",
    emulator: &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
    images: 60,
    needs: &["aarch64-linux-gnu-gcc", "qemu-aarch64"],
};

pub(super) const ALL: [(&Maker, &[Kind]); 5] =
    [(&HERE, OF_GNU), (&GOLD, OF_GOLD), (&LLD, OF_LLD), (&MOLD, OF_MOLD), (&AARCH64, OF_AARCH64)];

const fn kind(name: &'static str, options: &'static [&'static str]) -> Kind {
    Kind { name, options, is_new: false }
}

const FAR: &[&str] = &["-DFAR", "-mcmodel=large", "-Wl,--section-start=far=0x400000000000"];
const FAR_AARCH64: &[&str] = &["-DFAR", "-Wl,--section-start=far=0x10000000"];

pub(super) const OF_GNU: &[Kind] = &[
    kind("plain", &[]),
    kind("now", &["-Wl,-z,now", "-Wl,--hash-style=gnu"]),
    kind("no-relro", &["-Wl,-z,norelro", "-Wl,--hash-style=sysv"]),
    kind("both-hashes", &["-Wl,--hash-style=both", "-Wl,--build-id=none"]),
    kind("one-segment", &["-Wl,-z,noseparate-code"]),
    kind("large-pages", &["-Wl,-z,max-page-size=0x200000", "-Wl,-z,noseparate-code"]),
    kind("versions", &["-Wl,--version-script=versions"]),
    kind("aligned", &["-DLARGE"]),
    Kind { name: "relr", options: &["-Wl,-z,pack-relative-relocs"], is_new: true },
    kind("no-index-of-frames", &["-Wl,--no-eh-frame-hdr"]),
    kind("far", FAR),
    kind("stripped", &["-s", "-Wl,-z,max-page-size=0x10000"]),
    kind("large-and-now", &["-DLARGE", "-Wl,-z,now", "-Wl,--version-script=versions"]),
    kind("emit-relocs", &["-Wl,--emit-relocs"]),
];

pub(super) const OF_GOLD: &[Kind] = &[
    kind("plain", &[]),
    kind("no-relro", &["-Wl,-z,norelro", "-Wl,--hash-style=sysv"]),
    kind("versions", &["-Wl,-z,now", "-Wl,--version-script=versions", "-DLARGE"]),
    kind("emit-relocs", &["-Wl,--emit-relocs"]),
];

pub(super) const OF_LLD: &[Kind] = &[
    kind("plain", &[]),
    kind("no-relro", &["-Wl,-z,norelro", "-Wl,--hash-style=sysv"]),
    kind("pages-apart", &["-Wl,-z,separate-loadable-segments"]),
    kind("one-segment", &["-Wl,--no-rosegment", "-Wl,--build-id=none"]),
    kind("both-hashes", &["-Wl,--hash-style=both", "-Wl,--compress-debug-sections=zlib"]),
    kind("versions", &["-Wl,--version-script=versions", "-Wl,-z,now", "-DLARGE"]),
    kind("no-index-of-frames", &["-Wl,--no-eh-frame-hdr", "-Wl,-z,max-page-size=0x10000"]),
    kind("relr", &["-Wl,-z,pack-relative-relocs"]),
    kind("emit-relocs", &["-Wl,--emit-relocs", "-Wl,--build-id"]),
];

pub(super) const OF_MOLD: &[Kind] = &[
    kind("plain", &[]),
    kind("no-relro", &["-Wl,-z,norelro", "-Wl,--hash-style=sysv"]),
    kind("versions", &["-Wl,--version-script=versions", "-Wl,-z,now", "-DLARGE"]),
    kind("pages-apart", &["-Wl,-z,separate-loadable-segments", "-Wl,--hash-style=both"]),
    kind("emit-relocs", &["-Wl,--emit-relocs", "-Wl,--build-id=none"]),
    kind("no-index-of-frames", &["-Wl,--no-eh-frame-hdr", "-Wl,--shuffle-sections=1"]),
];

pub(super) const OF_AARCH64: &[Kind] = &[
    kind("plain", &[]),
    kind("now", &["-Wl,-z,now", "-Wl,--hash-style=gnu"]),
    kind("no-relro", &["-Wl,-z,norelro", "-Wl,--hash-style=sysv"]),
    kind("both-hashes", &["-Wl,--hash-style=both", "-Wl,--build-id=none"]),
    kind("small-pages", &["-Wl,-z,max-page-size=4096", "-Wl,-z,separate-code"]),
    kind("versions", &["-Wl,--version-script=versions", "-DLARGE"]),
    kind("far", FAR_AARCH64),
];

impl Maker {
    /// A tool by its name for this machine.
    pub(super) fn tool(&self, name: &str) -> String {
        let is_own = ["strip", "objcopy"].contains(&name);
        if is_own { format!("{}{name}", self.prefix) } else { name.to_owned() }
    }

    /// Whether all that is used is there; else says that the test is skipped.
    pub(super) fn is_there(&self, test: &str) -> bool {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            println!("skipped: {test}: needs Linux on x86-64");
            return false;
        }
        let tools =
            ["cc", "strip", "objcopy", "patchelf", "eu-elflint"].map(|name| self.tool(name));
        let needs = self.needs.iter().map(|name| (*name).to_owned());
        for tool in tools.into_iter().chain(needs) {
            let output = Command::new(&tool).arg("--version").stdin(Stdio::null()).output();
            if !output.is_ok_and(|output| output.status.success()) {
                println!("skipped: {test}: needs {tool}");
                return false;
            }
        }
        true
    }
}

#[test]
fn there_are_forty_kinds() {
    assert_eq!(ALL.iter().map(|(_, kinds)| kinds.len()).sum::<usize>(), 40);
}
