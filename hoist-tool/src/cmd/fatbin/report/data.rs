//! What the page shows: rows of numbers, with names and limits apart, as tens of thousands of kernels share a few of them.

use std::collections::HashMap;
use std::hash::Hash;

use serde::Serialize;

use super::super::diff::Difference;
use super::super::kernels::KernelRow;
use crate::demangle::family;
use crate::occupancy::Curve;

/// All of it.
#[derive(Debug, Serialize)]
pub(super) struct Data {
    title: String,
    /// The files.
    files: Numbered<String>,
    /// `sm_80`, `ptx compute_90`.
    archs: Numbered<String>,
    /// Names of kernels as in the source.
    names: Numbered<String>,
    /// Names without arguments of templates.
    families: Numbered<String>,
    /// What code takes.
    images: Vec<ImageSum>,
    kernels: Vec<Kernel>,
    curves: Numbered<Curve>,
    changes: Option<Difference>,
    #[serde(skip)]
    sums: HashMap<(usize, String, usize), usize>,
}

/// An image of a file: what it takes, and the kernels in it.
pub(super) struct ImageKernels {
    pub(super) kind: String,
    pub(super) arch: String,
    pub(super) stored: u64,
    pub(super) unpacked: u64,
    pub(super) kernels: Vec<KernelRow>,
}

/// Things with numbers, each once.
#[derive(Debug)]
struct Numbered<T> {
    all: Vec<T>,
    numbers: HashMap<T, usize>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { all: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn number(&mut self, one: &T) -> usize {
        if let Some(number) = self.numbers.get(one) {
            return *number;
        }
        let number = self.all.len();
        self.all.push(one.clone());
        self.numbers.insert(one.clone(), number);
        number
    }
}

impl<T: Serialize> Serialize for Numbered<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all.serialize(serializer)
    }
}

/// Images of one kind for one architecture in one file.
#[derive(Debug, Serialize)]
struct ImageSum {
    file: usize,
    kind: String,
    arch: usize,
    images: u64,
    stored: u64,
    unpacked: u64,
}

/// A kernel. Sizes in bytes.
#[derive(Debug, Serialize)]
struct Kernel {
    file: usize,
    arch: usize,
    name: usize,
    family: usize,
    registers: Option<u32>,
    shared: u64,
    stack: Option<u64>,
    local: u64,
    code: u64,
    /// Threads of a block that the kernel names.
    threads: Option<u32>,
    /// How many warps run by the size of blocks, if the limits of the architecture are known.
    curve: Option<usize>,
}

impl Data {
    pub(super) fn new(title: String) -> Self {
        Self {
            title,
            files: Numbered::default(),
            archs: Numbered::default(),
            names: Numbered::default(),
            families: Numbered::default(),
            images: Vec::new(),
            kernels: Vec::new(),
            curves: Numbered::default(),
            changes: None,
            sums: HashMap::new(),
        }
    }

    /// Says that a file has images.
    pub(super) fn file(&mut self, file: &str) {
        self.files.number(&file.to_owned());
    }

    /// Adds an image.
    pub(super) fn image(&mut self, file: &str, image: &ImageKernels) {
        let (file, arch) = (self.files.number(&file.to_owned()), self.archs.number(&image.arch));
        let key = (file, image.kind.clone(), arch);
        let index = *self.sums.entry(key).or_insert(self.images.len());
        if index == self.images.len() {
            let kind = image.kind.clone();
            self.images.push(ImageSum { file, kind, arch, images: 0, stored: 0, unpacked: 0 });
        }
        if let Some(sum) = self.images.get_mut(index) {
            sum.images += 1;
            sum.stored = sum.stored.saturating_add(image.stored);
            sum.unpacked = sum.unpacked.saturating_add(image.unpacked);
        }
        for row in &image.kernels {
            let readable = row.readable(false).to_string();
            let kernel = Kernel {
                file,
                arch,
                family: self.families.number(&family(&readable)),
                name: self.names.number(&readable),
                registers: row.registers,
                shared: row.shared.unwrap_or(0),
                stack: row.stack,
                local: row.local.unwrap_or(0),
                code: row.code_size,
                threads: row.threads,
                curve: Curve::of(row.sm, row.demand).map(|curve| self.curves.number(&curve)),
            };
            self.kernels.push(kernel);
        }
    }

    pub(super) fn changes(&mut self, changes: Difference) {
        self.changes = Some(changes);
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }
}
