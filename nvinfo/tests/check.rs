//! Which offsets of attributes no longer fit code that was changed.
#![cfg(test)]

mod cubins;

use nvinfo::{Cubin, Fault, Function, Instructions, Suspect, eiattr};

fn suspects(function: &Function<'_>, code: &[u8]) -> Vec<Suspect> {
    let mut found = Vec::new();
    function.check_code(code, |suspect| found.push(suspect)).unwrap();
    found
}

/// The code of a kernel after two of its instructions have changed places.
fn swapped(kernel: &Function<'_>, one: u32, other: u32) -> Vec<u8> {
    let mut code = kernel.code().unwrap().to_vec();
    for at in 0..16 {
        code.swap(one as usize + at, other as usize + at);
    }
    code
}

fn offsets(kernel: &Function<'_>, attribute: u8) -> Vec<u32> {
    let rows = kernel.attributes().unwrap().map(Result::unwrap);
    rows.filter(|row| row.number == attribute)
        .flat_map(|row| row.payload().code_offsets())
        .collect()
}

#[test]
fn unchanged_code_fits() {
    for (name, file) in cubins::all() {
        for function in Cubin::parse(&file).unwrap().functions() {
            let code = function.cubin().file().section_data(function.section_header()).unwrap();
            assert_eq!(suspects(&function, code), [], "{name} {}", function.name());
        }
    }
}

#[test]
fn an_exit_that_moved_is_told_where_it_was_and_where_it_is() {
    let file = cubins::read("kernels-13.5-sm_80");
    let cubin = Cubin::parse(&file).unwrap();
    let kernel = cubin.kernel("shared_memory".into()).unwrap();
    let exit = *offsets(&kernel, eiattr::EXIT_INSTR_OFFSETS).last().unwrap();
    let code = kernel.code().unwrap();
    let was = Instructions::Volta.opcode(code, 0x10).unwrap();
    let suspect = |offset, fault| Suspect { attribute: eiattr::EXIT_INSTR_OFFSETS, offset, fault };
    assert_eq!(
        suspects(&kernel, &swapped(&kernel, exit, 0x10)),
        [
            suspect(exit, Fault::Changed { was: 0x94d, is: was }),
            suspect(0x10, Fault::Unlisted { opcode: 0x94d }),
        ]
    );
    // under another predicate it is an exit still; and code that ends early has none
    let mut code = code.to_vec();
    code[exit as usize + 1] ^= 0x70;
    assert_eq!(suspects(&kernel, &code), []);
    let short = &code[..exit as usize];
    assert!(suspects(&kernel, short).contains(&suspect(exit, Fault::Outside)));
}

#[test]
fn barriers_that_changed_places_are_told_apart_though_their_opcodes_are_near() {
    let file = cubins::read("cluster-13.5-sm_90");
    let cubin = Cubin::parse(&file).unwrap();
    let kernel = cubin.kernel("cluster".into()).unwrap();
    let listed = offsets(&kernel, eiattr::MBARRIER_INSTR_OFFSETS);
    assert_eq!(listed, [0x80, 0xa0, 0xb0, 0xd0]);
    let attribute = eiattr::MBARRIER_INSTR_OFFSETS;
    // to arrive and to wait are one opcode in two forms
    let found = suspects(&kernel, &swapped(&kernel, 0xa0, 0xb0));
    let changed =
        |offset, was, is| Suspect { attribute, offset, fault: Fault::Changed { was, is } };
    assert_eq!(found, [changed(0xa0, 0x9a7, 0x5a7), changed(0xb0, 0x5a7, 0x9a7)]);
    // another register has the address now
    let mut code = kernel.code().unwrap().to_vec();
    code[0xa0 + 3] ^= 1;
    let fault = Fault::Operands { opcode: 0x9a7 };
    assert_eq!(suspects(&kernel, &code), [Suspect { attribute, offset: 0xa0, fault }]);
}

#[test]
fn an_indirect_branch_that_moved_is_told() {
    for (name, kernel) in [("data-13.5-sm_80", "chosen"), ("data-13.5-sm_90", "branches")] {
        let file = cubins::read(name);
        let cubin = Cubin::parse(&file).unwrap();
        let kernel = cubin.functions().find(|function| function.name() == kernel).unwrap();
        let branch = offsets(&kernel, eiattr::INDIRECT_BRANCH_TARGETS)[0];
        let found = suspects(&kernel, &swapped(&kernel, branch, 0));
        let of = |offset| {
            found
                .iter()
                .any(|one| one.attribute == eiattr::INDIRECT_BRANCH_TARGETS && one.offset == offset)
        };
        assert!(of(branch) && of(0), "{name} {found:?}");
    }
}
