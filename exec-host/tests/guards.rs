//! The guard beside others: signals that are sent, handlers before and after it, stacks of the program's, forks, guards in guards. What
//! changes a process for good, or ends it, has one of its own.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use core::ffi::{c_int, c_void};
use core::ptr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use exec_core::{Device as _, Error, Launch, Program as _, Scalar, Signal, Spec};
use exec_host::device::{HostDevice, HostImage, HostOptions};
use system::compile;

const SOURCE: &str = r#"
    int fork(void);
    int waitpid(int, int *, int);
    void null(int *to) { *(volatile int *)8 = 1; }
    void good(int *to) { to[0] = 42; }
    void divide(int *to, int by) { to[0] = 7 / by; }
    void calls(int *to, void (*back)(int *)) { back(to); *(volatile int *)16 = 1; }
    void forks(int *to) {
        int id = fork();
        if (id == 0) *(volatile int *)8 = 1;
        waitpid(id, to, 0);
    }
    static __attribute__((noinline)) int deep(volatile char *above, int depth) {
        volatile char here[4096]; here[0] = above[0] + depth;
        return deep(here, depth + 1) + here[0];
    }
    void overflow(int *to) { to[0] = deep((char *)to, 0); }
#ifdef __x86_64__
    static void set(unsigned long flags) {
        __asm__ volatile("sub $128, %%rsp\n pushfq\n or %0, (%%rsp)\n popfq\n add $128, %%rsp" :: "r"(flags) : "memory", "cc");
    }
    void aligned(int *to) { set(1 << 18); *(volatile int *)((char *)to + 1) = 1; }
    void leaves(int *to) { set(1 << 18 | 1 << 10); }
    void steps(int *to) { set(1 << 8); to[0] = 1; to[0] = 2; }
#endif
"#;

fn device() -> (HostDevice, Arc<HostImage>) {
    let object = compile("gcc", &["-O2", "-fPIC", "-fno-optimize-sibling-calls"], SOURCE).unwrap();
    let device = HostDevice::new(HostOptions { guard: true, ..HostOptions::default() }).unwrap();
    let image = device.load(&object.bytes).unwrap();
    (device, image)
}

/// Calls a function on this thread, and takes its error off the device: the signal and the address, or the first number it wrote.
fn call(
    (device, image): &(HostDevice, Arc<HostImage>),
    name: &str,
    values: &[Scalar],
) -> Result<i32, (Signal, u64)> {
    let program = device.program(image, name, None).unwrap();
    let buffer = device.buffer(4096, Spec::new().zeroed()).unwrap();
    // SAFETY: what it does, it does to itself.
    let outcome = unsafe { program.call(&[&buffer], values, Launch::ONCE.waiting()) };
    device.reset();
    match outcome {
        Ok(_) => Ok(i32::from_ne_bytes(*buffer.host().unwrap().first_chunk().unwrap())),
        Err(Error::Fault { signal, address, .. }) => Err((signal, address)),
        Err(error) => panic!("{error}"),
    }
}

/// Whether crashes are caught.
fn assert_works(device: &(HostDevice, Arc<HostImage>)) {
    assert_eq!(call(device, "null", &[]), Err((Signal::Access, 8)));
    assert_eq!(call(device, "good", &[]), Ok(42));
}

/// Whether there is a compiler.
fn can_run(test: &str) -> bool {
    let is_there = compile("gcc", &[], "").is_some();
    if !is_there {
        println!("skipped: {test}: needs gcc");
    }
    is_there
}

fn action(handler: usize) -> libc::sigaction {
    // SAFETY: zeros are no flags, no signals masked, no restorer.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    action
}

/// Sets what is done with a signal, and says what was.
fn set(signal: c_int, handler: usize) -> libc::sigaction {
    let (action, mut before) = (action(handler), action(libc::SIG_DFL));
    // SAFETY: handlers here take what they are given.
    assert_eq!(unsafe { libc::sigaction(signal, &raw const action, &raw mut before) }, 0);
    before
}

fn send(signal: c_int) {
    // SAFETY: to this thread.
    unsafe { libc::raise(signal) };
}

/// A page that may be read once somebody has made it so.
static PAGE: AtomicUsize = AtomicUsize::new(0);
static SEEN: AtomicUsize = AtomicUsize::new(0);
static BEFORE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn opens(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    SEEN.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the kernel describes a fault.
    let address = unsafe { (*info).si_addr().addr() };
    let page = PAGE.load(Ordering::Relaxed);
    if address == page {
        // SAFETY: the page is ours.
        unsafe { libc::mprotect(ptr::with_exposed_provenance_mut(page), 4096, libc::PROT_READ) };
    }
}

/// Passes a signal on to whoever was there before.
extern "C" fn passes(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    SEEN.fetch_add(1, Ordering::Relaxed);
    type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    let code = ptr::with_exposed_provenance::<()>(BEFORE.load(Ordering::Relaxed));
    // SAFETY: a handler was there.
    unsafe { core::mem::transmute::<*const (), Handler>(code)(signal, info, context) };
}

