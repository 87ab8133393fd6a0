//! Object files to link: a region, and the wrapper that a host program registers it by.

use crate::error::{Error, ErrorKind};
use crate::raw;
use crate::sink::Sink;
use elf_core::names::{
    EM_AARCH64, EM_X86_64, ET_REL, SHF_ALLOC, SHF_INFO_LINK, SHF_WRITE, SHT_PROGBITS, SHT_RELA,
    SHT_STRTAB, SHT_SYMTAB, STB_GLOBAL, STB_LOCAL, STT_OBJECT, STT_SECTION,
};
use elf_core::raw64::{Ehdr, Rela, Shdr, Sym};
use zerocopy::byteorder::LE;

const EHDR: usize = size_of::<Ehdr>();
const WRAPPER: usize = size_of::<raw::Wrapper>();
const RELA: usize = size_of::<Rela>();
const SYMBOLS: usize = 3 * size_of::<Sym>();
const NAMES: &[u8] =
    b"\0.nv_fatbin\0.rela.nvFatBinSegment\0.symtab\0.strtab\0.shstrtab\0.note.GNU-stack\0";
const SECTIONS: usize = 8;

/// Offset of a name in [`NAMES`], whose NUL may be that of a longer one.
const fn name_at(name: &[u8]) -> u32 {
    let mut at = 0;
    while let Some((_, rest)) = NAMES.split_at_checked(at) {
        if let Some((head, [0, ..])) = rest.split_at_checked(name.len())
            && equal(head, name)
        {
            return at as u32;
        }
        at += 1;
    }
    0
}

const fn equal(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([first, rest @ ..], [second, others @ ..]) = (one, other) {
        if *first != *second {
            return false;
        }
        (one, other) = (rest, others);
    }
    one.is_empty() && other.is_empty()
}

const fn padded(size: usize) -> usize {
    size.saturating_add(7) & !7
}

/// The offsets of an object's parts.
struct Plan {
    wrapper: usize,
    relocation: usize,
    symbols: usize,
    strings: usize,
    names: usize,
    headers: usize,
}

impl Plan {
    const fn new(region: usize, symbol: usize) -> Self {
        let wrapper = EHDR.saturating_add(padded(region));
        let relocation = wrapper.saturating_add(WRAPPER);
        let symbols = relocation.saturating_add(RELA);
        let strings = symbols.saturating_add(SYMBOLS);
        let names = strings.saturating_add(symbol).saturating_add(2);
        let headers = padded(names.saturating_add(NAMES.len()));
        Self { wrapper, relocation, symbols, strings, names, headers }
    }
}

/// The bytes that [`write_object`] needs for a region of `region` bytes and a symbol of this name.
#[must_use]
pub const fn object_size(region: usize, symbol: &str) -> usize {
    let headers = Plan::new(region, symbol.len()).headers;
    headers.saturating_add(SECTIONS.saturating_mul(size_of::<Shdr>()))
}

