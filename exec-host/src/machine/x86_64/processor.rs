//! `__cpu_model` and `__cpu_features2` of libgcc and compiler-rt, whose numbers are part of the interface of both compilers.

use crate::c_library;
use crate::external::External;
use crate::processor::bits::bits;
use exec_core::sync::OnceLock;
use std::arch::is_x86_feature_detected as has;

/// `struct __processor_model`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Model {
    vendor: u32,
    r#type: u32,
    subtype: u32,
    features: u32,
}

/// Features are numbered from those of [`Model`] on.
type Features = [u32; 4];

pub(crate) fn find(name: &str) -> Option<External> {
    static FOUND: OnceLock<(Model, Features)> = OnceLock::new();
    let (model, features) = match name {
        "__cpu_indicator_init" => return Some(External::function(init as *const () as u64)),
        "__cpu_model" | "__cpu_features2" => FOUND.get_or_init(detect),
        _ => return None,
    };
    // SAFETY: what was found out is never changed.
    let constant =
        |address: usize, size: usize| unsafe { External::constant_at(address as u64, size as u64) };
    Some(if name == "__cpu_model" {
        constant((&raw const *model).expose_provenance(), size_of::<Model>())
    } else {
        let more = features.get(1..).unwrap_or_default();
        constant(more.as_ptr().expose_provenance(), size_of_val(more))
    })
}

/// There is nothing left to do.
extern "C" fn init() -> i32 {
    0
}

/// Vendor, type and subtype as the run-time library of the process found them, if it has one; features as they are.
fn detect() -> (Model, Features) {
    let features: Features = bits(&features());
    let [first, ..] = features;
    let theirs = library_model();
    let model = theirs.unwrap_or(Model { vendor: 0, r#type: 0, subtype: 0, features: 0 });
    (Model { features: model.features | first, ..model }, features)
}

/// What libgcc_s has found out: it has the model for programs that were linked to it long ago.
fn library_model() -> Option<Model> {
    let version = c"GCC_4.8.0";
    let symbol = |name: &core::ffi::CStr| {
        // SAFETY: only looks it up.
        unsafe { c_library::dlvsym(libc::RTLD_DEFAULT, name, version) }
    };
    let (init, model) = (symbol(c"__cpu_indicator_init"), symbol(c"__cpu_model"));
    if init.is_null() || model.is_null() {
        return None;
    }
    // SAFETY: both are what their names say in this version of the library; the function may be called more than once.
    unsafe {
        core::mem::transmute::<*mut core::ffi::c_void, extern "C" fn() -> i32>(init)();
        Some(model.cast::<Model>().read())
    }
}

/// `enum processor_features`, as far as it can be known without privileges.
#[rustfmt::skip]
fn features() -> [(u32, bool); 65] {
    let level2 = has!("cmpxchg16b") && has!("popcnt") && has!("ssse3") && has!("sse4.2");
    let level3 = level2 && has!("avx2") && has!("bmi1") && has!("bmi2") && has!("f16c")
        && has!("fma") && has!("lzcnt") && has!("movbe");
    let level4 = level3 && has!("avx512f") && has!("avx512bw") && has!("avx512cd")
        && has!("avx512dq") && has!("avx512vl");
    [
        (0, true), // cmov
        (1, has!("mmx")),
        (2, has!("popcnt")),
        (3, has!("sse")),
        (4, has!("sse2")),
        (5, has!("sse3")),
        (6, has!("ssse3")),
        (7, has!("sse4.1")),
        (8, has!("sse4.2")),
        (9, has!("avx")),
        (10, has!("avx2")),
        (11, has!("sse4a")),
        (14, has!("fma")),
        (15, has!("avx512f")),
        (16, has!("bmi1")),
        (17, has!("bmi2")),
        (18, has!("aes")),
        (19, has!("pclmulqdq")),
        (20, has!("avx512vl")),
        (21, has!("avx512bw")),
        (22, has!("avx512dq")),
        (23, has!("avx512cd")),
        (26, has!("avx512vbmi")),
        (27, has!("avx512ifma")),
        (30, has!("avx512vpopcntdq")),
        (31, has!("avx512vbmi2")),
        (32, has!("gfni")),
        (33, has!("vpclmulqdq")),
        (34, has!("avx512vnni")),
        (35, has!("avx512bitalg")),
        (36, has!("avx512bf16")),
        (37, has!("avx512vp2intersect")),
        (40, has!("adx")),
        (41, has!("lzcnt") && has!("popcnt")), // abm
        (46, has!("cmpxchg16b")),
        (47, true), // cmpxchg8b
        (49, has!("f16c")),
        (51, has!("fxsr")),
        (55, true), // lm
        (57, has!("lzcnt")),
        (58, has!("movbe")),
        (62, has!("xsave")), // osxsave
        (69, has!("rdrand")),
        (70, has!("rdseed")),
        (71, has!("rtm")),
        (74, has!("sha")),
        (76, has!("tbm")),
        (78, has!("vaes")),
        (81, has!("xsave")),
        (82, has!("xsavec")),
        (83, has!("xsaveopt")),
        (84, has!("xsaves")),
        (90, has!("kl")),
        (92, has!("widekl")),
        (93, has!("avxvnni")),
        (94, has!("avx512fp16")),
        (95, true), // x86-64
        (96, level2),
        (97, level3),
        (98, level4),
        (99, has!("avxifma")),
        (100, has!("avxvnniint8")),
        (101, has!("avxneconvert")),
        (111, has!("avxvnniint16")),
        (112, has!("sha512")),
    ]
}
