//! Prints what a cubin says of itself in the words of `cuobjdump -elf` and `cuobjdump -res-usage`, one line an entry, white space
//! as single blanks: to be compared with that tool's output.
//!
//! `cargo run --example like_cuobjdump -- FILE...`

use nvinfo::{
    Attribute, AttributeValue, Cubin, Edge, Error, HeaderForm, LinkStage, Node, Payload, Stack,
    TargetSuffix, compat_name, eiattr,
};
use std::fmt::Write;

fn main() {
    for path in std::env::args().skip(1) {
        println!("== {path}");
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("{path}: {error}");
                continue;
            }
        };
        match dump(&bytes) {
            Ok(text) => print!("{text}"),
            Err(error) => println!("error: {error}"),
        }
    }
}

fn dump(bytes: &[u8]) -> Result<String, Error> {
    let cubin = Cubin::parse(bytes)?;
    let mut out = String::new();
    header(&cubin, &mut out);
    for section in cubin.file().sections() {
        let name = cubin.file().section_name(&section)?;
        let is_info = name.as_bytes().starts_with(b".nv.info")
            || name.as_bytes().starts_with(b".nv.merc.nv.info");
        if name == ".nv.compat" || is_info {
            for row in cubin.attributes_in(&section)? {
                let row = row?;
                let known = if is_info { row.name() } else { compat_name(row.number) };
                let known = known.unwrap_or("unknown Attribute");
                // Mercury sections have a symbol table of their own
                let own = !name.as_bytes().starts_with(b".nv.merc");
                let value = value(&cubin, &row, is_info, own);
                let _ =
                    writeln!(out, "attr {name} {known} {} {}", row.value.format(), value.trim());
            }
        }
    }
    resources(&cubin, &mut out)?;
    Ok(out)
}

fn header(cubin: &Cubin<'_>, out: &mut String) {
    let (target, header) = (cubin.target(), cubin.file().header());
    let stage = match target.stage {
        LinkStage::Relocatable => "ET_REL",
        LinkStage::Linked => "ET_EXEC",
        LinkStage::Other(_) => "?",
    };
    let sm = target.sm.unwrap_or(0);
    let suffix = if target.suffix == TargetSuffix::Accelerated { "a" } else { "" };
    let abi = header.abi_version;
    let toolkit = target.toolkit.map(|toolkit| toolkit.to_string()).unwrap_or_default();
    let _ = writeln!(
        out,
        "header type={stage}, ABI={abi}, sm={sm}{suffix}, toolkit={toolkit}, flags={:#x}",
        header.flags
    );
    let form = if target.form == HeaderForm::V7 { 7 } else { 8 };
    let _ = writeln!(
        out,
        "target {target} suffix={:?} virtual={:?} form={form}",
        target.suffix, target.virtual_sm
    );
}

fn hex(values: impl IntoIterator<Item = u32>) -> String {
    values.into_iter().map(|value| format!("{value:#x} ")).collect()
}

