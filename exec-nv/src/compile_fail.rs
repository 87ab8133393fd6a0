//! What is asked for with `unsafe` only: none of these examples compiles without it (E0133; E0200 of traits). What has to live as long as
//! something else is not dropped before (E0505, E0597), and what is one owner's is not had twice (E0382). `UNSAFE.md` says what each
//! relies on. Only tests of documentation see this file.

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

/// ```compile_fail,E0133
/// # fn ask(graph: &mut exec_nv::NvGraph, program: &exec_nv::NvProgram, launch: &exec_nv::NvLaunch) {
/// graph.add_kernel(&[], program, &[], launch);
/// # }
/// ```
mod a_kernel_of_a_graph {}

/// ```compile_fail,E0133
/// # fn ask(graph: &exec_nv::NvGraphExec, queue: &exec_nv::NvQueue) {
/// graph.launch(queue);
/// # }
/// ```
mod launching_a_graph {}

/// ```compile_fail,E0133
/// # fn ask(graph: &mut exec_nv::NvGraphExec, node: exec_nv::NvGraphNode, program: &exec_nv::NvProgram, launch: &exec_nv::NvLaunch) {
/// graph.set_kernel(node, program, &[], launch);
/// # }
/// ```
mod another_kernel_of_a_graph {}

/// ```compile_fail,E0133
/// # fn ask(image: &exec_nv::NvImage) {
/// image.read_variable("name", &mut []);
/// # }
/// ```
mod what_a_variable_holds {}

/// ```compile_fail,E0133
/// # fn ask(image: &exec_nv::NvImage) {
/// image.write_variable("name", &[]);
/// # }
/// ```
mod changing_a_variable {}

/// ```compile_fail,E0133
/// # fn ask(path: &std::path::Path) {
/// exec_nv::Nvrtc::open_at(path);
/// # }
/// ```
mod a_library_as_the_compiler {}

#[cfg(feature = "raw")]
/// ```compile_fail,E0133
/// # fn ask<S: exec_nv::raw::System>(program: &exec_nv::raw::RawProgram<S>, queue: &exec_nv::raw::RawQueue<S>, launch: &exec_nv::NvLaunch) {
/// program.launch(queue, &[], launch);
/// # }
/// ```
mod launching_a_kernel_without_cuda {}

#[cfg(feature = "raw")]
/// ```compile_fail,E0133
/// # fn ask<S: exec_nv::raw::System>(queue: &exec_nv::raw::RawQueue<S>) {
/// queue.launches(&[]);
/// # }
/// ```
mod launching_several_kernels {}

#[cfg(feature = "raw")]
/// ```compile_fail,E0133
/// # fn ask<S: exec_nv::raw::System>(system: &S, file: &S::File, call: exec_nv::raw::call::Call) {
/// system.ioctl(file, call, &mut []);
/// # }
/// ```
mod calls_to_the_kernel_driver {}

#[cfg(feature = "raw")]
/// ```compile_fail,E0200
/// struct Mine;
/// impl exec_nv::raw::Mapping for Mine {}
/// ```
mod a_mapping_of_somebody_elses {}
