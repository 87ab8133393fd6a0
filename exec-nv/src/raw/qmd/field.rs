//! Names of fields, and tables of where a version has them.

/// Bytes of the largest block.
pub const MAX_SIZE: usize = 384;

/// What a block can say. One name for all versions; `clcbc0qmd.h` and its siblings hold NVIDIA's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Field {
    /// Layout of the block: 3, 4 or 5.
    MajorVersion,
    /// Its second number: 0.
    MinorVersion,
    /// 2: a grid of thread blocks; 3: a grid of clusters.
    Type,
    /// Which of the scheduler's groups it is in.
    GroupId,
    /// Whether global memory is kept in the SM's first-level cache.
    SmGlobalCaching,
    /// 1: nesting of calls is not checked.
    ApiVisibleCallLimit,
    /// How samplers are found.
    SamplerIndex,
    /// The kernel's first instruction, low part.
    ProgramAddressLower,
    /// The kernel's first instruction, high part.
    ProgramAddressUpper,
    /// Registers of a thread.
    RegisterCount,
    /// Named barriers of a block.
    BarrierCount,
    /// Shared memory of a block.
    SharedMemorySize,
    /// Smallest shared memory that an SM must be set to, as (KiB / 4) + 1.
    MinSmConfigSharedMemory,
    /// Largest one that it may be set to.
    MaxSmConfigSharedMemory,
    /// What it should be set to.
    TargetSmConfigSharedMemory,
    /// Whether shared memory is allocated for the block.
    SharedAllocation,
    /// Local memory of a thread, for the low window.
    LocalMemoryLow,
    /// Local memory of a thread, for the high window.
    LocalMemoryHigh,
    /// Architecture of the instructions; 0 is taken too.
    SassVersion,
    /// Blocks in x.
    GridWidth,
    /// Blocks in y.
    GridHeight,
    /// Blocks in z.
    GridDepth,
    /// Threads of a block in x.
    BlockWidth,
    /// Threads of a block in y.
    BlockHeight,
    /// Threads of a block in z.
    BlockDepth,
    /// Whether constant bank `i` is there.
    ConstantBankValid,
    /// Whether what is cached of bank `i` is thrown away first.
    ConstantBankInvalidate,
    /// Address of bank `i`, low part.
    ConstantBankAddressLower,
    /// Address of bank `i`, high part.
    ConstantBankAddressUpper,
    /// Size of bank `i`, in units of 16 bytes.
    ConstantBankSize,
    /// Throw away cached texture headers first.
    InvalidateTextureHeaders,
    /// Throw away cached samplers first.
    InvalidateTextureSamplers,
    /// Throw away cached texels first.
    InvalidateTextureData,
    /// Throw away cached data first.
    InvalidateShaderData,
    /// Throw away cached instructions first: after code was written.
    InvalidateInstructions,
    /// Throw away cached constants first.
    InvalidateConstants,
    /// Barrier when the grid is done: 0 none, 1 system, 3 device.
    MembarType,
    /// Whether semaphore `i` is released when the grid is done.
    ReleaseEnable,
    /// What is written: 0 four words with a time stamp, 1 one word, 2 two words.
    ReleaseStructureSize,
    /// 1: everything is visible to the system before.
    ReleaseMembar,
    /// Whether the payload has 64 bits.
    ReleasePayload64,
    /// Address of semaphore `i`, low part.
    ReleaseAddressLower,
    /// Address of semaphore `i`, high part.
    ReleaseAddressUpper,
    /// What is written, low part.
    ReleasePayloadLower,
    /// What is written, high part.
    ReleasePayloadUpper,
    /// Whether another block is scheduled when this one is done.
    DependentEnable,
    /// How: 1 schedule; 3 invalidate, copy, schedule; 4 count down.
    DependentAction,
    /// Whether it is fetched before.
    DependentPrefetch,
    /// Its address without the low 8 bits.
    DependentPointer,
    /// Code to fetch ahead, in units of 256 bytes.
    ProgramPrefetchSize,
    /// Where that code is, without the low 8 bits, low part.
    ProgramPrefetchAddressLower,
    /// Where that code is, high part.
    ProgramPrefetchAddressUpper,
    /// Blocks of a cluster in x; 0 for a plain grid.
    ClusterWidth,
    /// Blocks of a cluster in y.
    ClusterHeight,
    /// Blocks of a cluster in z.
    ClusterDepth,
}

/// Bits of a block, counted from its first byte's lowest, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The highest.
    pub high: u32,
    /// The lowest.
    pub low: u32,
}

impl Bits {
    /// How many.
    #[must_use]
    pub const fn width(self) -> u32 {
        self.high - self.low + 1
    }
}

/// Where a version has a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which.
    pub field: Field,
    /// Its bits; those of the first, if there are several.
    pub bits: Bits,
    /// Index of the first.
    pub first: u32,
    /// How many there are.
    pub count: u32,
    /// How many bits after one the next begins.
    pub stride: u32,
}

/// A field that is there once.
pub(super) const fn row(field: Field, high: u32, low: u32) -> Row {
    rows(field, high, low, 1, 0)
}

/// A field that is there `count` times, each `stride` bits after the one before.
pub(super) const fn rows(field: Field, high: u32, low: u32, count: u32, stride: u32) -> Row {
    Row { field, bits: Bits { high, low }, first: 0, count, stride }
}

impl Row {
    /// The same for later indices: tables that go on elsewhere.
    pub(super) const fn from(self, first: u32) -> Self {
        Self { first, ..self }
    }

    const fn has(&self, index: u32) -> bool {
        self.first <= index && index - self.first < self.count
    }
}

/// The layout of a block.
#[derive(Debug, PartialEq, Eq)]
pub struct Version {
    /// Its number, which is in the block too.
    pub major: u64,
    /// Bytes of the block.
    pub size: usize,
    /// Low bits of the program's address that are not stored.
    pub program_shift: u32,
    /// Low bits of a constant bank's address that are not stored.
    pub constant_shift: u32,
    /// Low bits of the size of shared memory that are not stored.
    pub shared_shift: u32,
    /// Low bits of the size of local memory that are not stored.
    pub local_shift: u32,
    /// Its fields, one row each.
    pub rows: &'static [Row],
}

impl Version {
    /// The bits of a field; none if the version lacks it, or has fewer.
    #[must_use]
    pub fn bits(&self, field: Field, index: u32) -> Option<Bits> {
        let row = self.rows.iter().find(|row| row.field == field && row.has(index))?;
        let offset = row.stride.checked_mul(index.checked_sub(row.first)?)?;
        Some(Bits {
            high: row.bits.high.checked_add(offset)?,
            low: row.bits.low.checked_add(offset)?,
        })
    }
}

/// Whether all rows lie inside the block and apart from each other.
#[expect(
    clippy::indexing_slicing,
    reason = "runs when it is compiled, where an index that is wrong is an error"
)]
pub(super) const fn well_formed(version: &Version) -> bool {
    let rows = version.rows;
    let mut taken = [false; MAX_SIZE * 8];
    let mut i = 0;
    while i < rows.len() {
        let row = rows[i];
        let mut n = 0;
        while n < row.count {
            let mut bit = row.bits.low + n * row.stride;
            let high = row.bits.high + n * row.stride;
            if bit > high || high as usize >= version.size * 8 {
                return false;
            }
            while bit <= high {
                if taken[bit as usize] {
                    return false;
                }
                taken[bit as usize] = true;
                bit += 1;
            }
            n += 1;
        }
        i += 1;
    }
    true
}