fn value(cubin: &Cubin<'_>, row: &Attribute<'_>, is_info: bool, own: bool) -> String {
    let named = |symbol: u32| {
        let name = cubin.symbol(symbol).map(|found| found.1).unwrap_or_default();
        if own { format!("{name}({symbol:#x})") } else { format!("({symbol:#x})") }
    };
    if !is_info {
        return match (row.number, row.value) {
            (14, AttributeValue::Half(v)) => format!("{}.{}.{}", v >> 10, v >> 6 & 15, v & 63),
            (_, AttributeValue::Byte(v, _)) => format!("{v:#x}"),
            (_, AttributeValue::Half(v)) => format!("{v:#x}"),
            (_, AttributeValue::Bytes(v)) => words(v),
            _ => String::new(),
        };
    }
    match row.payload() {
        Payload::Flag => String::new(),
        Payload::Number(3) if row.number == 0x66 => "Language: PTX".into(),
        Payload::Number(value) => format!("{value:#x}"),
        Payload::OfSymbol { symbol, value } => match row.number {
            eiattr::REGCOUNT => format!("function: {} register count: {value}", named(symbol)),
            eiattr::FRAME_SIZE => format!("function: {} frame size: {value:#x}", named(symbol)),
            eiattr::MIN_STACK_SIZE => format!("function: {} min stack size: {value:#x}", named(symbol)),
            _ => format!("{symbol:#x} {value:#x}"),
        },
        Payload::Symbols(symbols) => {
            symbols.into_iter().fold("externs:".into(), |text, symbol| format!("{text} {}", named(symbol)))
        }
        Payload::Offsets(words) | Payload::Numbers(words) => hex(words),
        Payload::Triple(xyz) => hex(xyz),
        Payload::Parameter(p) => {
            let head = format!(
                "Index : {:#x} Ordinal : {:#x} Offset : {:#x} Size : {:#x} Pointee's logAlignment : {:#x} Space : {:#x}",
                p.index, p.ordinal, p.offset, p.size, p.pointee_alignment, p.space
            );
            let space = if p.in_shared_memory { "SMEM" } else { "CBANK" };
            p.bank.map_or(head.clone(), |bank| format!("{head} cbank : {bank:#x} Parameter Space : {space}"))
        }
        Payload::ParameterBank(bank) => {
            format!("{:#x} {:#x}", bank.symbol, u32::from(bank.size) << 16 | u32::from(bank.offset))
        }
        Payload::Branches(branches) => branches.fold(String::new(), |text, branch| {
            let count = branch.targets.len();
            let kind = if branch.kind == 1 { "(kind_call) " } else { "" };
            format!(
                "{text}Offset of Indirect Branch: {:#x} {kind}Number of targets: {count} {}{}",
                branch.offset,
                if count == 0 { "" } else { "Targets: " },
                hex(branch.targets)
            )
        }),
        Payload::RegisterMap(pairs) => {
            pairs.into_iter().map(|(offset, register)| format!("({offset:#x}, {register}) ")).collect()
        }
        Payload::Resumes(pairs) => {
            pairs.into_iter().map(|(id, offset)| format!("({id}, {offset:#x}) ")).collect()
        }
        Payload::UnusedLoads(pairs) => hex(pairs.into_iter().flat_map(|(offset, mask)| [offset, mask])),
        Payload::SpillRefills(pairs) => {
            pairs.into_iter().map(|(_, offset)| format!("SpillRefill : Offset : {offset:#x} ")).collect()
        }
        Payload::Mbarriers(rows) => rows
            .into_iter()
            .map(|row| {
                let kind = row.kind_name().unwrap_or("Unknown");
                let more = if row.immediate == 0 { String::new() } else { format!(" + {}", row.immediate) };
                let (register, uniform, stride) = (row.register, row.uniform_register, row.stride);
                format!(
                    "{:#x} : Instruction Kind : {kind} (R{register} + UR{uniform}{more}) Stride : MBARRIER_STRIDE_X{stride} ",
                    row.offset
                )
            })
            .collect(),
        Payload::Bytes(bytes) => words(bytes),
        _ => "?".into(),
    }
}

fn words(bytes: &[u8]) -> String {
    hex(bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes))
}

/// As `-res-usage`: the module's memory, then each function.
fn resources(cubin: &Cubin<'_>, out: &mut String) -> Result<(), Error> {
    let mut global = 0;
    for section in cubin.file().sections() {
        let name = cubin.file().section_name(&section)?;
        if name == ".nv.global" || name == ".nv.global.init" {
            global += section.size;
        }
    }
    let _ = write!(out, "common GLOBAL:{global}");
    for bank in cubin.constant_banks().filter(|bank| bank.owner.is_none()) {
        let _ = write!(out, " CONSTANT[{}]:{}", bank.bank, bank.header.size);
    }
    out.push('\n');
    let (nodes, edges) = cubin.call_tree_size()?;
    let (mut nodes, mut edges) = (vec![Node::EMPTY; nodes], vec![Edge::EMPTY; edges]);
    let mut tree = cubin.call_tree(&mut nodes, &mut edges)?;
    for kernel in cubin.kernels() {
        let stack = tree.stack(kernel.index()).map(|stack| stack.to_string()).unwrap_or_default();
        let recorded = kernel.resources()?.stack.map(|stack| stack.to_string()).unwrap_or_default();
        let _ = writeln!(out, "stack {} computed {stack} recorded {recorded}", kernel.name());
    }
    for function in cubin.functions().filter(|function| !function.is_subroutine()) {
        let needs = function.resources()?;
        let kind = if function.is_kernel() { "kernel" } else { "function" };
        let _ = write!(out, "{kind} {} REG:{}", function.name(), needs.registers.unwrap_or(0));
        match needs.stack.unwrap_or(Stack::Bytes(0)) {
            Stack::Bytes(bytes) => write!(out, " STACK:{bytes}"),
            Stack::Unbounded => write!(out, " STACK:UNKNOWN"),
        }
        .unwrap_or_default();
        let _ =
            write!(out, " SHARED:{} LOCAL:{}", needs.shared + needs.reserved_shared, needs.local);
        for bank in function.constant_banks() {
            let _ = write!(out, " CONSTANT[{}]:{}", bank.bank, bank.header.size);
        }
        let headers =
            [("TEXTURE", needs.textures), ("SURFACE", needs.surfaces), ("SAMPLER", needs.samplers)];
        for (name, count) in headers.into_iter().filter(|header| header.1 != 0) {
            let _ = write!(out, " {name}:{count}");
        }
        out.push('\n');
    }
    Ok(())
}
