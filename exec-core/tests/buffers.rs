//! Buffers, views, holds, copies.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod mock;

use std::sync::Arc;

use exec_core::{Allocator as _, Buffer, Error, External, Limits, LruAllocator, Spec, copy};
use mock::Mock;

fn device() -> Arc<LruAllocator<Mock>> {
    Arc::new(LruAllocator::new(Mock::new(1 << 20), Limits { bytes: 1 << 20, number: 100 }))
}

#[test]
fn bad_sizes_and_specs_are_named() {
    let device = device();
    let new = |size, spec| Buffer::new(&device, size, spec).map(drop).unwrap_err();
    assert!(matches!(new(0, Spec::new()), Error::Empty));
    for size in [1 << 21, u64::MAX / 2 + 1, u64::MAX - 4096, u64::MAX] {
        assert!(
            matches!(new(size, Spec::new()), Error::OutOfMemory { size: found } if found == size)
        );
    }
    for alignment in [0, 3, 48] {
        assert!(matches!(new(1, Spec::new().aligned(alignment)), Error::Alignment { .. }));
    }
    for (address, size, aligned) in
        [(4096, 0, 64), (4097, 200, 64), (4096, 200, 3), (4096, 200, 64)]
    {
        // SAFETY: the buffer is never made.
        let external = unsafe { External::new(address, size) };
        let error = Buffer::external(&device, external, Spec::new().aligned(aligned)).map(drop);
        match (error.unwrap_err(), address, size) {
            (Error::Empty, _, 0) | (Error::Unsupported { .. }, 4096, _) => {}
            (Error::Alignment { alignment }, ..) => assert_eq!(alignment, aligned),
            (error, ..) => panic!("{error}"),
        }
    }
    assert_eq!(device.inner().live(), (0, 0));
}

#[test]
fn a_view_of_a_view_is_one_view() {
    let device = device();
    let buffer = Buffer::new(&device, 1000, Spec::new()).unwrap();
    let outer = buffer.view(100, 800).unwrap();
    let inner = outer.view(50, 100).unwrap();
    drop(outer);
    assert_eq!((inner.offset(), inner.size()), (150, 100));
    assert_eq!(inner.address().unwrap(), buffer.address().unwrap() + 150);
    assert!(matches!(
        inner.view(50, 51),
        Err(Error::Outside { offset: 50, size: 51, available: 100 })
    ));
    assert!(matches!(inner.view(1, u64::MAX), Err(Error::Outside { .. })));
    assert!(matches!(inner.copy_in(99, &[0; 2]), Err(Error::Outside { .. })));
    assert!(inner.view(100, 0).is_ok());
}

#[test]
fn a_view_of_a_freed_buffer_says_so() {
    let device = device();
    let buffer = Buffer::new(&device, 1000, Spec::new()).unwrap();
    let view = buffer.view(0, 10).unwrap();
    buffer.free().unwrap();
    // even where the memory has a new owner
    let _again = Buffer::new(&device, 1000, Spec::new()).unwrap();
    assert_eq!(device.figures().hits, 1);
    assert!(matches!(view.address(), Err(Error::Freed)));
    assert!(matches!(view.copy_in(0, &[1]), Err(Error::Freed)));
    assert!(matches!(view.copy_out(0, &mut [1]), Err(Error::Freed)));
    assert!(matches!(view.hold(), Err(Error::Freed)));
    assert!(matches!(view.host(), Err(Error::Freed)));
    assert!(matches!(copy(&view, &view), Err(Error::Freed)));
}

