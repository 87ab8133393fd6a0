//! Arguments, and the block of memory that a kernel's parameters are.

use core::ffi::c_void;
use core::fmt;
use core::ptr;

use exec_core::{Allocator, Error as CoreError, Scalar, Signature, View};

use crate::kernel::ParameterSlot;
use crate::launch::LaunchError;

/// What a kernel is given in one place.
pub enum Argument<'a, A: Allocator> {
    /// The address of device memory, which is kept until the kernel is done.
    Buffer(&'a View<A>),
    /// A number.
    Value(Scalar),
    /// A structure.
    Bytes(&'a [u8]),
}

/// What a kernel of an [`NvDevice`](crate::NvDevice) is given in one place.
#[cfg(feature = "driver")]
pub type NvArgument<'a> = Argument<'a, exec_core::LruAllocator<crate::memory::NvAllocator>>;

impl<'a, A: Allocator> Argument<'a, A> {
    /// What a kernel of this signature is given by a call: the buffers, then the numbers.
    pub(crate) fn of_call(
        signature: Option<&Signature>,
        buffers: &[&'a View<A>],
        values: &[Scalar],
    ) -> Result<Vec<Self>, CoreError> {
        if let Some(signature) = signature {
            signature.check(buffers.iter().map(|view| view.size()), values)?;
        }
        let buffers = buffers.iter().map(|view| Self::Buffer(view));
        Ok(buffers.chain(values.iter().map(|&value| Self::Value(value))).collect())
    }
}

impl<A: Allocator> Clone for Argument<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Allocator> Copy for Argument<'_, A> {}

impl<A: Allocator> fmt::Debug for Argument<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer(view) => f.debug_tuple("Buffer").field(view).finish(),
            Self::Value(value) => f.debug_tuple("Value").field(value).finish(),
            Self::Bytes(bytes) => f.debug_tuple("Bytes").field(bytes).finish(),
        }
    }
}

impl<A: Allocator> Argument<'_, A> {
    /// Its size in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        match self {
            Self::Buffer(_) => 8,
            Self::Value(value) => value.r#type().size(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// Parameters in memory as the driver wants them: the bytes, and a pointer to each.
#[derive(Debug, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    pointers: Vec<*mut c_void>,
}

// SAFETY: the pointers are into its own bytes.
unsafe impl Send for Block {}

impl Block {
    /// Puts arguments where the parameters are, or, where nobody knows, one behind the other at multiples of their size.
    /// `address` says where a buffer is.
    pub(crate) fn fill<A: Allocator>(
        &mut self,
        parameters: Option<&[ParameterSlot]>,
        arguments: &[Argument<'_, A>],
        mut address: impl FnMut(&View<A>) -> Result<u64, exec_core::Error>,
    ) -> Result<(), crate::Error> {
        if let Some(parameters) = parameters {
            check(parameters, arguments)?;
        }
        self.bytes.clear();
        self.pointers.clear();
        let mut places = parameters.into_iter().flatten();
        for argument in arguments {
            let (number, size);
            let bytes = match argument {
                Argument::Buffer(view) => {
                    (number, size) = (address(view)?.to_ne_bytes(), 8);
                    number.get(..size).unwrap_or(&number)
                }
                Argument::Value(value) => {
                    (number, size) = (value.bytes(), value.r#type().size());
                    number.get(..size).unwrap_or(&number)
                }
                Argument::Bytes(bytes) => bytes,
            };
            let natural = bytes.len().next_power_of_two().min(16);
            let start = match places.next() {
                Some(place) => place.offset as usize,
                None => self.bytes.len().next_multiple_of(natural),
            };
            self.bytes.resize(start, 0);
            self.bytes.extend_from_slice(bytes);
            self.pointers.push(ptr::without_provenance_mut(start));
        }
        let base = self.bytes.as_mut_ptr();
        // offsets until now, as the bytes may have moved
        for pointer in &mut self.pointers {
            *pointer = base.wrapping_add(pointer.addr()).cast();
        }
        Ok(())
    }

    /// One pointer for each parameter, good until the block is filled again.
    #[cfg(feature = "driver")]
    pub(crate) fn pointers(&mut self) -> *mut *mut c_void {
        self.pointers.as_mut_ptr()
    }

    /// The parameters.
    #[cfg(any(all(test, feature = "driver"), feature = "raw"))]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Whether there are as many arguments as parameters, each of the same size.
fn check<A: Allocator>(
    parameters: &[ParameterSlot],
    arguments: &[Argument<'_, A>],
) -> Result<(), LaunchError> {
    if parameters.len() != arguments.len() {
        let (expected, found) = (parameters.len(), arguments.len());
        return Err(LaunchError::ArgumentCount { expected, found });
    }
    for (index, (parameter, argument)) in parameters.iter().zip(arguments).enumerate() {
        if parameter.size as usize != argument.size() {
            let (expected, found) = (parameter.size, argument.size());
            return Err(LaunchError::ArgumentSize { index, expected, found });
        }
    }
    Ok(())
}

#[cfg(all(test, feature = "driver"))]
mod tests {
    use super::{NvArgument as Argument, *};

    fn fill(
        parameters: Option<&[ParameterSlot]>,
        arguments: &[Argument<'_>],
    ) -> Result<Vec<u8>, String> {
        let mut block = Block::default();
        let fail = |_: &View<_>| Err(exec_core::Error::Freed);
        block.fill(parameters, arguments, fail).map_err(|error| error.to_string())?;
        assert_eq!(block.pointers.len(), arguments.len());
        Ok(block.bytes().to_vec())
    }

    #[test]
    fn parameters_are_where_the_image_says() {
        let at = |offset, size| ParameterSlot { offset, size };
        let (byte, word) = (Argument::Value(Scalar::U8(1)), Argument::Value(Scalar::U32(2)));
        let block = Argument::Bytes(&[3; 6]);
        let parameters = [at(0, 1), at(4, 4), at(16, 6)];
        let filled = fill(Some(&parameters), &[byte, word, block]).unwrap();
        assert_eq!(filled, [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 3, 3]);
        // nobody knows: as a C structure would have them
        assert_eq!(fill(None, &[byte, word]).unwrap(), [1, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(
            fill(Some(&parameters), &[byte, word]).unwrap_err(),
            "cannot launch: 2 arguments, expected 3"
        );
        assert_eq!(
            fill(Some(&parameters), &[byte, byte, block]).unwrap_err(),
            "cannot launch: argument 1 has 1 bytes, expected 4"
        );
    }
}
