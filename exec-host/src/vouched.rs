//! What is asked for with `unsafe` only: none of these examples compiles without it (E0133). `UNSAFE.md` says what each relies on.
//! Only tests of documentation see this file.

/// ```compile_fail,E0133
/// # fn ask(process: &mut exec_host::Process) {
/// process.open("libm.so.6");
/// # }
/// ```
mod opening_a_library {}

/// ```compile_fail,E0133
/// # fn ask(process: &mut exec_host::Process) {
/// process.copy_relocations(true);
/// # }
/// ```
mod moving_variables {}

/// ```compile_fail,E0133
/// # fn ask(module: &exec_host::Module<Vec<u8>>) {
/// module.initialize();
/// # }
/// ```
mod constructors {}

/// ```compile_fail,E0133
/// # fn ask(module: &exec_host::Module<Vec<u8>>) {
/// module.get::<unsafe extern "C" fn()>("f").unwrap();
/// # }
/// ```
mod the_type_of_a_function {}

/// ```compile_fail,E0133
/// # fn ask(function: exec_host::TypedFunction<'_, unsafe extern "C" fn()>) {
/// function();
/// # }
/// ```
mod calling_a_function {}

/// ```compile_fail,E0133
/// # fn ask() {
/// exec_host::External::constant_at(16, 8);
/// # }
/// ```
mod an_address_to_be_read {}

/// ```compile_fail,E0133
/// # fn ask(old: &std::sync::Arc<exec_host::Module<Vec<u8>>>) {
/// old.replace("f", old);
/// # }
/// ```
mod replacing_a_function {}

/// ```compile_fail,E0133
/// # fn ask(old: &std::sync::Arc<exec_host::Module<Vec<u8>>>) {
/// old.redirect("f", 16, old.clone());
/// # }
/// ```
mod replacing_a_function_by_an_address {}

#[cfg(feature = "dynamic")]
/// ```compile_fail,E0133
/// # fn ask(function: &exec_host::dynamic::DynamicFunction<'_>) {
/// function.call(&[]);
/// # }
/// ```
mod calling_a_function_of_a_signature {}

#[cfg(feature = "device")]
/// ```compile_fail,E0133
/// # fn ask(device: &exec_host::device::HostDevice) {
/// device.open("libm.so.6");
/// # }
/// ```
mod a_library_for_a_device {}

#[cfg(feature = "device")]
/// ```compile_fail,E0133
/// # fn ask(image: &exec_host::device::HostImage) {
/// image.initialize();
/// # }
/// ```
mod constructors_of_an_image {}

#[cfg(feature = "device")]
/// ```compile_fail,E0133
/// # fn ask(program: &exec_host::device::HostProgram) {
/// program.submit(&[], &[], exec_core::Launch::grid(1));
/// # }
/// ```
mod calls_on_a_device {}
