//! What kernels of the fixtures need, as cuobjdump 12.4 and 13.5 print it.
#![cfg(test)]

mod cubins;

use cubins::read;
use nvinfo::{
    Cubin, Edge, Error, Function, KernelParameter, Node, Payload, Resources, Stack, eiattr,
};

/// Of each kernel: registers, stack, static shared memory, barriers, bytes of constant bank 0.
type Figures = (&'static str, u32, Stack, u64, u32, u64);

fn check(fixture: &str, reserved: u64, expected: &[Figures]) {
    let bytes = read(fixture);
    let cubin = Cubin::parse(&bytes).unwrap();
    let mut found: Vec<_> = cubin.kernels().collect();
    found.sort_by_key(Function::name);
    assert_eq!(found.len(), expected.len(), "{fixture}");
    for (kernel, &(name, registers, stack, shared, barriers, bank)) in found.iter().zip(expected) {
        let needs = kernel.resources().unwrap();
        assert_eq!(kernel.name(), name);
        assert_eq!(needs.registers, Some(registers), "{fixture} {name}");
        assert_eq!(needs.stack, Some(stack), "{fixture} {name}");
        assert_eq!(
            (needs.shared, needs.local, needs.barriers),
            (shared, 0, barriers),
            "{fixture} {name}"
        );
        let has_section = shared != 0;
        assert_eq!(
            needs.reserved_shared,
            if has_section { reserved } else { 0 },
            "{fixture} {name}"
        );
        let zero = kernel.constant_banks().find(|found| found.bank == 0).unwrap();
        assert_eq!(zero.header.size, bank, "{fixture} {name}");
        assert_eq!(needs.code_size, kernel.code().unwrap().len() as u64);
    }
}

const fn bytes(bytes: u64) -> Stack {
    Stack::Bytes(bytes)
}

#[test]
fn form_7() {
    #[rustfmt::skip]
    check("kernels-11.8-sm_35", 0, &[
        ("globals",       8, bytes(0),    0, 0, 320), ("local_memory", 23, bytes(0),    0, 0, 332),
        ("parameters",    7, bytes(0),    0, 0, 368), ("shared_memory", 6, bytes(0), 1040, 4, 328),
        ("subroutine",    5, bytes(0),    0, 0, 328),
    ]);
    #[rustfmt::skip]
    check("kernels-11.8-sm_90", 0x400, &[
        ("globals",      12, bytes(0),    0, 0, 528), ("local_memory",  8, bytes(80),   0, 0, 540),
        ("parameters",   10, bytes(0),    0, 0, 576), ("shared_memory", 10, bytes(0), 1040, 4, 536),
        ("subroutine",   10, bytes(0),    0, 0, 536),
    ]);
}

#[test]
fn form_8() {
    #[rustfmt::skip]
    check("kernels-13.5-sm_80", 0, &[
        ("globals",      12, bytes(0),  0,    0, 352), ("local_memory", 8, bytes(80), 0, 0, 364),
        ("parameters",   10, bytes(0),  0,    0, 400), ("shared_memory", 10, bytes(0), 1040, 4, 360),
        ("subroutine",   10, bytes(0),  0,    0, 360),
    ]);
}

fn recorded(kernel: &Function<'_>) -> Stack {
    kernel.resources().unwrap().stack.unwrap()
}

/// The stack that the call tree gives is the one that nvlink recorded.
#[test]
fn stacks_of_linked_files() {
    for arch in ["sm_80", "sm_90", "sm_100"] {
        let file = read(&format!("calls-13.5-{arch}"));
        let cubin = Cubin::parse(&file).unwrap();
        let (nodes, edges) = cubin.call_tree_size().unwrap();
        let (mut nodes, mut edges) = (vec![Node::EMPTY; nodes], vec![Edge::EMPTY; edges]);
        let mut tree = cubin.call_tree(&mut nodes, &mut edges).unwrap();
        for kernel in cubin.kernels() {
            assert_eq!(
                tree.stack(kernel.index()),
                Some(recorded(&kernel)),
                "{arch} {}",
                kernel.name()
            );
        }
        let named = |name: &str| cubin.kernel(name.into()).unwrap();
        assert_eq!(recorded(&named("recurses")), Stack::Unbounded);
        assert!(
            matches!(recorded(&named("indirect")), Stack::Bytes(48..)),
            "the deepest function of the table"
        );
        // what the indirect call reaches: the functions of the table, and what they call
        let mut reached = Vec::new();
        tree.reach(named("indirect").index(), |index| reached.push(cubin.symbol(index).unwrap().1));
        reached.sort();
        let names = ["deep", "indirect", "other", "triple"].map(elf_core::Name::from);
        assert_eq!(reached, names, "{arch}");
        let small = cubin.call_tree(&mut [], &mut []).map(|_| ()).unwrap_err();
        assert_eq!(small.to_string(), "more functions than the 0 there is room for");
    }
}

fn parameters(kernel: &Function<'_>) -> Result<Vec<KernelParameter>, Error> {
    let mut all = kernel.parameters()?.collect::<Result<Vec<_>, _>>()?;
    all.sort_by_key(|parameter| parameter.ordinal);
    Ok(all)
}

#[test]
fn parameters_have_the_layout_of_the_source() {
    for (name, file) in cubins::all().into_iter().filter(|(name, _)| name.starts_with("kernels-")) {
        let cubin = Cubin::parse(&file).unwrap();
        let kernel = cubin.kernel("parameters".into()).unwrap();
        let layout: Vec<_> =
            parameters(&kernel).unwrap().iter().map(|p| (p.ordinal, p.offset, p.size)).collect();
        assert_eq!(layout, [(0, 0, 8), (1, 8, 1), (2, 12, 24), (3, 36, 2), (4, 40, 8)], "{name}");
        let needs = kernel.resources().unwrap();
        let bank = needs.parameter_bank.unwrap();
        assert_eq!(Some(u32::from(bank.offset)), cubin.target().parameter_base(), "{name}");
        assert_eq!((bank.size, needs.parameter_size), (48, Some(48)), "{name}");
        let (_, section) =
            cubin.symbol(bank.symbol).map(|(symbol, _)| (symbol, symbol.shndx)).unwrap();
        let zero = kernel.constant_banks().find(|found| found.bank == 0).unwrap();
        assert_eq!(
            (u32::from(section), zero.header.size),
            (zero.section, u64::from(bank.offset) + 48),
            "{name}"
        );
        // one without parameters
        let globals = cubin.kernel("globals".into()).unwrap();
        assert_eq!(globals.resources().unwrap().parameter_bank, None);
        assert_eq!(parameters(&globals).unwrap(), []);
    }
}

#[test]
fn limits_of_a_launch() {
    for (name, file) in cubins::all().into_iter().filter(|(name, _)| name.starts_with("kernels-")) {
        let cubin = Cubin::parse(&file).unwrap();
        let needs = |kernel: &str| cubin.kernel(kernel.into()).unwrap().resources().unwrap();
        let shared = needs("shared_memory");
        assert_eq!(
            (shared.max_threads, shared.required_threads),
            (Some([64, 2, 1]), None),
            "{name}"
        );
        assert_eq!((shared.threads(), shared.barriers), (Some(128), 4));
        let local = needs("local_memory");
        assert_eq!((local.max_threads, local.required_threads), (None, Some([32, 1, 1])), "{name}");
        assert_eq!(needs("globals").threads(), None);
    }
}

#[test]
fn clusters_and_mbarriers() {
    let file = read("cluster-13.5-sm_90");
    let cubin = Cubin::parse(&file).unwrap();
    let kernel = |name: &str| cubin.kernel(name.into()).unwrap();
    let cluster: Resources = kernel("cluster").resources().unwrap();
    assert_eq!(
        (cluster.cluster, cluster.explicit_cluster, cluster.max_cluster_rank),
        (Some([2, 1, 1]), true, None)
    );
    assert_eq!((cluster.shared, cluster.reserved_shared), (8, 0x400));
    let limits = kernel("limits").resources().unwrap();
    assert_eq!(
        (limits.cluster, limits.max_cluster_rank, limits.max_registers),
        (None, Some(8), Some(40))
    );
    let large = parameters(&kernel("large")).unwrap();
    assert_eq!(
        (large[0].size, large[1].offset, large[1].size, large[1].bank),
        (4400, 4400, 8, None)
    );

    let rows = kernel("cluster").attributes().unwrap().map(Result::unwrap);
    let row = rows.clone().find(|row| row.name() == Some("EIATTR_MBARRIER_INSTR_OFFSETS")).unwrap();
    let Payload::Mbarriers(barriers) = row.payload() else { panic!("{row:?}") };
    let kinds: Vec<_> =
        barriers.into_iter().map(|barrier| (barrier.kind, barrier.register)).collect();
    assert_eq!(kinds, [(0, 255), (1, 255), (5, 255), (8, 255)]);
    // every offset is that of an instruction of 16 bytes inside the code
    let size = kernel("cluster").resources().unwrap().code_size;
    let offsets: Vec<_> = rows.flat_map(|row| row.payload().code_offsets()).collect();
    assert!(
        offsets.len() > 4
            && offsets.iter().all(|offset| u64::from(*offset) < size && offset % 16 == 0)
    );
}

#[test]
fn textures_by_reference() {
    for fixture in ["textures-11.8-sm_61", "textures-13.5-sm_80"] {
        let file = read(fixture);
        let cubin = Cubin::parse(&file).unwrap();
        let needs = cubin.kernel("textures".into()).unwrap().resources().unwrap();
        assert_eq!((needs.textures, needs.samplers, needs.surfaces), (1, 1, 1), "{fixture}");
        assert_eq!(cubin.target().texture_mode, nvinfo::TextureMode::Independent);
        assert_eq!(cubin.undefined().count(), 0);
    }
}

#[test]
fn subroutines_callees_and_undefined_symbols() {
    let file = read("kernels-13.5-sm_80");
    let cubin = Cubin::parse(&file).unwrap();
    let kernel = cubin.kernel("subroutine".into()).unwrap();
    let inside: Vec<_> = kernel.subroutines().collect();
    assert_eq!(inside.len(), 1);
    assert_eq!(inside[0].name(), "$subroutine$square");
    assert!(inside[0].is_subroutine() && !inside[0].is_kernel() && !kernel.is_subroutine());
    assert_eq!(inside[0].code().unwrap(), &kernel.code().unwrap()[0xb0..0x180]);

    let file = read("calls-13.5-sm_90");
    let cubin = Cubin::parse(&file).unwrap();
    let callees = |name: &str| -> Vec<_> {
        let kernel = cubin.kernel(name.into()).unwrap();
        kernel.callees().unwrap().map(|index| cubin.symbol(index).unwrap().1).collect()
    };
    assert_eq!(callees("calls"), [elf_core::Name::from("other")]);
    assert_eq!(callees("undefined"), [elf_core::Name::from("vprintf")]);
    let undefined: Vec<_> = cubin.undefined().map(|(.., name)| name).collect();
    assert!(undefined.contains(&"vprintf".into()), "{undefined:?}");
    let externs =
        cubin.kernel("undefined".into()).unwrap().attributes().unwrap().map(Result::unwrap);
    let externs = externs.filter(|row| row.number == eiattr::EXTERNS).map(|row| row.payload());
    assert_eq!(externs.count(), 1);
}

#[test]
fn narrow_files() {
    let file = read("kernel32-11.8-sm_35");
    let cubin = Cubin::parse(&file).unwrap();
    assert!(!cubin.target().is_64);
    let kernel = cubin.kernel("narrow".into()).unwrap();
    let needs = kernel.resources().unwrap();
    assert_eq!(
        (needs.registers, needs.shared, needs.barriers, needs.threads()),
        (Some(6), 48, 1, Some(96))
    );
    assert_eq!((needs.header_registers, needs.frame_size), (Some(6), Some(0)));
    let sizes: Vec<_> = parameters(&kernel).unwrap().iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(sizes, [(0, 4), (8, 8)]);
}

#[test]
fn constants_and_their_bytes() {
    let file = read("kernels-13.5-sm_121f");
    let cubin = Cubin::parse(&file).unwrap();
    let module: Vec<_> = cubin.constant_banks().filter(|bank| bank.owner.is_none()).collect();
    assert_eq!(module.iter().map(|bank| bank.bank).collect::<Vec<_>>(), [3, 4]);
    let table = cubin.file().section_data(&module[0].header).unwrap();
    assert_eq!(table, [1u32, 2, 3, 4].map(u32::to_le_bytes).concat());
    assert_eq!(module[1].header.size, 24, "addresses of three variables");
}

/// All kernels in one pass need what each of them needs.
#[test]
fn needs_of_all_are_those_of_each() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    let mut kernels = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "cubin") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let cubin = Cubin::parse(&bytes).unwrap();
        let symbols = cubin.symbols().map_or(0, |table| table.len());
        let mut index = vec![0; symbols + cubin.file().sections().len()];
        let mut room = [nvinfo::KernelNeeds::EMPTY; 16];
        let found = cubin.kernel_needs(&mut room, &mut index).unwrap();
        let each: Vec<_> = cubin.kernels().map(|kernel| kernel.resources().unwrap()).collect();
        let all: Vec<_> = found.iter().map(|needs| needs.resources).collect();
        assert_eq!(all, each, "{}", path.display());
        kernels += all.len();
        if all.len() > 1 {
            assert!(cubin.kernel_needs(&mut room[..1], &mut index).is_err());
            assert!(cubin.kernel_needs(&mut room, &mut index[1..]).is_err());
        }
    }
    assert!(kernels > 50, "{kernels}");
}

/// The linker of CUDA 12.0 puts registers above the symbol's number where a kernel recurses, on `sm_90` too.
#[test]
fn registers_above_a_symbols_number_make_no_subroutine() {
    let mut file = read("gpu_linked-12.4-sm_90");
    let before = Cubin::parse(&file).unwrap().kernel("recursive".into()).unwrap();
    let (section, needs) = (before.section() as usize, before.resources().unwrap());
    let headers = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
    // the top byte of `sh_info`
    file[headers + 64 * section + 47] = 30;
    let cubin = Cubin::parse(&file).unwrap();
    let kernel = cubin.kernel("recursive".into()).unwrap();
    assert_eq!(kernel.section_header().info >> 24, 30);
    assert!(!kernel.is_subroutine());
    assert_eq!(kernel.resources().unwrap(), needs);
}