/// Writes a relocatable object with `region` in `.nv_fatbin`, and in `.nvFatBinSegment` a wrapper (version 1) of the global
/// name `symbol`: what `__cudaRegisterFatBinary` takes. `machine` is `EM_X86_64` or `EM_AARCH64`; the buffer has exactly
/// [`object_size`] bytes.
///
/// ```
/// use elf_core::names::EM_X86_64;
///
/// let region = *b"\x50\xed\x55\xba\x01\0\x10\0\0\0\0\0\0\0\0\0";
/// let mut buffer = [0; 1024];
/// let object = &mut buffer[..fatbin::object_size(region.len(), "kernels")];
/// fatbin::write_object(&region, "kernels", EM_X86_64, object)?;
/// let file = elf_core::File::parse(object)?;
/// let wrapper = fatbin::wrappers(&file).next().unwrap()?;
/// assert_eq!(wrapper.data.file_offset(&file), Some(64));
/// # Ok::<_, fatbin::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Invalid`] for another machine, or if the name has a NUL in it; [`ErrorKind::Buffer`] if the buffer has another
/// size.
pub fn write_object(
    region: &[u8],
    symbol: &str,
    machine: u16,
    into: &mut [u8],
) -> Result<(), Error> {
    let invalid = |what, value| Err(Error { at: 0, kind: ErrorKind::Invalid { what, value } });
    let absolute = match machine {
        EM_X86_64 => 1,    // R_X86_64_64
        EM_AARCH64 => 257, // R_AARCH64_ABS64
        other => return invalid("machine of a wrapper object", other.into()),
    };
    if symbol.contains('\0') || symbol.is_empty() {
        return invalid("name of a wrapper, size", symbol.len() as u64);
    }
    let plan = Plan::new(region.len(), symbol.len());
    let mut sink = Sink::new(into, object_size(region.len(), symbol))?;
    sink.row(&Ehdr::<LE> {
        e_ident: *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0",
        e_type: ET_REL.into(),
        e_machine: machine.into(),
        e_version: 1.into(),
        e_entry: 0.into(),
        e_phoff: 0.into(),
        e_shoff: (plan.headers as u64).into(),
        e_flags: 0.into(),
        e_ehsize: (EHDR as u16).into(),
        e_phentsize: 0.into(),
        e_phnum: 0.into(),
        e_shentsize: (size_of::<Shdr>() as u16).into(),
        e_shnum: (SECTIONS as u16).into(),
        e_shstrndx: 7.into(),
    })?;
    sink.padded(&[region])?;
    sink.row(&raw::Wrapper {
        magic: raw::WRAPPER_MAGIC.into(),
        version: 1.into(),
        data: 0.into(),
        second: 0.into(),
    })?;
    let info = 1 << 32 | absolute;
    sink.row(&Rela::<LE> { r_offset: 8.into(), r_info: info.into(), r_addend: 0.into() })?;
    for (name, info, section, size) in [
        (0, 0, 0, 0),
        (0, STB_LOCAL << 4 | STT_SECTION, 1, 0),
        (1, STB_GLOBAL << 4 | STT_OBJECT, 2, WRAPPER),
    ] {
        sink.row(&Sym::<LE> {
            st_name: name.into(),
            st_info: info,
            st_other: 0,
            st_shndx: section.into(),
            st_value: 0.into(),
            st_size: (size as u64).into(),
        })?;
    }
    for bytes in [b"\0", symbol.as_bytes(), b"\0", NAMES] {
        sink.bytes(bytes)?;
    }
    let behind = plan.names.saturating_add(NAMES.len());
    let zeros = [0; 8];
    sink.bytes(zeros.get(..plan.headers.saturating_sub(behind)).unwrap_or(&[]))?;
    headers(&plan, region.len(), symbol.len()).iter().try_for_each(|header| sink.row(header))
}

/// The section headers.
fn headers(plan: &Plan, region: usize, symbol: usize) -> [Shdr<LE>; SECTIONS] {
    let (alloc, write) = (SHF_ALLOC, SHF_WRITE);
    let header = |name: &[u8], kind: u32, flags: u64, at: usize, size: usize, align: u64| Shdr {
        sh_name: name_at(name).into(),
        sh_type: kind.into(),
        sh_flags: flags.into(),
        sh_addr: 0.into(),
        sh_offset: (at as u64).into(),
        sh_size: (size as u64).into(),
        sh_link: 0.into(),
        sh_info: 0.into(),
        sh_addralign: align.into(),
        sh_entsize: 0.into(),
    };
    let linked = |header: Shdr<LE>, link: u32, info: u32, entry: usize| Shdr {
        sh_link: link.into(),
        sh_info: info.into(),
        sh_entsize: (entry as u64).into(),
        ..header
    };
    [
        header(b"", 0, 0, 0, 0, 0),
        header(b".nv_fatbin", SHT_PROGBITS, alloc, EHDR, region, 8),
        header(b".nvFatBinSegment", SHT_PROGBITS, alloc | write, plan.wrapper, WRAPPER, 8),
        linked(
            header(b".rela.nvFatBinSegment", SHT_RELA, SHF_INFO_LINK, plan.relocation, RELA, 8),
            5,
            2,
            RELA,
        ),
        header(b".note.GNU-stack", SHT_PROGBITS, 0, EHDR, 0, 1),
        linked(header(b".symtab", SHT_SYMTAB, 0, plan.symbols, SYMBOLS, 8), 6, 2, size_of::<Sym>()),
        header(b".strtab", SHT_STRTAB, 0, plan.strings, symbol.saturating_add(2), 1),
        header(b".shstrtab", SHT_STRTAB, 0, plan.names, NAMES.len(), 1),
    ]
}