fn crash() {
    // SAFETY: this is not sound: it is to crash.
    unsafe { ptr::without_provenance_mut::<u8>(8).write_volatile(1) };
}

/// What is done in a process of its own, and the signal that it ends by, 0 if none.
const CASES: &[(&str, fn(), i32)] = &[
    ("sent to a handler that takes itself away", sent, 0),
    ("sent twice to a handler that takes itself away", sent_twice, libc::SIGSEGV),
    ("sent and ignored", sent_ignored, 0),
    ("sent to nobody", || (device(), send(libc::SIGFPE)).1, libc::SIGFPE),
    ("a fault that is ignored", fault_ignored, libc::SIGSEGV),
    ("a break point outside", break_point, libc::SIGTRAP),
    ("a handler before", handler_before, 0),
    ("a handler after", handler_after, libc::SIGSEGV),
    ("a handler after that is put behind", handler_put_behind, libc::SIGSEGV),
];

fn sent() {
    let device = device();
    send(libc::SIGSEGV);
    assert_works(&device);
}

fn sent_twice() {
    sent();
    send(libc::SIGSEGV);
}

fn sent_ignored() {
    set(libc::SIGFPE, libc::SIG_IGN);
    let device = device();
    send(libc::SIGFPE);
    if cfg!(target_arch = "x86_64") {
        let found = call(&device, "divide", &[Scalar::I32(0)]);
        assert!(matches!(found, Err((Signal::Arithmetic, _))), "{found:?}");
    }
    send(libc::SIGFPE);
    assert_works(&device);
}

fn fault_ignored() {
    set(libc::SIGSEGV, libc::SIG_IGN);
    assert_works(&device());
    crash();
}

fn break_point() {
    let device = device();
    assert_works(&device);
    // SAFETY: this is not sound: it is to end the process.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("int3");
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("brk #0");
        #[cfg(target_arch = "riscv64")]
        core::arch::asm!("ebreak");
        #[cfg(target_arch = "arm")]
        core::arch::asm!("bkpt #0");
    }
    println!("went on");
}

fn handler_before() {
    // SAFETY: touches no existing mapping.
    let page = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(ptr::null_mut(), 4096, libc::PROT_NONE, flags, -1, 0)
    };
    PAGE.store(page.expose_provenance(), Ordering::Relaxed);
    set(libc::SIGSEGV, opens as *const () as usize);
    let device = device();
    assert_works(&device);
    assert_eq!(SEEN.load(Ordering::Relaxed), 0, "crashes in guarded calls are ours");
    // SAFETY: the handler makes it readable.
    assert_eq!(unsafe { page.cast::<u8>().read_volatile() }, 0);
    send(libc::SIGSEGV);
    assert_eq!(SEEN.load(Ordering::Relaxed), 2);
    assert_works(&device);
}

fn handler_after() {
    let device = device();
    let before = set(libc::SIGSEGV, passes as *const () as usize);
    BEFORE.store(before.sa_sigaction, Ordering::Relaxed);
    assert_works(&device);
    assert_eq!(SEEN.load(Ordering::Relaxed), 1);
    crash();
}

fn handler_put_behind() {
    let first = device();
    let before = set(libc::SIGSEGV, passes as *const () as usize);
    BEFORE.store(before.sa_sigaction, Ordering::Relaxed);
    let second = device();
    assert_works(&first);
    assert_works(&second);
    assert_eq!(SEEN.load(Ordering::Relaxed), 0, "ours is in front again");
    // by way of the other handler, and ours once more, to that of the standard library
    send(libc::SIGSEGV);
    assert_eq!(SEEN.load(Ordering::Relaxed), 1);
    assert_works(&first);
    crash();
}

const CHILD: &str = "HOIST_TEST_GUARD";

#[test]
#[ignore = "needs to be started by another test"]
fn one_case() {
    let Ok(number) = std::env::var(CHILD) else { return };
    let (_, case, _) = CASES.get(number.parse::<usize>().unwrap()).unwrap();
    case();
}

