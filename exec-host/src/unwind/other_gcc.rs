//! What the `libgcc_eh.a` of a compiler that was built for glibc (Debian's `musl-gcc`) wants of the C library, for programs that are linked to musl.

use super::asked::find_object;
use core::ffi::c_void;
use libc::{pthread_key_t, pthread_mutex_t};

/// The instruction that goes on elsewhere.
macro_rules! jump {
    () => {
        cfg_select! {
            target_arch = "x86_64" => { "jmp" }
            target_arch = "aarch64" => { "b" }
            _ => { "tail" }
        }
    };
}

// weak: a C library that has it comes first
core::arch::global_asm!(
    ".pushsection .text._dl_find_object, \"ax\", %progbits",
    ".balign 16",
    ".weak _dl_find_object",
    ".hidden _dl_find_object",
    ".type _dl_find_object, %function",
    "_dl_find_object:",
    concat!(jump!(), " {ours}"),
    ".size _dl_find_object, . - _dl_find_object",
    ".popsection",
    ours = sym find_object,
);

/// Functions that it refers to weakly, and calls if one of them is there: a linker does not look for what is weak.
#[used]
static CALLED: (Mutex, Mutex, Once, Key, Get, Set) = (
    libc::pthread_mutex_lock,
    libc::pthread_mutex_unlock,
    pthread_once,
    libc::pthread_key_create,
    libc::pthread_getspecific,
    libc::pthread_setspecific,
);

type Mutex = unsafe extern "C" fn(*mut pthread_mutex_t) -> i32;
type Once = unsafe extern "C" fn(*mut i32, extern "C" fn()) -> i32;
type Key =
    unsafe extern "C" fn(*mut pthread_key_t, Option<unsafe extern "C" fn(*mut c_void)>) -> i32;
type Get = unsafe extern "C" fn(pthread_key_t) -> *mut c_void;
type Set = unsafe extern "C" fn(pthread_key_t, *const c_void) -> i32;

unsafe extern "C" {
    fn pthread_once(control: *mut i32, routine: extern "C" fn()) -> i32;
}
