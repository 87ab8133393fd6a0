//! The keeping allocator against a model, with faults.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod mock;

use std::sync::{Arc, Barrier};

use exec_core::{Allocator as _, Buffer, Error, Hold, Limits, LruAllocator, Spec, Statistics};
use mock::{Fault, Mock};
use proptest::prelude::*;

const CAPACITY: u64 = 20_000;
const LIMITS: Limits = Limits { bytes: 6_000, number: 5 };

type Device = LruAllocator<Mock>;

#[derive(Clone, Debug)]
enum Step {
    New { size: u64, spec: usize, fault: Option<Fault> },
    Free(usize),
    Hold(usize),
    Unhold(usize),
    Empty,
}

fn specs() -> [Spec; 4] {
    let spec = Spec::new();
    [spec, spec.zeroed(), spec.host_visible(), spec.not_kept()]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fault = prop_oneof![8 => Just(None), 1 => Just(Some(Fault::OutOfMemory)), 1 => Just(Some(Fault::Broken))];
    let size = prop_oneof![1u64..3000, Just(256), Just(257), Just(7000), Just(30_000)];
    let step = prop_oneof![
        4 => (size, 0usize..4, fault).prop_map(|(size, spec, fault)| Step::New { size, spec, fault }),
        4 => any::<usize>().prop_map(Step::Free),
        1 => any::<usize>().prop_map(Step::Hold),
        1 => any::<usize>().prop_map(Step::Unhold),
        1 => Just(Step::Empty),
    ];
    prop::collection::vec(step, 1..80)
}

/// Size of memory for a size: found by trying all classes.
fn class(size: u64) -> u64 {
    let all =
        (0..40).flat_map(|doubling| [5u64, 6, 7, 8].map(|quarters| (64 * quarters) << doubling));
    std::iter::once(256).chain(all).find(|bytes| *bytes >= size).unwrap()
}

/// What is kept and used, in the simplest way.
#[derive(Default)]
struct Model {
    /// Oldest first: list and bytes.
    kept: Vec<(usize, u64)>,
    used: u64,
    statistics: Statistics,
}

impl Model {
    fn held(&self) -> u64 {
        self.kept.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Bytes of the memory given out and whether it is kept later, or nothing if there is an error.
    fn allocate(&mut self, size: u64, spec: usize, fault: Option<Fault>) -> Option<(u64, bool)> {
        let kept = spec != 3;
        let bytes = if kept { class(size) } else { size };
        // what is kept serves zeroed requests, too
        let list = if spec == 1 { 0 } else { spec };
        let found = self.kept.iter().rposition(|piece| kept && *piece == (list, bytes));
        let outcome = match (found, fault) {
            (Some(found), _) => {
                self.kept.remove(found);
                self.statistics.hits += 1;
                Some((bytes, true))
            }
            (None, Some(Fault::Broken)) => {
                self.statistics.misses += u64::from(kept);
                None
            }
            (None, fault) => {
                self.statistics.misses += u64::from(kept);
                if fault.is_none() && self.used + self.held() + bytes <= CAPACITY {
                    Some((bytes, kept))
                } else {
                    self.statistics.emptied += 1;
                    self.kept.clear();
                    (self.used + size <= CAPACITY).then_some((size, kept && size == bytes))
                }
            }
        };
        self.used += outcome.map_or(0, |(bytes, _)| bytes);
        self.statistics.high_water = self.statistics.high_water.max(self.used + self.held());
        if outcome.is_none() {
            self.statistics.high_water = self.statistics.high_water.max(self.used);
        }
        outcome
    }

    fn release(&mut self, (bytes, kept): (u64, bool), spec: usize) {
        self.used -= bytes;
        if kept && bytes <= LIMITS.bytes {
            while self.held() + bytes > LIMITS.bytes || self.kept.len() >= LIMITS.number {
                self.kept.remove(0);
                self.statistics.evicted += 1;
            }
            self.kept.push((if spec == 1 { 0 } else { spec }, bytes));
        }
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            held: self.held(),
            number: self.kept.len(),
            used: self.used,
            ..self.statistics
        }
    }
}

struct Piece {
    /// None when it was freed while a call held it.
    buffer: Option<Buffer<Device>>,
    holds: Vec<Hold<Device>>,
    memory: (u64, bool),
    spec: usize,
    address: u64,
}

