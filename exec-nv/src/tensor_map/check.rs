//! The rules for tensor maps, as the documents of `cuTensorMapEncodeTiled`, `cuTensorMapEncodeIm2col` and `cuTensorMapEncodeIm2colWide` have
//! them (CUDA Driver API, "Tensor Map Object Management").

use fatbin::CudaVersion;

use super::TensorMapError as Error;
use super::layout::{
    DIMENSIONS, Im2colBox, Im2colWideBox, Interleave, OutOfBounds, Swizzle, TensorLayout,
    TensorType,
};

/// The first architecture with such copies.
const FIRST: u32 = 90;
/// The first architecture with columns along the width alone.
const FIRST_WIDE: u32 = 100;
/// Elements of a dimension at most: documents before CUDA 13.5 say twice as many, of which coordinates of 32 bits with a sign reach the half.
const MOST_ELEMENTS: u64 = 1 << 31;
/// The first version of CUDA that knows packed types, swizzles of other than 16 bytes, and columns along the width alone.
const PACKED: CudaVersion = CudaVersion::new(12, 8);
/// Strides are below this.
const STRIDE_END: u64 = 1 << 40;
/// Elements of a box at most, by dimension.
const MOST_OF_BOX: i64 = 256;
/// Elements of a box where numbers have gaps between them.
const BOX_WITH_GAPS: i64 = 128;
/// Pixels of a column at most.
const MOST_PIXELS: i64 = 1024;
/// Pixels of a column in the form that has no others.
pub(super) const PIXELS_OF_128: u32 = 128;
/// As errors have it.
const WIDE: &str = "columns along the width";
/// The largest step.
const MOST_STEP: i64 = 8;
/// Where corners can be, for images of one, two and three dimensions.
const CORNERS: [(i64, i64); 3] = [(-0x8000, 0x7fff), (-0x80, 0x7f), (-0x10, 0xf)];

const fn multiple(
    what: &'static str,
    dimension: Option<usize>,
    found: u64,
    of: u64,
) -> Result<(), Error> {
    if found.is_multiple_of(of) {
        Ok(())
    } else {
        Err(Error::Multiple { what, dimension, found, of })
    }
}

fn range(
    what: &'static str,
    dimension: Option<usize>,
    found: i64,
    (least, most): (i64, i64),
) -> Result<(), Error> {
    if (least..=most).contains(&found) {
        Ok(())
    } else {
        Err(Error::Range { what, dimension, found, least, most })
    }
}

const fn count(what: &'static str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::Count { what, found, expected }) }
}

const fn together(bad: bool, one: &'static str, other: &'static str) -> Result<(), Error> {
    if bad { Err(Error::Together { one, other }) } else { Ok(()) }
}

/// As error messages have it.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Whether a driver of this version knows what the layout has: it says of what it does not know no more than that something is wrong.
pub(super) fn version(driver: CudaVersion, layout: &TensorLayout) -> Result<(), Error> {
    use {Swizzle as S, TensorType as T};
    let packed = matches!(layout.kind, T::U4Align8 | T::U4Align16 | T::U6Align16);
    let atoms = matches!(layout.swizzle, S::B128Atom32 | S::B128Atom32Flip8 | S::B128Atom64);
    let what = match (packed, atoms) {
        (true, _) => "a type of 4 or 6 bits",
        (_, true) => "a swizzle of 32 or 64 bytes",
        _ => return Ok(()),
    };
    known(driver, what)
}

/// Whether a driver of this version knows columns along the width alone.
pub(super) fn wide_version(driver: CudaVersion) -> Result<(), Error> {
    known(driver, WIDE)
}

fn known(driver: CudaVersion, what: &'static str) -> Result<(), Error> {
    if driver < PACKED {
        return Err(Error::Driver { what, found: driver, needed: PACKED });
    }
    Ok(())
}

/// Whether memory can hold such a tensor.
pub(super) fn place(address: u64, available: u64, layout: &TensorLayout) -> Result<(), Error> {
    let gaps = layout.kind.has_gaps();
    let wide = layout.interleave == Interleave::B32 || gaps;
    multiple("the address", None, address, if wide { 32 } else { 16 })?;
    // where channels are grouped, it is another matter how far the tensor goes
    let extent = layout.extent();
    if layout.interleave == Interleave::None && extent > available {
        return Err(Error::Outside { extent, available });
    }
    Ok(())
}

/// What holds of every map; `least` is the least number of dimensions.
fn common(
    sm: u32,
    (address, available): (u64, u64),
    layout: &TensorLayout,
    least: usize,
) -> Result<(), Error> {
    if sm < FIRST {
        return Err(Error::Device { what: "tensor maps", sm, needed: FIRST });
    }
    let rank = layout.rank();
    let grouped = layout.interleave != Interleave::None;
    let least = if grouped { least.max(3) } else { least };
    if !(least..=DIMENSIONS).contains(&rank) {
        return Err(Error::Rank { found: rank, least });
    }
    for (dimension, &size) in layout.sizes.iter().enumerate() {
        range("the size", Some(dimension), signed(size), (1, signed(MOST_ELEMENTS)))?;
    }
    let gaps = layout.kind.has_gaps();
    let inner = layout.sizes.first().copied().unwrap_or(0);
    if gaps {
        multiple("the size", Some(0), inner, 128)?;
    } else if layout.kind == TensorType::U4Align8 {
        multiple("the size", Some(0), inner, 2)?;
    }
    let of = if layout.interleave == Interleave::B32 || gaps { 32 } else { 16 };
    for (dimension, &stride) in (1..).zip(layout.strides.iter().take(rank - 1)) {
        multiple("the stride", Some(dimension), stride, of)?;
        range("the stride", Some(dimension), signed(stride), (0, signed(STRIDE_END) - 1))?;
    }
    for (dimension, &step) in layout.steps.iter().enumerate() {
        range("the step", Some(dimension), step.into(), (1, MOST_STEP))?;
    }
    let swizzle = layout.swizzle;
    together(
        layout.interleave == Interleave::B32 && swizzle != Swizzle::B32,
        "an interleave of 32 bytes",
        "a swizzle of other than 32 bytes",
    )?;
    together(layout.kind == TensorType::U6Align16 && grouped, "a type of 6 bits", "an interleave")?;
    together(
        layout.out_of_bounds == OutOfBounds::NanRequestZeroFma && !layout.kind.is_float(),
        "a NaN outside of the tensor",
        "a type of integers",
    )?;
    place(address, available, layout)
}

