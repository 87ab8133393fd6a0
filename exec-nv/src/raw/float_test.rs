//! Floating point as kernels compute it in the interpreter, against this machine's processor: `floats.ptx` on four generations.

use std::path::{Path, PathBuf};
use std::process::Command;

use exec_core::{Device as _, Scalar, Spec};

use super::fake::{Class, Fake};
use super::{RawArgument, RawDevice, RawOptions};
use crate::NvLaunch;

mod expected;
mod processor;

/// Generations, and what their code is for.
pub(super) const CODE: [(Class, u32); 4] =
    [(Class::AMPERE, 80), (Class::HOPPER, 90), (Class::BLACKWELL, 100), (Class::BLACKWELL_12, 120)];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda")
}

pub(super) fn cubin(name: &str, sm: u32) -> Vec<u8> {
    std::fs::read(fixtures().join(format!("{name}-13.5-sm_{sm}.cubin"))).unwrap()
}

/// A device of a generation with code that runs.
pub(super) struct Bench {
    device: RawDevice<Fake>,
    cubin: Vec<u8>,
}

impl Bench {
    pub(super) fn new(class: Class, cubin: Vec<u8>) -> Self {
        let fake = Fake::new(class);
        fake.state().runs = true;
        let limit = core::time::Duration::from_secs(60);
        let options = RawOptions { limit, ..RawOptions::default() };
        Self { device: RawDevice::open(fake, 0, options).unwrap(), cubin }
    }

    /// Runs a kernel on rows of operands: the results of each of its lines, one for each row.
    pub(super) fn run(
        &self,
        kernel: &str,
        input: &[u8],
        rows: usize,
        lines: usize,
        size: usize,
    ) -> Vec<Vec<u8>> {
        let image = self.device.load(&self.cubin).unwrap();
        let kernel = self.device.kernel(&image, kernel).unwrap();
        let source = self.device.buffer(input.len() as u64, Spec::new()).unwrap();
        source.copy_in(0, input).unwrap();
        let bytes = rows * lines * size;
        let out = self.device.buffer(bytes as u64, Spec::new()).unwrap();
        let arguments = [
            RawArgument::Buffer(&source),
            RawArgument::Buffer(&out),
            RawArgument::Value(Scalar::U32(rows as u32)),
        ];
        let launch = NvLaunch { wait: true, ..NvLaunch::new((rows as u32).div_ceil(64), 64) };
        // SAFETY: the kernel writes a value for each line and row.
        unsafe { kernel.launch(self.device.queue(), &arguments, &launch) }.unwrap();
        let mut found = vec![0; bytes];
        out.copy_out(0, &mut found).unwrap();
        found.chunks(rows * size).map(<[u8]>::to_vec).collect()
    }
}

/// Numbers where instructions differ, and many between.
fn words(count: usize, mut seed: u64) -> Vec<u32> {
    let special = [
        0,
        1,
        0x7f_ffff,
        0x80_0000,
        0x80_0001,
        0x3f80_0000,
        0x3fc0_0000,
        0x3f00_0000,
        0x4020_0000,
        0x4f00_0000,
        0x4eff_ffff,
        0x4f80_0000,
        0x5f00_0000,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7fc0_0000,
        0x7f80_0001,
        0x0040_0000,
        0x3f7f_ffff,
        0x4b00_0001,
    ];
    (0..count)
        .map(|index| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x1234_5679);
            let random = (seed >> 32) as u32;
            match random % 5 {
                0 => special[(seed >> 20) as usize % special.len()] | random & 0x8000_0000,
                1 | 2 => random & 0x807f_ffff | (0x70 + (index as u32 % 32)) << 23,
                3 => random & 0x800f_ffff,
                _ => random.rotate_left(7),
            }
        })
        .collect()
}

fn doubles(count: usize, seed: u64) -> Vec<u64> {
    let (high, low) = (words(count, seed), words(count, seed + 7));
    high.iter()
        .zip(low)
        .enumerate()
        .map(|(index, (&high, low))| match index % 4 {
            // what 32 bits have, and halves between integers
            0 => f64::from(f32::from_bits(high)).to_bits(),
            1 => (f64::from(high as i32 >> (index % 31)) + 0.5).to_bits(),
            2 => {
                u64::from(high & 0x800f_ffff | (0x3f0 + (index as u32 % 80)) << 20) << 32
                    | u64::from(low)
            }
            _ => u64::from(high) << 32 | u64::from(low),
        })
        .collect()
}

