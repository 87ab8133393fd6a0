//! What the command line asks to change, as patches of one cubin.

use anyhow::{Context as _, Result, bail};
use nvinfo::{
    Attribute, AttributeValue, Cubin, Function, Patch, attribute_name, attribute_number, eiattr,
};
use serde::Serialize;

use crate::number::number;

/// What to change. Sizes stay: there must be a place for each.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Changes {
    /// Sets the registers of a thread.
    #[arg(long, value_name = "NUMBER", requires = "function")]
    pub registers: Option<u32>,
    /// Sets the stack of a kernel with all it calls, in bytes.
    #[arg(long, value_name = "BYTES", requires = "function")]
    pub stack: Option<u32>,
    /// Sets the stack of the function itself, in bytes.
    #[arg(long, value_name = "BYTES", requires = "function")]
    pub frame: Option<u32>,
    /// Sets the most threads of a block, by dimension.
    #[arg(long, value_name = "X,Y,Z", value_parser = three, requires = "function")]
    pub max_threads: Option<[u32; 3]>,
    /// Sets the value of an attribute of the function, or of the module if no function is named.
    ///
    /// NAME is EIATTR_NUM_BARRIERS, NUM_BARRIERS or 0x4c; of several with one name NAME@1 is the second. As many numbers are
    /// given as the value has: REQNTID=64,1,1.
    #[arg(long, value_name = "NAME=NUMBER,..", value_parser = ValueChange::parse)]
    pub attribute: Vec<ValueChange>,
    /// Writes bytes over the function's code, from this offset on.
    #[arg(long, value_name = "OFFSET=HEX", value_parser = code, requires = "function")]
    pub code: Vec<(u64, Vec<u8>)>,
}

/// A new value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueChange {
    /// Number of the attribute.
    pub attribute: u8,
    /// Which of those with this number, from 0.
    pub position: usize,
    /// The numbers that the value consists of.
    pub numbers: Vec<u32>,
}

/// A change that was made.
#[derive(Debug, Serialize)]
pub struct Change {
    /// File offset.
    pub offset: u64,
    /// Number of bytes.
    pub size: usize,
    /// What was there, as hexadecimal digits in the file's order.
    pub was: String,
    /// What is there.
    pub is: String,
}

impl Changes {
    /// The numbers to change.
    ///
    /// # Errors
    /// If the cubin has no place for one, or it does not fit.
    pub(super) fn patches(
        &self,
        cubin: &Cubin<'_>,
        function: Option<&Function<'_>>,
    ) -> Result<Vec<Patch>> {
        let mut patches = Vec::new();
        for change in &self.attribute {
            patches.extend(change.patches(cubin, function)?);
        }
        let Some(function) = function else { return Ok(patches) };
        if let Some(count) = self.registers {
            patches.extend(function.patch_registers(count)?);
        }
        let sizes = [(eiattr::MIN_STACK_SIZE, self.stack), (eiattr::FRAME_SIZE, self.frame)];
        for (attribute, size) in sizes {
            if let Some(size) = size {
                patches.push(function.patch_symbol_attribute(attribute, size)?);
            }
        }
        if let Some(threads) = self.max_threads {
            patches.extend(function.patch_max_threads(threads)?);
        }
        Ok(patches)
    }

    /// The function's section with the bytes changed that are to be.
    ///
    /// # Errors
    /// If they leave the function's code.
    pub(super) fn code_of(&self, cubin: &Cubin<'_>, function: &Function<'_>) -> Result<Vec<u8>> {
        let mut code = cubin.file().section_data(function.section_header())?.to_vec();
        let start = if function.is_subroutine() { function.symbol().value } else { 0 };
        let size = function.code()?.len();
        for (offset, bytes) in &self.code {
            let at = usize::try_from(*offset)?;
            if at.checked_add(bytes.len()).is_none_or(|end| end > size) {
                bail!(
                    "{} bytes at {at:#x} are not inside the code of {size:#x} bytes",
                    bytes.len()
                );
            }
            let at = usize::try_from(start)?.checked_add(at);
            let place = at.and_then(|at| code.get_mut(at..)?.get_mut(..bytes.len()));
            place.context("the function leaves its section")?.copy_from_slice(bytes);
        }
        Ok(code)
    }
}

fn small(text: &str) -> Result<u32, String> {
    u32::try_from(number(text)?).map_err(|error| error.to_string())
}

