//! Changes in place, read back.
#![cfg(test)]

mod cubins;

use nvinfo::{Cubin, Error, ErrorKind, Function, Patch, Resources, Stack, eiattr};

/// Makes the changes that `plan` plans for a kernel, and reads the kernel again; also how many bytes changed.
fn patched<P: IntoIterator<Item = Patch, IntoIter: Clone>>(
    file: &mut Vec<u8>,
    kernel: &str,
    plan: impl Fn(&Function<'_>) -> Result<P, Error>,
) -> Result<(Resources, usize), Error> {
    let before = file.clone();
    let patches: Vec<Patch> = {
        let cubin = Cubin::parse(file)?;
        plan(&cubin.kernel(kernel.into()).unwrap())?.into_iter().collect()
    };
    Patch::apply_all(patches, file)?;
    let changed = before.iter().zip(&*file).filter(|(before, after)| before != after).count();
    Ok((Cubin::parse(file)?.kernel(kernel.into()).unwrap().resources()?, changed))
}

#[test]
fn registers_everywhere_they_are() {
    for (name, mut file) in
        cubins::all().into_iter().filter(|(name, _)| name.starts_with("kernels-"))
    {
        let before =
            Cubin::parse(&file).unwrap().kernel("parameters".into()).unwrap().resources().unwrap();
        let (after, changed) =
            patched(&mut file, "parameters", |kernel| kernel.patch_registers(77)).unwrap();
        let in_header = before.header_registers.is_some();
        assert_eq!(
            (after.registers, after.header_registers),
            (Some(77), in_header.then_some(77)),
            "{name}"
        );
        assert_eq!(changed, 1 + usize::from(in_header), "{name}");
        let unchanged = Resources {
            registers: before.registers,
            header_registers: before.header_registers,
            ..after
        };
        assert_eq!(unchanged, before, "{name}");
    }
}

#[test]
fn stacks_threads_and_other_numbers() {
    let mut file = cubins::read("kernels-13.5-sm_80");
    let plan = |kernel: &Function<'_>| {
        kernel.patch_symbol_attribute(eiattr::MIN_STACK_SIZE, 4096).map(Some)
    };
    let (after, _) = patched(&mut file, "local_memory", plan).unwrap();
    assert_eq!(after.stack, Some(Stack::Bytes(4096)));
    let plan = |kernel: &Function<'_>| kernel.patch_max_threads([32, 4, 2]);
    let (after, _) = patched(&mut file, "shared_memory", plan).unwrap();
    assert_eq!(after.max_threads, Some([32, 4, 2]));
    let plan = |kernel: &Function<'_>| kernel.patch_attribute(eiattr::NUM_BARRIERS, 9).map(Some);
    let (after, changed) = patched(&mut file, "shared_memory", plan).unwrap();
    assert_eq!((after.barriers, changed), (9, 1));
}

#[test]
fn what_cannot_be_is_refused() {
    let mut file = cubins::read("kernels-13.5-sm_80");
    let original = file.clone();
    let mut error = |kernel: &str, attribute: u8, value: u32| {
        let plan = |function: &Function<'_>| function.patch_attribute(attribute, value).map(Some);
        patched(&mut file, kernel, plan).unwrap_err()
    };
    let no_place = ErrorKind::NoPlace { what: "EIATTR_NUM_BARRIERS" };
    assert_eq!(error("globals", eiattr::NUM_BARRIERS, 1).kind, no_place);
    assert_eq!(
        error("globals", eiattr::NUM_BARRIERS, 1).to_string(),
        "the cubin has no place for EIATTR_NUM_BARRIERS"
    );
    let too_large = error("shared_memory", eiattr::NUM_BARRIERS, 256);
    assert!(
        too_large.to_string().starts_with("the attribute's value 256 does not fit offset"),
        "{too_large}"
    );
    let cubin = Cubin::parse(&original).unwrap();
    let kernel = cubin.kernel("globals".into()).unwrap();
    assert!(matches!(
        kernel.patch_registers(256).map(Iterator::count),
        Err(Error { kind: ErrorKind::TooLarge { limit: 255, .. }, .. })
    ));
    assert!(kernel.patch_max_threads([1, 1, 1]).is_err());
    let patch = kernel.patch_registers(9).unwrap().next().unwrap();
    let mut other = vec![0; original.len()];
    assert!(matches!(
        patch.apply(&mut other).unwrap_err().kind,
        ErrorKind::Changed { found: 0, .. }
    ));
    assert!(matches!(patch.apply(&mut [0; 8]).unwrap_err().kind, ErrorKind::Outside { file: 8 }));
    assert_eq!(file, original);
}
