//! What is asked for with `unsafe` only: none of these examples compiles without it (E0133; E0200 of traits). What has to live as long as
//! something else is not dropped before (E0505, E0597), and what is one owner's is not had twice (E0382). `UNSAFE.md` says what each
//! relies on. Only tests of documentation see this file.

/// ```compile_fail,E0133
/// # fn ask() {
/// exec_core::ExternalMemory::new(16, 8);
/// # }
/// ```
mod memory_of_somebody_else {}

/// ```compile_fail,E0133
/// # fn ask(program: &impl exec_core::Program) {
/// program.call(&[], &[], exec_core::Launch::grid(1));
/// # }
/// ```
mod calling_a_kernel {}

/// ```compile_fail,E0133
/// # fn ask<A: exec_core::Allocator>(allocator: &A, memory: &A::Memory) {
/// allocator.copy_in(memory, 0, &[0]);
/// # }
/// ```
mod copies_from_the_host {}

/// ```compile_fail,E0133
/// # fn ask<A: exec_core::Allocator>(allocator: &A, memory: &A::Memory) {
/// allocator.copy_out(memory, 0, &mut [0]);
/// # }
/// ```
mod copies_to_the_host {}

/// ```compile_fail,E0133
/// # fn ask<A: exec_core::Allocator>(allocator: &A, memory: &A::Memory) {
/// allocator.zero(memory, 8);
/// # }
/// ```
mod clearing {}

/// ```compile_fail,E0133
/// # fn ask<A: exec_core::Allocator>(allocator: &A, memory: &A::Memory) {
/// allocator.bytes(memory);
/// # }
/// ```
mod bytes_of_memory {}

/// ```compile_fail,E0133
/// # fn ask<A: exec_core::Allocator>(allocator: &A, memory: &A::Memory) {
/// allocator.bytes_mut(memory);
/// # }
/// ```
mod bytes_to_be_changed {}

/// ```compile_fail,E0382
/// # fn ask(memory: exec_core::ExternalMemory) {
/// let (one, other) = (memory, memory);
/// # }
/// ```
mod memory_is_one_buffers_alone {}

/// ```compile_fail,E0505
/// # fn ask<A: exec_core::Allocator>(buffer: &exec_core::Buffer<A>) {
/// let view = buffer.host().unwrap();
/// let bytes: &[u8] = &view;
/// drop(view);
/// bytes.first();
/// # }
/// ```
mod bytes_outlive_no_view {}
