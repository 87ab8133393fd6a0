//! Launch descriptors against NVIDIA's class headers: every row of the tables has the bits that the header gives the field.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use exec_nv::raw::qmd::{Field, V3, V4, V5, Version};

/// The header of each version, and what its names begin with.
const HEADERS: &[(&Version, &[(&str, &str)])] = &[
    (&V3, &[("clc6c0qmd.h", "NVC6C0_QMDV03_00_")]),
    (&V4, &[("clcbc0qmd.h", "NVCBC0_QMDV04_00_")]),
    (&V5, &[("clcdc0qmd.h", "NVCDC0_QMDV05_00_"), ("clcec0qmd.h", "NVCEC0_QMDV05_00_")]),
];

/// NVIDIA's names of a field, in versions 3, 4 and 5. `#` stands for an index in the name, `(i)` for one behind it.
#[rustfmt::skip]
const NAMES: &[(Field, [&str; 3])] = &[
    (Field::MajorVersion,                ["QMD_MAJOR_VERSION"; 3]),
    (Field::MinorVersion,                ["QMD_VERSION", "QMD_MINOR_VERSION", "QMD_MINOR_VERSION"]),
    (Field::Type,                        ["QMD_TYPE"; 3]),
    (Field::GroupId,                     ["QMD_GROUP_ID"; 3]),
    (Field::SmGlobalCaching,             ["SM_GLOBAL_CACHING_ENABLE"; 3]),
    (Field::ApiVisibleCallLimit,         ["API_VISIBLE_CALL_LIMIT"; 3]),
    (Field::SamplerIndex,                ["SAMPLER_INDEX"; 3]),
    (Field::ProgramAddressLower,         ["PROGRAM_ADDRESS_LOWER", "PROGRAM_ADDRESS_LOWER", "PROGRAM_ADDRESS_LOWER_SHIFTED4"]),
    (Field::ProgramAddressUpper,         ["PROGRAM_ADDRESS_UPPER", "PROGRAM_ADDRESS_UPPER", "PROGRAM_ADDRESS_UPPER_SHIFTED4"]),
    (Field::RegisterCount,               ["REGISTER_COUNT_V", "REGISTER_COUNT", "REGISTER_COUNT"]),
    (Field::BarrierCount,                ["BARRIER_COUNT"; 3]),
    (Field::SharedMemorySize,            ["SHARED_MEMORY_SIZE", "SHARED_MEMORY_SIZE", "SHARED_MEMORY_SIZE_SHIFTED7"]),
    (Field::MinSmConfigSharedMemory,     ["MIN_SM_CONFIG_SHARED_MEM_SIZE"; 3]),
    (Field::MaxSmConfigSharedMemory,     ["MAX_SM_CONFIG_SHARED_MEM_SIZE"; 3]),
    (Field::TargetSmConfigSharedMemory,  ["TARGET_SM_CONFIG_SHARED_MEM_SIZE"; 3]),
    (Field::SharedAllocation,            ["SHARED_ALLOCATION_ENABLE"; 3]),
    (Field::LocalMemoryLow,              ["SHADER_LOCAL_MEMORY_LOW_SIZE", "SHADER_LOCAL_MEMORY_LOW_SIZE", "SHADER_LOCAL_MEMORY_LOW_SIZE_SHIFTED4"]),
    (Field::LocalMemoryHigh,             ["SHADER_LOCAL_MEMORY_HIGH_SIZE", "SHADER_LOCAL_MEMORY_HIGH_SIZE", "SHADER_LOCAL_MEMORY_HIGH_SIZE_SHIFTED4"]),
    (Field::SassVersion,                 ["SASS_VERSION"; 3]),
    (Field::GridWidth,                   ["CTA_RASTER_WIDTH", "GRID_WIDTH", "GRID_WIDTH"]),
    (Field::GridHeight,                  ["CTA_RASTER_HEIGHT", "GRID_HEIGHT", "GRID_HEIGHT"]),
    (Field::GridDepth,                   ["CTA_RASTER_DEPTH", "GRID_DEPTH", "GRID_DEPTH"]),
    (Field::BlockWidth,                  ["CTA_THREAD_DIMENSION0"; 3]),
    (Field::BlockHeight,                 ["CTA_THREAD_DIMENSION1"; 3]),
    (Field::BlockDepth,                  ["CTA_THREAD_DIMENSION2"; 3]),
    (Field::ConstantBankValid,           ["CONSTANT_BUFFER_VALID(i)"; 3]),
    (Field::ConstantBankInvalidate,      ["CONSTANT_BUFFER_INVALIDATE(i)"; 3]),
    (Field::ConstantBankAddressLower,    ["CONSTANT_BUFFER_ADDR_LOWER(i)", "CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6(i)", "CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6(i)"]),
    (Field::ConstantBankAddressUpper,    ["CONSTANT_BUFFER_ADDR_UPPER(i)", "CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6(i)", "CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6(i)"]),
    (Field::ConstantBankSize,            ["CONSTANT_BUFFER_SIZE_SHIFTED4(i)"; 3]),
    (Field::InvalidateTextureHeaders,    ["INVALIDATE_TEXTURE_HEADER_CACHE"; 3]),
    (Field::InvalidateTextureSamplers,   ["INVALIDATE_TEXTURE_SAMPLER_CACHE"; 3]),
    (Field::InvalidateTextureData,       ["INVALIDATE_TEXTURE_DATA_CACHE"; 3]),
    (Field::InvalidateShaderData,        ["INVALIDATE_SHADER_DATA_CACHE"; 3]),
    (Field::InvalidateInstructions,      ["INVALIDATE_INSTRUCTION_CACHE"; 3]),
    (Field::InvalidateConstants,         ["INVALIDATE_SHADER_CONSTANT_CACHE"; 3]),
    (Field::MembarType,                  ["CWD_MEMBAR_TYPE"; 3]),
    (Field::ReleaseEnable,               ["RELEASE#_ENABLE", "RELEASE_ENABLE(i)", "RELEASE_ENABLE(i)"]),
    (Field::ReleaseStructureSize,        ["RELEASE#_STRUCTURE_SIZE", "RELEASE_STRUCTURE_SIZE(i)", "RELEASE_STRUCTURE_SIZE(i)"]),
    (Field::ReleaseMembar,               ["RELEASE#_MEMBAR_TYPE", "RELEASE_MEMBAR_TYPE(i)", "RELEASE_MEMBAR_TYPE(i)"]),
    (Field::ReleasePayload64,            ["RELEASE#_PAYLOAD64B", "RELEASE_PAYLOAD64B(i)", "RELEASE_PAYLOAD64B(i)"]),
    (Field::ReleaseAddressLower,         ["RELEASE#_ADDRESS_LOWER", "RELEASE_SEMAPHORE#_ADDR_LOWER", "RELEASE_SEMAPHORE#_ADDR_LOWER"]),
    (Field::ReleaseAddressUpper,         ["RELEASE#_ADDRESS_UPPER", "RELEASE_SEMAPHORE#_ADDR_UPPER", "RELEASE_SEMAPHORE#_ADDR_UPPER"]),
    (Field::ReleasePayloadLower,         ["RELEASE#_PAYLOAD_LOWER", "RELEASE_SEMAPHORE#_PAYLOAD_LOWER", "RELEASE_SEMAPHORE#_PAYLOAD_LOWER"]),
    (Field::ReleasePayloadUpper,         ["RELEASE#_PAYLOAD_UPPER", "RELEASE_SEMAPHORE#_PAYLOAD_UPPER", "RELEASE_SEMAPHORE#_PAYLOAD_UPPER"]),
    (Field::DependentEnable,             ["DEPENDENT_QMD#_ENABLE", "DEPENDENT_QMD_ENABLE(i)", "DEPENDENT_QMD#_ENABLE"]),
    (Field::DependentAction,             ["DEPENDENT_QMD#_ACTION", "DEPENDENT_QMD_ACTION(i)", "DEPENDENT_QMD#_ACTION"]),
    (Field::DependentPrefetch,           ["DEPENDENT_QMD#_PREFETCH", "DEPENDENT_QMD_PREFETCH(i)", "DEPENDENT_QMD#_PREFETCH"]),
    (Field::DependentPointer,            ["DEPENDENT_QMD#_POINTER"; 3]),
    (Field::ProgramPrefetchSize,         ["PROGRAM_PREFETCH_SIZE"; 3]),
    (Field::ProgramPrefetchAddressLower, ["PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED"; 3]),
    (Field::ProgramPrefetchAddressUpper, ["PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED"; 3]),
    (Field::ClusterWidth,                ["GPC_CGA_WIDTH"; 3]),
    (Field::ClusterHeight,               ["GPC_CGA_HEIGHT"; 3]),
    (Field::ClusterDepth,                ["GPC_CGA_DEPTH"; 3]),
];