fn three(text: &str) -> Result<[u32; 3], String> {
    let numbers: Vec<u32> = text.split(',').map(small).collect::<Result<_, _>>()?;
    numbers.try_into().map_err(|_| "not three numbers: X,Y,Z".to_owned())
}

impl ValueChange {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, numbers) = text.split_once('=').ok_or("not NAME=NUMBER")?;
        let (name, position) = match name.split_once('@') {
            Some((name, position)) => (name, small(position)? as usize),
            None => (name, 0),
        };
        let by_number = || small(name).ok().and_then(|number| u8::try_from(number).ok());
        let attribute =
            attribute_number(name).or_else(by_number).ok_or("no attribute of this name")?;
        let numbers = numbers.split(',').map(small).collect::<Result<_, _>>()?;
        Ok(Self { attribute, position, numbers })
    }

    /// The patches that make this change: in the function's own attributes, or in what the module's say of it.
    fn patches(&self, cubin: &Cubin<'_>, function: Option<&Function<'_>>) -> Result<Vec<Patch>> {
        let name = || {
            let number = || format!("attribute {:#x}", self.attribute);
            attribute_name(self.attribute).map_or_else(number, str::to_owned)
        };
        let ours = |row: &Attribute<'_>| row.number == self.attribute;
        if let Some(function) = function {
            let rows = function.attributes()?.collect::<Result<Vec<_>, _>>()?;
            if let Some(row) = rows.into_iter().filter(ours).nth(self.position) {
                return self.value(&row).with_context(name);
            }
            return match self.numbers[..] {
                [number] if self.position == 0 => {
                    Ok(vec![function.patch_symbol_attribute(self.attribute, number)?])
                }
                _ => bail!("the function has no such {}", name()),
            };
        }
        let rows = cubin.attributes()?.collect::<Result<Vec<_>, _>>()?;
        match rows.into_iter().filter(ours).nth(self.position) {
            Some(row) => self.value(&row).with_context(name),
            None => bail!("the module has no such {}", name()),
        }
    }

    fn value(&self, row: &Attribute<'_>) -> Result<Vec<Patch>> {
        let count = match row.value {
            AttributeValue::None(_) => 0,
            AttributeValue::Byte(..) | AttributeValue::Half(_) => 1,
            AttributeValue::Bytes(bytes) => bytes.len() / 4,
        };
        if count != self.numbers.len() {
            bail!("the value has {count} numbers, not {}", self.numbers.len());
        }
        let patch = |(index, &number)| match row.value {
            AttributeValue::Bytes(_) => row.patch_word(index, number),
            _ => row.patch(number),
        };
        Ok((0..).zip(&self.numbers).map(patch).collect::<Result<_, _>>()?)
    }
}

fn code(text: &str) -> Result<(u64, Vec<u8>), String> {
    let (offset, digits) = text.split_once('=').ok_or("not OFFSET=HEX")?;
    let byte = |pair: &[u8]| {
        let pair = core::str::from_utf8(pair).map_err(|error| error.to_string())?;
        u8::from_str_radix(pair, 16).map_err(|error| error.to_string())
    };
    let bytes = digits.as_bytes().chunks(2).map(byte).collect::<Result<Vec<_>, _>>()?;
    if digits.len() % 2 != 0 || bytes.is_empty() {
        return Err("not pairs of hexadecimal digits".to_owned());
    }
    Ok((number(offset)?, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        assert_eq!(three("1,0x20,3"), Ok([1, 32, 3]));
        assert!(three("1,2").is_err());
        let change = |attribute, position, numbers: &[u32]| {
            Ok(ValueChange { attribute, position, numbers: numbers.to_vec() })
        };
        let parse = ValueChange::parse;
        assert_eq!(parse("EIATTR_NUM_BARRIERS=2"), change(eiattr::NUM_BARRIERS, 0, &[2]));
        assert_eq!(
            parse("KPARAM_INFO@3=0,0x80001,9"),
            change(eiattr::KPARAM_INFO, 3, &[0, 0x80001, 9])
        );
        assert_eq!(parse("0x56=1"), change(0x56, 0, &[1]));
        assert!(parse("NONE_OF_THEM=2").is_err() && parse("256=2").is_err());
        assert_eq!(code("0x10=4d79"), Ok((16, vec![0x4d, 0x79])));
        assert!(code("16=4d7").is_err() && code("16=").is_err() && code("4d79").is_err());
    }
}
