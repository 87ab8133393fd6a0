//! Launch blocks as a GPU reads them, bit by bit: nothing of what wrote them. What no launch of this crate says is refused by the name of its field.

use crate::raw::qmd::{Field, Version};

/// A block of a version.
pub(in crate::raw) struct Block<'b> {
    pub(in crate::raw) bytes: &'b [u8],
    pub(in crate::raw) version: &'static Version,
}

/// What a block says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::raw) struct Reading {
    pub(in crate::raw) program: u64,
    pub(in crate::raw) grid: [u64; 3],
    pub(in crate::raw) block: [u64; 3],
    pub(in crate::raw) cluster: Option<[u64; 3]>,
    pub(in crate::raw) shared: u64,
    /// What an SM is to be set to: least, most, wanted.
    pub(in crate::raw) configuration: [u64; 3],
    pub(in crate::raw) local: u64,
    pub(in crate::raw) registers: u64,
    pub(in crate::raw) barriers: u64,
    /// Constant banks: number, address, size.
    pub(in crate::raw) banks: Vec<(u32, u64, u64)>,
    /// The block that comes after.
    pub(in crate::raw) next: Option<u64>,
}

/// What all launches say alike.
#[rustfmt::skip]
const FIXED: &[(Field, u64)] = &[
    (Field::MinorVersion, 0),            (Field::GroupId, 0),                     (Field::SmGlobalCaching, 1),
    (Field::ApiVisibleCallLimit, 1),     (Field::SamplerIndex, 0),                (Field::SharedAllocation, 0),
    (Field::LocalMemoryLow, 0),          (Field::SassVersion, 0),                 (Field::InvalidateTextureHeaders, 0),
    (Field::InvalidateTextureSamplers, 0), (Field::InvalidateTextureData, 0),     (Field::InvalidateShaderData, 1),
    (Field::InvalidateInstructions, 1),  (Field::InvalidateConstants, 1),         (Field::MembarType, 1),
    (Field::ReleaseEnable, 0),           (Field::ReleaseStructureSize, 0),        (Field::ReleaseMembar, 0),
    (Field::ReleasePayload64, 0),        (Field::ReleaseAddressLower, 0),         (Field::ReleaseAddressUpper, 0),
    (Field::ReleasePayloadLower, 0),     (Field::ReleasePayloadUpper, 0),         (Field::ProgramPrefetchSize, 0),
    (Field::ProgramPrefetchAddressLower, 0), (Field::ProgramPrefetchAddressUpper, 0),
];

/// What a bank that is not there, a next block that is not there, and a cluster that is none have: zeros.
const BANK: [Field; 4] = [
    Field::ConstantBankInvalidate,
    Field::ConstantBankAddressLower,
    Field::ConstantBankAddressUpper,
    Field::ConstantBankSize,
];
const NEXT: [Field; 3] =
    [Field::DependentAction, Field::DependentPrefetch, Field::DependentPointer];
const CLUSTER: [Field; 3] = [Field::ClusterWidth, Field::ClusterHeight, Field::ClusterDepth];

impl Block<'_> {
    fn bit(&self, bit: u32) -> u64 {
        u64::from(self.bytes[bit as usize / 8] >> (bit % 8) & 1)
    }

    fn get(&self, field: Field, index: u32) -> u64 {
        let bits = self.version.bits(field, index).unwrap();
        (bits.low..=bits.high).map(|bit| self.bit(bit) << (bit - bits.low)).sum()
    }

    fn wide(&self, low: Field, high: Field, index: u32) -> u64 {
        self.get(high, index) << 32 | self.get(low, index)
    }

    fn expect(&self, field: Field, index: u32, expected: u64) -> Result<(), String> {
        match self.get(field, index) {
            found if found == expected => Ok(()),
            found => {
                Err(format!("{field:?}[{index}] is {found:#x}, where launches say {expected:#x}"))
            }
        }
    }

    /// Bits that are no field's are zero, and fields are what they are in every launch.
    fn check(&self) -> Result<(), String> {
        let mut is_known = vec![false; self.version.size * 8];
        for row in self.version.rows {
            for index in row.first..row.first + row.count {
                let bits = self.version.bits(row.field, index).unwrap();
                is_known[bits.low as usize..=bits.high as usize].fill(true);
                if let Some((_, expected)) = FIXED.iter().find(|(field, _)| *field == row.field) {
                    self.expect(row.field, index, *expected)?;
                }
            }
        }
        let unknown = (0..).zip(is_known).find(|&(bit, known)| !known && self.bit(bit) == 1);
        unknown.map_or(Ok(()), |(bit, _)| Err(format!("bit {bit} is set, which is no field's")))
    }

    /// All of it.
    pub(in crate::raw) fn read(&self) -> Result<Reading, String> {
        let version = self.version;
        self.expect(Field::MajorVersion, 0, version.major)?;
        self.check()?;
        let has_clusters = version.bits(Field::Type, 0).is_some();
        let is_of_clusters = match has_clusters.then(|| self.get(Field::Type, 0)) {
            None | Some(2) => false,
            Some(3) => true,
            Some(kind) => return Err(format!("Type[0] is {kind}, which is no kind of grid")),
        };
        let mut banks = Vec::new();
        for index in 0..8 {
            if self.get(Field::ConstantBankValid, index) == 0 {
                BANK.iter().try_for_each(|&field| self.expect(field, index, 0))?;
                continue;
            }
            self.expect(Field::ConstantBankInvalidate, index, 1)?;
            let [_, low, high, _] = BANK;
            let address = self.wide(low, high, index) << version.constant_shift;
            banks.push((index, address, self.get(Field::ConstantBankSize, index) * 16));
        }
        let next = self.get(Field::DependentEnable, 0) == 1;
        if next {
            self.expect(Field::DependentAction, 0, 1)?;
            self.expect(Field::DependentPrefetch, 0, 1)?;
        } else {
            NEXT.iter().try_for_each(|&field| self.expect(field, 0, 0))?;
        }
        if version.bits(Field::DependentEnable, 1).is_some() {
            self.expect(Field::DependentEnable, 1, 0)?;
            NEXT.iter().try_for_each(|&field| self.expect(field, 1, 0))?;
        }
        if has_clusters && !is_of_clusters {
            CLUSTER.iter().try_for_each(|&field| self.expect(field, 0, 0))?;
        }
        let three = |fields: [Field; 3]| fields.map(|field| self.get(field, 0));
        let program = self.wide(Field::ProgramAddressLower, Field::ProgramAddressUpper, 0);
        Ok(Reading {
            program: program << version.program_shift,
            grid: three([Field::GridWidth, Field::GridHeight, Field::GridDepth]),
            block: three([Field::BlockWidth, Field::BlockHeight, Field::BlockDepth]),
            cluster: is_of_clusters.then(|| three(CLUSTER)),
            shared: self.get(Field::SharedMemorySize, 0) << version.shared_shift,
            configuration: three([
                Field::MinSmConfigSharedMemory,
                Field::MaxSmConfigSharedMemory,
                Field::TargetSmConfigSharedMemory,
            ]),
            local: self.get(Field::LocalMemoryHigh, 0) << version.local_shift,
            registers: self.get(Field::RegisterCount, 0),
            barriers: self.get(Field::BarrierCount, 0),
            banks,
            next: next.then(|| self.get(Field::DependentPointer, 0) << 8),
        })
    }
}
