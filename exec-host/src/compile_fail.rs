//! What is asked for with `unsafe` only: none of these examples compiles without it (E0133; E0200 of traits). What has to live as long as
//! something else is not dropped before (E0505, E0597), and what is one owner's is not had twice (E0382). `UNSAFE.md` says what each
//! relies on. Only tests of documentation see this file.

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
/// # fn ask(module: &std::sync::Arc<exec_host::Module<Vec<u8>>>) {
/// module.interpose();
/// # }
/// ```
mod functions_for_libraries {}

/// ```compile_fail,E0133
/// # fn ask(module: &exec_host::Module<Vec<u8>>, start: &exec_host::program::StartBlock) {
/// exec_host::program::run_main(module, start);
/// # }
/// ```
mod a_program_of_objects {}

/// ```compile_fail,E0133
/// # fn ask() {
/// exec_host::program::set_invocation_name(c"other");
/// # }
/// ```
mod the_name_of_the_process {}

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

/// ```compile_fail,E0133
/// # fn ask(process: &mut exec_host::Process) {
/// process.open_global("libm.so.6");
/// # }
/// ```
mod opening_a_library_for_all {}

/// ```compile_fail,E0133
/// # fn ask(module: &exec_host::Module<Vec<u8>>) {
/// module.initialize_as(0, std::ptr::null());
/// # }
/// ```
mod constructors_with_arguments {}

/// ```compile_fail,E0133
/// # fn ask(module: &exec_host::Module<Vec<u8>>) {
/// module.finish();
/// # }
/// ```
mod the_end_of_a_program {}

/// ```compile_fail,E0505
/// # fn ask(module: exec_host::Module<Vec<u8>>) {
/// let section = module.sections().next().unwrap();
/// drop(module);
/// section.bytes();
/// # }
/// ```
mod bytes_of_sections_do_not_outlive_their_module {}

/// ```compile_fail,E0597
/// # fn ask() {
/// let local = [0; 8];
/// exec_host::External::constant(&local);
/// # }
/// ```
mod constants_stay {}

/// ```compile_fail,E0133
/// # fn ask(bytes: Vec<u8>) {
/// exec_host::library::LibraryLoader::new().open(bytes);
/// # }
/// ```
mod a_library_of_bytes {}

/// ```compile_fail,E0133
/// # fn ask() {
/// exec_host::library::LibraryLoader::new().open_file("libplugin.so");
/// # }
/// ```
mod a_library_of_a_file {}

/// ```compile_fail,E0133
/// # fn ask(library: &exec_host::library::Library) {
/// library.get::<unsafe extern "C" fn()>("f").unwrap();
/// # }
/// ```
mod the_type_of_a_librarys_function {}

/// ```compile_fail,E0133
/// # fn ask(library: &exec_host::library::Library) {
/// library.get_version::<unsafe extern "C" fn()>("f", "V1").unwrap();
/// # }
/// ```
mod the_type_of_a_function_of_a_version {}

/// ```compile_fail,E0505
/// # fn ask(library: exec_host::library::Library) {
/// let function = unsafe { library.get::<unsafe extern "C" fn()>("f") };
/// drop(library);
/// unsafe { function.unwrap()() };
/// # }
/// ```
mod functions_do_not_outlive_their_library {}

/// ```compile_fail,E0133
/// # fn ask(program: exec_host::program::LoadedProgram) {
/// program.start(&[], &[]);
/// # }
/// ```
mod a_program_in_the_place_of_this_one {}

/// ```compile_fail,E0133
/// exec_host::program::set_executable("/bin/true");
/// ```
mod another_file_as_the_program {}

/// ```compile_fail,E0133
/// # fn ask(functions: &exec_host::LazyFunctions) {
/// functions.release();
/// # }
/// ```
mod letting_go_of_compiled_functions {}

/// ```compile_fail,E0200
/// #[derive(Debug)]
/// struct Mine;
/// impl exec_host::image::MemorySource for Mine {}
/// ```
mod memory_of_sources {}

/// ```compile_fail,E0200
/// struct Mine;
/// impl exec_host::image::ImageMemory for Mine {}
/// ```
mod memory_of_an_image {}

#[cfg(feature = "dynamic")]
/// ```compile_fail,E0505
/// # fn ask(module: exec_host::Module<Vec<u8>>) {
/// let function = module.dynamic("f", &[], exec_host::dynamic::Type::Void).unwrap();
/// drop(module);
/// unsafe { function.call(&[]) };
/// # }
/// ```
mod functions_of_a_signature_do_not_outlive_their_module {}
