//! Call and return stacks: a kernel has what its callees need besides, as nvlink 13.5 has it of the same objects.
#![cfg(test)]
#![cfg(feature = "link")]

mod objects;

use nvinfo::{Attributes, eiattr};
use objects::{attribute, bytes_of, halves, put32};
use reloc_cuda::link::link;

/// Numbers and values of the attributes of a function.
fn attributes(cubin: &[u8], section: &str) -> Vec<(u8, Option<u32>)> {
    let range = bytes_of(cubin, section);
    let rows = Attributes::new(&cubin[range.clone()], range.start as u64).map(Result::unwrap);
    rows.map(|row| (row.number, row.number_value())).collect()
}

/// Attributes of the kernel `branches`, whose own stack is `own`, where that of the function it calls is `callee`.
fn linked(own: Option<u32>, callee: u32) -> Vec<(u8, Option<u32>)> {
    let [mut a, mut b] = halves("data", "13.5-sm_90");
    let at = attribute(&b, ".nv.info.chosen", eiattr::CRS_STACK_SIZE);
    put32(&mut b, at + 4, callee);
    if let Some(own) = own {
        // in the place of the version of the toolkit's interface, of as many bytes
        let at = attribute(&a, ".nv.info.branches", eiattr::CUDA_API_VERSION);
        a[at + 1] = eiattr::CRS_STACK_SIZE;
        put32(&mut a, at + 4, own);
    }
    let linked = link(&[&a, &b]).unwrap().bytes;
    let of_callee = attributes(&linked, ".nv.info.chosen");
    assert!(of_callee.contains(&(eiattr::CRS_STACK_SIZE, Some(callee))), "its own");
    attributes(&linked, ".nv.info.branches")
}

#[test]
fn kernels_have_the_stack_of_what_they_call() {
    let stack = |size| (eiattr::CRS_STACK_SIZE, Some(size));
    let none = linked(None, 0);
    assert!(none.iter().all(|row| row.0 != eiattr::CRS_STACK_SIZE));
    // behind the kernel's own attributes
    assert_eq!(linked(None, 0x18), [&none[..], &[stack(0x18)]].concat());
    let mut all = none;
    let version = all.iter_mut().find(|row| row.0 == eiattr::CUDA_API_VERSION).unwrap();
    *version = stack(0x40);
    assert_eq!(linked(Some(0x28), 0x18), all);
    assert_eq!(linked(Some(0x40), 0), all);
}
