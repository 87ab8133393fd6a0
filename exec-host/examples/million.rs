//! Very many small modules in an arena: loads them, drops a third at random, loads as many again; calls all of them in between.
//!
//!     cargo run --release -p exec-host --example million -- 1000000
//!
//! Prints nanoseconds a load and an unload, and memory: of the arena, against what lives in it, and of the process.

use exec_host::{CodeArena, Loader, Module};
use std::process::Command;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Functions of four sizes, some with data of their own.
const SOURCES: [&str; 4] = [
    "int f(int x) { return x + 1; }",
    "int f(int x) { static const int table[] = {1, 1, 1, 1}; return x + table[x & 3]; }",
    "static int calls; int f(int x) { calls += 1; return x + 1 + 0 * calls; }",
    "int f(int x) { int sum = 0; for (int i = 0; i < x; i++) sum += i * (x ^ i) % 7; return x + 1 + (sum < -100); }",
];

fn main() -> Result<()> {
    let count: usize = std::env::args().nth(1).map_or(Ok(100_000), |word| word.parse())?;
    let objects = SOURCES.iter().map(|source| compile(source)).collect::<Result<Vec<_>>>()?;
    let arena = CodeArena::new();
    let loader = Loader::new().arena(&arena);
    let mut modules: Vec<Module<&[u8]>> = Vec::with_capacity(count);
    let before = resident()?;
    let load = |modules: &mut Vec<Module<_>>, number| -> Result<()> {
        let start = Instant::now();
        for index in 0..number {
            let object = objects.get(index % objects.len()).ok_or("an object")?;
            modules.push(loader.load([object.as_slice()], ())?);
        }
        println!("{} ns a load of {number}", start.elapsed().as_nanos() / number as u128);
        report(&arena, before)
    };
    load(&mut modules, count)?;
    check(&modules)?;
    let (start, third) = (Instant::now(), count / 3);
    let mut state = 1u64;
    for _ in 0..third {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let index = (state >> 33) as usize % modules.len();
        drop(modules.swap_remove(index));
    }
    println!("{} ns an unload of {third}", start.elapsed().as_nanos() / third.max(1) as u128);
    report(&arena, before)?;
    load(&mut modules, third)?;
    check(&modules)?;
    let text = std::fs::read_to_string("/proc/self/maps")?;
    let both = text.lines().filter(|line| line.contains("wx")).count();
    println!("{} mappings, {both} of them writable and executable", text.lines().count());
    Ok(())
}

/// Calls every function.
fn check(modules: &[Module<&[u8]>]) -> Result<()> {
    for (number, module) in modules.iter().enumerate() {
        // SAFETY: `int f(int)`, which does no harm.
        let function = unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>("f")? };
        // SAFETY: as above.
        if unsafe { function(number as i32 % 10) } != number as i32 % 10 + 1 {
            return Err(format!("module {number} is not what it was").into());
        }
    }
    Ok(())
}

fn report(arena: &CodeArena, before: u64) -> Result<()> {
    let statistics = arena.statistics();
    let live = statistics.code + statistics.read_only + statistics.writable;
    let ratio = statistics.mapped as f64 / live as f64;
    let process = resident()?.saturating_sub(before);
    println!(
        "  {} modules: {live} bytes live, {} in the arena ({ratio:.3} times), {process} more of the process",
        statistics.modules, statistics.mapped
    );
    Ok(())
}

/// Bytes of this process in memory.
fn resident() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split_ascii_whitespace().nth(1).ok_or("pages")?.parse()?;
    Ok(pages * 4096)
}

/// What the C compiler of this machine makes of a source.
fn compile(source: &str) -> Result<Vec<u8>> {
    let folder = std::env::temp_dir().join(format!("hoist-million-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (input, output) = (folder.join("source.c"), folder.join("source.o"));
    std::fs::write(&input, source)?;
    let status =
        Command::new("cc").args(["-c", "-O2", "-fPIC", "-o"]).args([&output, &input]).status()?;
    let object = std::fs::read(&output)?;
    std::fs::remove_dir_all(&folder)?;
    if status.success() { Ok(object) } else { Err("cc".into()) }
}