#[test]
fn signals_that_are_not_ours() {
    if !can_run("signals_that_are_not_ours") {
        return;
    }
    for (number, (name, _, signal)) in CASES.iter().enumerate() {
        let mut command = system::itself();
        command.args(["--exact", "one_case", "--ignored", "--nocapture"]);
        let output = command.env(CHILD, number.to_string()).output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        let is_right = match signal {
            0 => output.status.success(),
            _ => system::is_ended_by(*signal, output.status),
        };
        assert!(is_right, "{name}: {} {text}", output.status);
        assert!(!text.contains("went on"), "{name}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn flags_stay_behind() {
    if !can_run("flags_stay_behind") {
        return;
    }
    let device = device();
    let odd = || {
        let bytes = [1u8; 32];
        // SAFETY: inside of the bytes.
        unsafe { bytes.as_ptr().wrapping_add(1).cast::<u64>().read_unaligned() }
    };
    for _ in 0..3 {
        // processors that run this may be told not to check
        let found = call(&device, "aligned", &[]);
        assert!(matches!(found, Err((Signal::Bus, _)) | Ok(_)), "{found:?}");
        assert_eq!(odd(), 0x0101_0101_0101_0101);
        assert_eq!(call(&device, "leaves", &[]), Ok(0));
        assert_eq!(odd(), 0x0101_0101_0101_0101);
        let found = call(&device, "steps", &[]);
        assert!(matches!(found, Err((Signal::Instruction, _))), "{found:?}");
        assert_works(&device);
    }
}

extern "C" fn inner(_: *mut i32) {
    let device = device();
    assert_works(&device);
}

#[test]
fn guards_in_guards() {
    if !can_run("guards_in_guards") {
        return;
    }
    let device = device();
    let back = (inner as *const ()).expose_provenance();
    let back = match cfg!(target_pointer_width = "64") {
        true => Scalar::U64(back as u64),
        false => Scalar::U32(back as u32),
    };
    // the inner one has caught its crash, and the outer one still catches its own
    assert_eq!(call(&device, "calls", &[back]), Err((Signal::Access, 16)));
    assert_works(&device);
}

/// A child that is forked in a guarded call and crashes is gone; it does not come back as a second program.
#[test]
fn forks_in_guarded_calls() {
    if !can_run("forks_in_guarded_calls") {
        return;
    }
    let device = device();
    let status = call(&device, "forks", &[]).unwrap();
    assert!(system::is_ended_by(libc::SIGSEGV, ExitStatus::from_raw(status)), "{status:#x}");
    assert_works(&device);
    // SAFETY: the child calls guarded functions on this thread, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let (device, image) = &device;
        let program = device.program(image, "null", None).unwrap();
        let buffer = device.buffer(64, Spec::new()).unwrap();
        // SAFETY: as above.
        let outcome = unsafe { program.call(&[&buffer], &[], Launch::ONCE.waiting()) };
        let is_caught = matches!(outcome, Err(Error::Fault { address: 8, .. }));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if is_caught { 7 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the status is ours.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), 7, "{status:#x}: a child's own calls are guarded");
}

fn stack_of_signals(start: *mut c_void, size: usize, flags: c_int) -> libc::stack_t {
    let wanted = libc::stack_t { ss_sp: start, ss_flags: flags, ss_size: size };
    let mut before = wanted;
    // SAFETY: the memory lives as long as the test.
    assert_eq!(unsafe { libc::sigaltstack(&raw const wanted, &raw mut before) }, 0);
    before
}

/// Looks, when its thread ends, which stack for signals that has.
struct AtTheEnd(std::sync::mpsc::Sender<usize>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        // SAFETY: zeros are a description.
        let mut current: libc::stack_t = unsafe { core::mem::zeroed() };
        // SAFETY: asks only.
        unsafe { libc::sigaltstack(ptr::null(), &raw mut current) };
        let is_off = current.ss_flags & libc::SS_DISABLE != 0;
        self.0.send(if is_off { 0 } else { current.ss_sp.addr() }).unwrap();
    }
}

/// Runs something in a thread of the C library: those of the standard library have a stack for signals, and take whichever there is away.
fn run_in_thread(run: Box<dyn FnOnce() + Send>) {
    extern "C" fn start(run: *mut c_void) -> *mut c_void {
        // SAFETY: it is what was given below.
        let run = unsafe { Box::from_raw(run.cast::<Box<dyn FnOnce() + Send>>()) };
        run();
        ptr::null_mut()
    }
    let run = Box::into_raw(Box::new(run)).cast();
    let mut thread = 0;
    // SAFETY: the function takes what it is given.
    assert_eq!(unsafe { libc::pthread_create(&raw mut thread, ptr::null(), start, run) }, 0);
    // SAFETY: it was just made.
    assert_eq!(unsafe { libc::pthread_join(thread, ptr::null_mut()) }, 0);
}

std::thread_local! {
    static AT_THE_END: std::cell::RefCell<Option<AtTheEnd>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn stacks_of_the_program() {
    if !can_run("stacks_of_the_program") {
        return;
    }
    const LARGE: usize = 1 << 16;
    // none; one that is too small; one that is large enough; one that comes later
    for (size, later) in [(0, false), (libc::MINSIGSTKSZ, false), (LARGE, false), (0, true)] {
        let (tell, told) = std::sync::mpsc::channel();
        let memory: &'static mut [u8] = Box::leak(vec![0; LARGE].into_boxed_slice());
        let start = memory.as_mut_ptr().expose_provenance();
        run_in_thread(Box::new(move || {
            AT_THE_END.with(|end| *end.borrow_mut() = Some(AtTheEnd(tell)));
            let memory = ptr::with_exposed_provenance_mut::<c_void>(start);
            let flags = if size == 0 { libc::SS_DISABLE } else { 0 };
            stack_of_signals(memory, size, flags);
            let device = device();
            assert!(matches!(call(&device, "overflow", &[]), Err((Signal::Access, _))));
            if later {
                stack_of_signals(memory, LARGE, 0);
                assert!(matches!(call(&device, "overflow", &[]), Err((Signal::Access, _))));
            }
        }));
        let expected = if size == 0 && !later { 0 } else { start };
        assert_eq!(
            told.recv().unwrap(),
            expected,
            "{size:#x} {later}: as it was, or as the program left it"
        );
    }
}