const ROWS: usize = 256;

fn judge(bench: &Bench, label: &str) {
    let numbers = words(3 * ROWS, 1);
    let bytes: Vec<u8> = numbers.iter().flat_map(|word| word.to_le_bytes()).collect();
    let rows: Vec<[u32; 3]> = numbers.chunks(3).map(|row| [row[0], row[1], row[2]]).collect();
    for (kernel, expect, is_integer) in [
        ("single", expected::single as fn([f32; 3]) -> Vec<u32>, false),
        ("compared", expected::compared, true),
        ("pairs", expected::pairs, true),
    ] {
        let expected: Vec<Vec<u32>> =
            rows.iter().map(|row| expect(row.map(f32::from_bits))).collect();
        let lines = expected[0].len();
        let found = bench.run(kernel, &bytes, ROWS, lines, 4);
        for (line, found) in found.iter().enumerate() {
            for (index, found) in found.chunks(4).enumerate() {
                let found = u32::from_le_bytes(found.try_into().unwrap());
                let wanted = expected[index][line];
                let is_same = found == wanted || !is_integer && both_nan(found, wanted);
                let row = rows[index];
                assert!(
                    is_same,
                    "{label} {kernel} line {line} of {row:x?}: {found:#x}, expected {wanted:#x}"
                );
            }
        }
    }
    let found = bench.run("approximate", &bytes, ROWS, expected::APPROXIMATE.len(), 4);
    for (found, (name, exact, is_near)) in found.iter().zip(expected::APPROXIMATE) {
        for (found, row) in found.chunks(4).zip(&rows) {
            let found = f32::from_le_bytes(found.try_into().unwrap());
            let [a, b, _] = row.map(f32::from_bits);
            assert!(
                is_near(a, b, found, exact(a.into(), b.into())),
                "{label} {name} of {a:e}, {b:e}: {found:e}"
            );
        }
    }
    let numbers = doubles(3 * ROWS, 5);
    let bytes: Vec<u8> = numbers.iter().flat_map(|word| word.to_le_bytes()).collect();
    let rows: Vec<[f64; 3]> =
        numbers.chunks(3).map(|row| [row[0], row[1], row[2]].map(f64::from_bits)).collect();
    let expected: Vec<Vec<u64>> = rows.iter().map(|row| expected::wide(*row)).collect();
    let found = bench.run("wide", &bytes, ROWS, expected[0].len(), 8);
    for (line, found) in found.iter().enumerate() {
        for (index, found) in found.chunks(8).enumerate() {
            let found = u64::from_le_bytes(found.try_into().unwrap());
            let wanted = expected[index][line];
            let are_nan = f64::from_bits(found).is_nan() && f64::from_bits(wanted).is_nan();
            let row = rows[index];
            assert!(
                found == wanted || are_nan,
                "{label} wide line {line} of {row:?}: {found:#x}, expected {wanted:#x}"
            );
        }
    }
}

fn both_nan(a: u32, b: u32) -> bool {
    f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan()
}

#[test]
fn floating_point_is_what_the_processor_computes() {
    if !processor::knows_all() {
        println!(
            "skipped: floating_point_is_what_the_processor_computes: needs a processor with FMA and F16C"
        );
        return;
    }
    for (class, sm) in CODE {
        judge(&Bench::new(class, cubin("floats", sm)), &format!("sm_{sm}"));
    }
}

/// The same code as an object, linked by this project: entry points and slow paths are functions then.
#[test]
fn floating_point_of_linked_objects() {
    let has_ptxas = Command::new("ptxas").arg("--version").output().is_ok();
    if !processor::knows_all() || !has_ptxas {
        println!("skipped: floating_point_of_linked_objects: needs ptxas on PATH, FMA and F16C");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (class, sm) in CODE {
        let object = folder.path().join(format!("{sm}.cubin"));
        let mut assemble = Command::new("ptxas");
        assemble.args(["-c", "-arch", &format!("sm_{sm}"), "-o"]).arg(&object);
        let output = assemble.arg(fixtures().join("floats.ptx")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let linked = reloc_cuda::link::link(&[&std::fs::read(object).unwrap()]).unwrap();
        judge(&Bench::new(class, linked.bytes), &format!("sm_{sm}, linked"));
    }
}