fn run(steps: Vec<Step>) {
    let device = Arc::new(LruAllocator::new(Mock::new(CAPACITY), LIMITS));
    let mut model = Model::default();
    let mut pieces: Vec<Piece> = Vec::new();
    for step in steps {
        match step {
            Step::New { size, spec, fault } => {
                {
                    let mut state = device.inner().state.lock().unwrap();
                    let next = state.calls + 1;
                    state.faults = fault.map(|fault| (next, fault)).into_iter().collect();
                }
                let made = Buffer::new(&device, size, specs()[spec]);
                let expected = model.allocate(size, spec, fault);
                match (made, expected) {
                    (Ok(buffer), Some(memory)) => {
                        let address = buffer.address().unwrap();
                        assert!(
                            pieces.iter().all(|piece| piece.address != address),
                            "given out twice"
                        );
                        let mut bytes = vec![0; size as usize];
                        buffer.copy_out(0, &mut bytes).unwrap();
                        assert!(spec != 1 || bytes.iter().all(|byte| *byte == 0), "not zeroed");
                        buffer.copy_in(0, &vec![0x55; size as usize]).unwrap();
                        pieces.push(Piece {
                            buffer: Some(buffer),
                            holds: vec![],
                            memory,
                            spec,
                            address,
                        });
                    }
                    (Err(Error::OutOfMemory { size: found }), None) => assert_eq!(found, size),
                    (Err(Error::Device(_)), None) => assert_eq!(fault, Some(Fault::Broken)),
                    (made, expected) => panic!("{made:?}, expected {expected:?}"),
                }
            }
            Step::Free(index) if !pieces.is_empty() => {
                let index = index % pieces.len();
                if let Some(buffer) = pieces[index].buffer.take() {
                    buffer.free().unwrap();
                }
                if pieces[index].holds.is_empty() {
                    let piece = pieces.remove(index);
                    model.release(piece.memory, piece.spec);
                }
            }
            Step::Hold(index) if !pieces.is_empty() => {
                let index = index % pieces.len();
                let piece = &mut pieces[index];
                piece.holds.extend(piece.buffer.as_ref().map(|buffer| buffer.hold().unwrap()));
            }
            Step::Unhold(index) if !pieces.is_empty() => {
                let index = index % pieces.len();
                let was_held = pieces[index].holds.pop().is_some();
                if was_held && pieces[index].holds.is_empty() && pieces[index].buffer.is_none() {
                    let piece = pieces.remove(index);
                    model.release(piece.memory, piece.spec);
                }
            }
            Step::Empty => {
                assert_eq!(device.empty().unwrap(), model.held());
                model.kept.clear();
            }
            _ => {}
        }
        assert_eq!(device.statistics(), model.statistics());
        assert!(
            device.statistics().held <= LIMITS.bytes && device.statistics().number <= LIMITS.number
        );
        let (number, bytes) = device.inner().live();
        assert_eq!((number, bytes), (pieces.len() + model.kept.len(), model.used + model.held()));
    }
    drop(pieces);
    device.empty().unwrap();
    assert_eq!(device.inner().live(), (0, 0), "leaked");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn is_as_the_model(steps in steps()) {
        run(steps);
    }
}

/// A fixed course: fills, frees, asks again.
fn course(device: &Arc<Device>) -> Result<(), Error> {
    let mut outcome = Ok(());
    let mut held = Vec::new();
    for round in 0..6u64 {
        for size in [100, 300, 1000, 1000, 2000] {
            let spec = specs()[(round % 4) as usize];
            match Buffer::new(device, size + round, spec) {
                Ok(buffer) => held.push(buffer),
                Err(error) => outcome = Err(error),
            }
        }
        held.drain(..3.min(held.len())).for_each(drop);
    }
    outcome
}

#[test]
fn a_fault_at_any_allocation_loses_nothing() {
    let new = || Arc::new(LruAllocator::new(Mock::new(1 << 20), LIMITS));
    let device = new();
    course(&device).unwrap();
    let calls = device.inner().state.lock().unwrap().calls;
    assert!(calls > 10);
    for fault in [Fault::OutOfMemory, Fault::Broken] {
        for at in 1..=calls {
            let device = new();
            device.inner().state.lock().unwrap().faults = vec![(at, fault)];
            let outcome = course(&device);
            match fault {
                // there is memory once the kept pieces are given back
                Fault::OutOfMemory => {
                    outcome.unwrap();
                    assert_eq!(device.statistics().emptied, 1);
                }
                Fault::Broken => assert!(matches!(outcome, Err(Error::Device(_)))),
            }
            assert_eq!(device.statistics().used, 0);
            device.empty().unwrap();
            assert_eq!(device.inner().live(), (0, 0));
        }
    }
    let device = new();
    device.inner().state.lock().unwrap().failing = Some(Fault::OutOfMemory);
    assert!(matches!(course(&device), Err(Error::OutOfMemory { .. })));
    assert_eq!(device.inner().live(), (0, 0));
}

#[test]
fn many_threads_share_it() {
    let device = Arc::new(LruAllocator::new(Mock::new(1 << 20), LIMITS));
    let start = Barrier::new(4);
    std::thread::scope(|threads| {
        for thread in 0..4u8 {
            let (device, start) = (&device, &start);
            threads.spawn(move || {
                start.wait();
                for round in 0..2000u64 {
                    let size = 200 + round * 37 % 2000;
                    let buffer = Buffer::new(device, size, Spec::new()).unwrap();
                    buffer.copy_in(0, &vec![thread; size as usize]).unwrap();
                    let hold = buffer.hold().unwrap();
                    if round % 3 == 0 {
                        buffer.free().unwrap();
                        drop(hold);
                        continue;
                    }
                    drop(hold);
                    let mut bytes = vec![0; size as usize];
                    buffer.copy_out(0, &mut bytes).unwrap();
                    assert!(bytes.iter().all(|byte| *byte == thread), "shared with another");
                }
            });
        }
    });
    let statistics = device.statistics();
    assert_eq!((statistics.used, statistics.hits + statistics.misses), (0, 8000));
    assert!(statistics.held <= LIMITS.bytes && statistics.number <= LIMITS.number);
    assert_eq!(device.inner().live(), (statistics.number, statistics.held));
    drop(device);
}

#[test]
fn dropping_it_gives_all_back() {
    let device = LruAllocator::new(Mock::new(1 << 20), LIMITS);
    let memory = device.allocate(100, Spec::new()).unwrap();
    device.release(memory).unwrap();
    assert_eq!(device.statistics().number, 1);
    drop(device);
}
