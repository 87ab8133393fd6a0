//! What is known of a function's parameters, and whether arguments fit them.

use alloc::vec::Vec;

use crate::error::Error;
use crate::parameter::Parameter;
use crate::value::Scalar;

/// A function's parameters: first buffers, then values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    parameters: Vec<Parameter>,
}

impl Signature {
    /// Parameters in their order.
    #[must_use]
    pub fn new(parameters: impl IntoIterator<Item = Parameter>) -> Self {
        Self { parameters: parameters.into_iter().collect() }
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Whether a call with buffers of these sizes and these values fits.
    ///
    /// # Errors
    /// [`Error::ArgumentCount`]; [`Error::Argument`] for the first that does not fit.
    pub fn check(
        &self,
        buffers: impl ExactSizeIterator<Item = u64>,
        values: &[Scalar],
    ) -> Result<(), Error> {
        let found = buffers.len().saturating_add(values.len());
        if found != self.parameters.len() {
            return Err(Error::ArgumentCount { expected: self.parameters.len(), found });
        }
        let values = values.iter().map(|value| Parameter::Value(value.r#type()));
        let given = buffers.map(Parameter::Buffer).chain(values);
        for (index, (&expected, found)) in self.parameters.iter().zip(given).enumerate() {
            if !expected.takes(found) {
                return Err(Error::Argument { index, expected, found });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Type;
    use alloc::string::ToString as _;

    #[test]
    fn what_does_not_fit_is_told() {
        let signature = Signature::new([
            Parameter::Buffer(16),
            Parameter::Value(Type::F32),
            Parameter::Bytes(4),
        ]);
        let check = |buffers: &[u64], values: &[Scalar]| {
            signature.check(buffers.iter().copied(), values).map_err(|error| error.to_string())
        };
        let one = Scalar::F32(1.0);
        assert_eq!(check(&[16], &[one, Scalar::I32(1)]), Ok(()));
        assert_eq!(check(&[17], &[one, one]), Ok(()));
        assert_eq!(check(&[], &[one]), Err("1 arguments, expected 3".into()));
        assert_eq!(
            check(&[15], &[one, one]),
            Err("argument 0: a buffer of 15 bytes, expected a buffer of 16 bytes".into())
        );
        assert_eq!(
            check(&[16], &[Scalar::F64(1.0), one]),
            Err("argument 1: a value of type double, expected a value of type float".into())
        );
        assert_eq!(
            check(&[16], &[one, Scalar::U64(1)]),
            Err("argument 2: a value of type uint64_t, expected a value of 4 bytes".into())
        );
        assert_eq!(
            check(&[16, 16], &[one]),
            Err("argument 1: a buffer of 16 bytes, expected a value of type float".into())
        );
    }
}