/// What has gaps between its numbers does not lie in every way in shared memory; types of 6 bits lie in one more.
fn swizzle_of_gaps(layout: &TensorLayout, of_6_bits: Swizzle) -> Result<(), Error> {
    let swizzle = layout.swizzle;
    let can = matches!(swizzle, Swizzle::None | Swizzle::B128 | Swizzle::B128Atom32)
        || layout.kind == TensorType::U6Align16 && swizzle == of_6_bits;
    together(layout.kind.has_gaps() && !can, "a type with gaps", "this swizzle")
}

/// A row of a box, in bytes of shared memory, must fit what is swizzled.
const fn row(layout: &TensorLayout, found: u64) -> Result<(), Error> {
    match layout.swizzle.span() {
        Some(span) if found > span && matches!(layout.interleave, Interleave::None) => {
            Err(Error::Swizzle { found, span })
        }
        _ => Ok(()),
    }
}

/// Whether boxes of so many elements can be copied.
pub(super) fn tiled(
    sm: u32,
    address: u64,
    available: u64,
    layout: &TensorLayout,
    tile: &[u32],
) -> Result<(), Error> {
    common(sm, (address, available), layout, 1)?;
    swizzle_of_gaps(layout, Swizzle::B128Atom64)?;
    count("sizes of the box", tile.len(), layout.rank())?;
    for (dimension, &size) in tile.iter().enumerate() {
        range("the box", Some(dimension), size.into(), (1, MOST_OF_BOX))?;
    }
    let inner = tile.first().copied().unwrap_or(0);
    if layout.kind.has_gaps() {
        range("the box", Some(0), inner.into(), (BOX_WITH_GAPS, BOX_WITH_GAPS))?;
    }
    let bytes = layout.kind.shared_bytes(inner.into());
    if layout.interleave == Interleave::None {
        multiple("a row of the box in bytes", None, bytes, 16)?;
    }
    row(layout, bytes)
}

/// Whether columns of such images can be copied.
pub(super) fn im2col(
    sm: u32,
    address: u64,
    available: u64,
    layout: &TensorLayout,
    area: &Im2colBox<'_>,
) -> Result<(), Error> {
    common(sm, (address, available), layout, 3)?;
    swizzle_of_gaps(layout, Swizzle::B128Atom64)?;
    // without channels and images
    let dimensions = layout.rank() - 2;
    count("numbers of the lower corner", area.lower.len(), dimensions)?;
    count("numbers of the upper corner", area.upper.len(), dimensions)?;
    let most = CORNERS.get(dimensions - 1).copied().unwrap_or((0, 0));
    let sizes = layout.sizes.iter().skip(1);
    for (at, ((&lower, &upper), &size)) in area.lower.iter().zip(area.upper).zip(sizes).enumerate()
    {
        corners(at + 1, (lower, upper), size, most)?;
    }
    column(layout, area.channels, area.pixels)
}

/// Whether columns along the width of such images can be copied.
pub(super) fn im2col_wide(
    sm: u32,
    address: u64,
    available: u64,
    layout: &TensorLayout,
    area: &Im2colWideBox,
) -> Result<(), Error> {
    if sm < FIRST_WIDE {
        return Err(Error::Device { what: WIDE, sm, needed: FIRST_WIDE });
    }
    common(sm, (address, available), layout, 3)?;
    let known = matches!(layout.swizzle, Swizzle::B64 | Swizzle::B128 | Swizzle::B128Atom32);
    together(!known, WIDE, "other swizzles than of 64 and 128 bytes, and of 32 within 128")?;
    swizzle_of_gaps(layout, Swizzle::B64)?;
    let width = layout.sizes.get(1).copied().unwrap_or(0);
    let [most, ..] = CORNERS;
    corners(1, (area.lower, area.upper), width, most)?;
    column(layout, area.channels, area.pixels.unwrap_or(PIXELS_OF_128))
}

/// Where a box begins and ends in a dimension.
fn corners(
    dimension: usize,
    (lower, upper): (i32, i32),
    size: u64,
    most: (i64, i64),
) -> Result<(), Error> {
    let dimension = Some(dimension);
    range("the lower corner", dimension, lower.into(), most)?;
    range("the upper corner", dimension, upper.into(), most)?;
    let wide = signed(size).saturating_add(upper.into()).saturating_sub(lower.into());
    range("the box", dimension, wide, (1, i64::MAX))
}

/// How large a column is.
fn column(layout: &TensorLayout, channels: u32, pixels: u32) -> Result<(), Error> {
    let least = if layout.kind.has_gaps() { BOX_WITH_GAPS } else { 1 };
    let most = if layout.kind.has_gaps() { BOX_WITH_GAPS } else { MOST_OF_BOX };
    range("the number of channels", None, channels.into(), (least, most))?;
    range("the number of pixels", None, pixels.into(), (1, MOST_PIXELS))?;
    row(layout, layout.kind.shared_bytes(channels.into()))
}

#[cfg(test)]
mod tests;
