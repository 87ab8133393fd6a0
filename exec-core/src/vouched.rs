//! What is asked for with `unsafe` only: none of these examples compiles without it (E0133). `UNSAFE.md` says what each relies on.
//! Only tests of documentation see this file.

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