/// `31:0` or `(55+(i)*64):(24+(i)*64)`: high and low, each a number and what is added for an index.
fn bits(text: &str) -> [(u32, u32); 2] {
    let side = |text: &str| {
        let text = text.trim_start_matches('(').trim_end_matches(')');
        let (first, step) = text.split_once("+(i)*").unwrap_or((text, "0"));
        (first.parse().unwrap(), step.parse().unwrap())
    };
    let (high, low) = text.split_once(':').unwrap();
    [side(high), side(low)]
}

/// Fields of a header: by name, with `(i)` where it has an index.
fn fields(header: &str, prefix: &str) -> BTreeMap<String, [(u32, u32); 2]> {
    let lines = header.lines().filter_map(|line| {
        let rest = line.strip_prefix("#define ")?.strip_prefix(prefix)?;
        let (name, value) = rest.split_once(char::is_whitespace)?;
        let value = value.trim().strip_prefix("MW(")?.strip_suffix(')')?;
        Some((name.to_owned(), bits(value)))
    });
    lines.collect()
}

#[test]
fn every_field_has_the_bits_of_nvidias_headers() {
    let name = "every_field_has_the_bits_of_nvidias_headers";
    let Some(root) = std::env::var_os("HOIST_OPEN_GPU_DOC").map(PathBuf::from) else {
        println!(
            "skipped: {name}: needs a checkout of NVIDIA's open-gpu-doc in HOIST_OPEN_GPU_DOC"
        );
        return;
    };
    let mut compared = 0;
    for (place, (version, headers)) in HEADERS.iter().enumerate() {
        for (file, prefix) in *headers {
            let header = std::fs::read_to_string(root.join("classes/compute").join(file)).unwrap();
            let fields = fields(&header, prefix);
            assert!(fields.len() > 100, "{file}: {} fields", fields.len());
            for row in version.rows {
                let (_, names) = NAMES.iter().find(|(field, _)| *field == row.field).unwrap();
                for index in row.first..row.first + row.count {
                    let name = names[place].replace('#', &index.to_string());
                    let Some([high, low]) = fields.get(&name) else { panic!("{file}: no {name}") };
                    let found = version.bits(row.field, index).unwrap();
                    let by_index = if name.ends_with("(i)") { index } else { 0 };
                    let expected = (high.0 + high.1 * by_index, low.0 + low.1 * by_index);
                    assert_eq!((found.high, found.low), expected, "{file}: {name}, {index}");
                    compared += 1;
                }
            }
        }
    }
    println!("{compared} fields compared");
    assert!(compared > 300, "{compared}");
}