#[test]
fn a_buffer_in_use_is_not_given_to_anybody_else() {
    let device = device();
    let buffer = Buffer::new(&device, 1000, Spec::new()).unwrap();
    let address = buffer.address().unwrap();
    let (first, second) = (buffer.hold().unwrap(), buffer.view(10, 10).unwrap().hold().unwrap());
    assert_eq!((first.address(), second.address()), (address, address + 10));
    assert!(matches!(buffer.copy_in(0, &[1]), Err(Error::InUse)));
    assert!(matches!(buffer.copy_out(0, &mut [1]), Err(Error::InUse)));
    let view = buffer.whole();
    buffer.free().unwrap();
    assert!(matches!(view.hold(), Err(Error::Freed)));
    drop(first);
    let other = Buffer::new(&device, 1000, Spec::new()).unwrap();
    assert_ne!(other.address().unwrap(), address);
    drop(second);
    assert_eq!(device.figures().number, 1);
    let again = Buffer::new(&device, 1000, Spec::new()).unwrap();
    assert_eq!(again.address().unwrap(), address);
}

#[test]
fn copies_between_devices_and_within_one() {
    let (one, other) = (device(), Arc::new(Mock::new(1 << 24)));
    let content: Vec<u8> = (0..250).collect();
    let from = Buffer::new(&one, 250, Spec::new()).unwrap();
    from.copy_in(0, &content).unwrap();
    let to = Buffer::new(&other, 300, Spec::new()).unwrap();
    assert!(matches!(copy(&from, &to), Err(Error::Sizes { from: 250, to: 300 })));
    copy(&from, &to.view(50, 250).unwrap()).unwrap();
    let mut bytes = [0; 300];
    to.copy_out(0, &mut bytes).unwrap();
    assert_eq!((&bytes[..50], &bytes[50..]), (&[0xaa; 50][..], &content[..]));
    // overlapping
    copy(&from.view(0, 200).unwrap(), &from.view(7, 200).unwrap()).unwrap();
    let mut bytes = [0; 250];
    from.copy_out(0, &mut bytes).unwrap();
    assert_eq!(bytes[7..207], content[..200]);
    // more than goes through the host at once
    let big: Vec<u8> = (0..3_000_001u32).map(|index| (index % 251) as u8).collect();
    let (first, second) = (
        Buffer::new(&other, big.len() as u64, Spec::new()).unwrap(),
        Buffer::new(&other, big.len() as u64, Spec::new()).unwrap(),
    );
    first.copy_in(0, &big).unwrap();
    copy(&first, &second).unwrap();
    let mut bytes = vec![0; big.len()];
    second.copy_out(0, &mut bytes).unwrap();
    assert_eq!(bytes, big);
}

#[test]
fn mappings_keep_the_buffer_and_end() {
    let (one, other) = (device(), Arc::new(Mock::new(1 << 20)));
    let buffer = Buffer::new(&one, 100, Spec::new()).unwrap();
    let mapped = buffer.view(10, 20).unwrap().map_on(&other).unwrap();
    assert_eq!((mapped.address(), mapped.size()), (buffer.address().unwrap() + 11, 20));
    buffer.free().unwrap();
    assert_eq!(one.figures().number, 0);
    drop(mapped);
    assert_eq!(one.figures().number, 1);
    assert_eq!(other.imports.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn what_a_device_cannot_do_is_named() {
    let device = device();
    let buffer = Buffer::new(&device, 100, Spec::new()).unwrap();
    assert!(matches!(buffer.host(), Err(Error::Unsupported { .. })));
    assert!(matches!(buffer.host_mut(), Err(Error::Unsupported { .. })));
    // and has not left it in use
    buffer.copy_in(0, &[1]).unwrap();
    assert_eq!(buffer.device().unwrap(), device.device());
}

#[test]
fn an_error_of_giving_back_is_told_and_counted() {
    let device = device();
    let buffer = Buffer::new(&device, 100, Spec::new().not_kept()).unwrap();
    device.inner().state.lock().unwrap().release_fails = true;
    assert!(matches!(buffer.free(), Err(Error::Device(_))));
    drop(Buffer::new(&device, 100, Spec::new().not_kept()).unwrap());
    assert_eq!(device.figures().failed, 2);
    assert_eq!((device.figures().used, device.inner().live()), (0, (0, 0)));
}
