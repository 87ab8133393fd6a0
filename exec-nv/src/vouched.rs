//! What is asked for with `unsafe` only: none of these examples compiles without it (E0133). `UNSAFE.md` says what each relies on.
//! Only tests of documentation see this file.

/// ```compile_fail,E0133
/// # fn ask(path: &std::path::Path) {
/// exec_nv::Driver::open_at(path);
/// # }
/// ```
mod a_library_as_the_driver {}

/// ```compile_fail,E0133
/// # fn ask(program: &exec_nv::NvProgram, queue: &exec_nv::NvQueue, launch: &exec_nv::NvLaunch) {
/// program.launch(queue, &[], launch);
/// # }
/// ```
mod launching_a_kernel {}
