//! Runs machine code of `sm_80` to `sm_120` as far as kernels of the fixtures need it: integers, floating point of 16 to 64 bits, memory of
//! every kind, constant banks, barriers, branches, calls, votes. Warps go on at their lowest place, so that threads that part come together again.
//!
//! It reads instructions by fields that were found in nvdisasm's output, and says which one it does not know.

mod execute;
mod float;
mod lanes;
mod number;
mod pairs;
mod uniform;
mod word;

use super::objects::State;
use lanes::Lanes;
use word::Word;

/// A grid of blocks, and what its threads find.
pub(super) struct Grid {
    pub(super) program: u64,
    /// 90 for sm_90: some numbers of instructions mean others since.
    pub(super) sm: u32,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) banks: Vec<(u32, Vec<u8>)>,
    /// Bytes of shared memory of a block, and of local memory of a thread.
    pub(super) shared: usize,
    pub(super) local: usize,
}

/// A thread.
struct Thread {
    registers: [u32; 256],
    /// A warp has one set of these; code that reads them is the same for all threads of it, so that each can have its own.
    uniform: [u32; 64],
    predicates: [bool; 8],
    uniform_predicates: [bool; 8],
    local: Vec<u8>,
    index: [u32; 3],
    lane: u32,
    at: u64,
    state: Running,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Running {
    Runs,
    Waits,
    Ended,
}

/// What an instruction can reach beside its thread.
struct Reach<'g> {
    grid: &'g Grid,
    block: [u32; 3],
    shared: Vec<u8>,
    memory: &'g mut State,
    /// Threads of the warp that execute the instruction.
    active: u32,
    /// What these have in the register that an instruction reads of others.
    lanes: Lanes,
}

/// Instructions of a block at most: what takes longer does not end.
const LIMIT: u64 = 4 << 20;
/// Registers that read as zero, and predicates that read as true.
const ZERO: usize = 255;
const UNIFORM_ZERO: usize = 63;
const TRUE: usize = 7;

/// Runs all blocks, one after the other.
pub(super) fn run(grid: &Grid, memory: &mut State) -> Result<(), String> {
    let [x, y, z] = grid.grid;
    for index in 0..x * y * z {
        let block = [index % x, index / x % y, index / x / y];
        let shared = vec![0; grid.shared];
        let mut reach = Reach { grid, block, shared, memory, active: 0, lanes: [None; 32] };
        reach.run()?;
    }
    Ok(())
}

impl Reach<'_> {
    fn run(&mut self) -> Result<(), String> {
        let [x, y, z] = self.grid.block;
        let mut threads: Vec<Thread> = (0..x * y * z)
            .map(|index| {
                let place = [index % x, index / x % y, index / x / y];
                Thread::new(place, index % 32, self.grid)
            })
            .collect();
        let mut steps = 0;
        loop {
            let mut goes_on = false;
            for warp in threads.chunks_mut(32) {
                while self.step(warp)? {
                    goes_on = true;
                    steps += 1;
                    if steps > LIMIT {
                        return Err(format!("{LIMIT} instructions and no end"));
                    }
                }
            }
            let waits = threads.iter().any(|thread| thread.state == Running::Waits);
            for thread in threads.iter_mut().filter(|thread| thread.state == Running::Waits) {
                thread.state = Running::Runs;
            }
            if !waits {
                return Ok(());
            }
            if !goes_on {
                return Err("threads that wait for ever".into());
            }
        }
    }

    /// The next instruction of a warp, for all threads that are there.
    fn step(&mut self, warp: &mut [Thread]) -> Result<bool, String> {
        let runs = |thread: &&mut Thread| thread.state == Running::Runs;
        let Some(at) = warp.iter_mut().filter(runs).map(|thread| thread.at).min() else {
            return Ok(false);
        };
        let mut bytes = [0; 16];
        if !self.memory.read(at, &mut bytes) {
            return Err(format!("no instruction at {at:#x}"));
        }
        let word = Word(u128::from_le_bytes(bytes));
        let is_here = |thread: &Thread| {
            thread.state == Running::Runs && thread.at == at && word.guard(thread)
        };
        self.active = warp
            .iter()
            .filter(|thread| is_here(thread))
            .fold(0, |active, thread| active | 1 << thread.lane);
        if lanes::reads_others(word) {
            self.lanes = [None; 32];
            for thread in warp.iter().filter(|thread| is_here(thread)) {
                self.lanes[thread.lane as usize] = Some(thread.register(word.index(24, 8)));
            }
        }
        for thread in warp.iter_mut() {
            if thread.state != Running::Runs || thread.at != at {
                continue;
            }
            thread.at += 16;
            if self.active >> thread.lane & 1 == 1 {
                let place = at.wrapping_sub(self.grid.program) as i64;
                let outcome = self.execute(word, thread);
                outcome.map_err(|error| format!("{word:x?} at {place:#x}: {error}"))?;
            }
        }
        Ok(true)
    }
}

impl Thread {
    fn new(index: [u32; 3], lane: u32, grid: &Grid) -> Self {
        Self {
            registers: [0xdead_beef; 256],
            uniform: [0xdead_beef; 64],
            predicates: [false; 8],
            uniform_predicates: [false; 8],
            local: vec![0xcc; grid.local],
            index,
            lane,
            at: grid.program,
            state: Running::Runs,
        }
    }

    fn register(&self, index: usize) -> u32 {
        if index == ZERO { 0 } else { self.registers[index] }
    }

    fn pair(&self, index: usize) -> u64 {
        if index == ZERO {
            return 0;
        }
        u64::from(self.registers[index + 1]) << 32 | u64::from(self.registers[index])
    }

    fn set(&mut self, index: usize, value: u32) {
        if index != ZERO {
            self.registers[index] = value;
        }
    }

    fn set_pair(&mut self, index: usize, value: u64) {
        if index != ZERO {
            self.registers[index] = value as u32;
            self.registers[index + 1] = (value >> 32) as u32;
        }
    }

    fn uniform(&self, index: usize) -> u32 {
        if index == UNIFORM_ZERO { 0 } else { self.uniform[index] }
    }

    fn set_uniform(&mut self, index: usize, value: u32) {
        if index != UNIFORM_ZERO {
            self.uniform[index] = value;
        }
    }

    fn uniform_pair(&self, index: usize) -> u64 {
        if index == UNIFORM_ZERO {
            return 0;
        }
        u64::from(self.uniform[index + 1]) << 32 | u64::from(self.uniform[index])
    }

    fn set_uniform_pair(&mut self, index: usize, value: u64) {
        if index != UNIFORM_ZERO {
            self.uniform[index] = value as u32;
            self.uniform[index + 1] = (value >> 32) as u32;
        }
    }

    fn set_uniform_predicate(&mut self, index: usize, value: bool) {
        if index != TRUE {
            self.uniform_predicates[index] = value;
        }
    }

    fn predicate(&self, index: usize) -> bool {
        index == TRUE || self.predicates[index]
    }

    fn uniform_predicate(&self, index: usize) -> bool {
        index == TRUE || self.uniform_predicates[index]
    }

    fn set_predicate(&mut self, index: usize, value: bool) {
        if index != TRUE {
            self.predicates[index] = value;
        }
    }
}
