//! What a linked image says about itself: functions, who refers to whom, sizes and stack.
//!
//! Read with `elf-core`. The image must be linked with `--emit-relocs`; frames are known where the compiler was told
//! `-Z emit-stack-sizes`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use elf_core::names::{EM_ARM, EM_X86_64, STT_FUNC, STT_OBJECT, STT_SECTION};
use elf_core::{Definition, File, SectionFlags};
use reloc_arm::arm::R_ARM_ABS32;
use reloc_x86::x86_64::{R_X86_64_32, R_X86_64_32S, R_X86_64_64};

/// A function or an object of the image.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// As in the source, without hashes.
    pub(crate) name: String,
    /// Address of the first byte.
    address: u64,
    size: u64,
    /// Whether it is code.
    pub(crate) code: bool,
    /// Bytes of stack that the function itself takes, if known.
    frame: Option<u64>,
    /// Those it refers to, each with the address of a place that does.
    to: BTreeMap<usize, u64>,
}

/// A linked image.
pub(crate) struct Image {
    pub(crate) nodes: Vec<Node>,
    by_name: HashMap<String, usize>,
    /// Section name to size, of those that occupy memory.
    pub(crate) sections: BTreeMap<String, u64>,
}

/// The stack that a function and all that it calls take at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stack {
    /// Bytes.
    pub(crate) bytes: u64,
    /// Some function calls itself by a detour: no bound is known.
    pub(crate) recursive: bool,
    /// The frame of some function is unknown and counts as 0.
    pub(crate) partial: bool,
}

impl Image {
    /// Reads the image at `path`.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = File::parse(&bytes)?;
        let mut sections = BTreeMap::new();
        for section in file.sections() {
            if section.flags.contains(SectionFlags::ALLOC) {
                let name = file.section_name(&section)?.to_string();
                *sections.entry(name).or_default() += section.size;
            }
        }
        let mut image = Self { nodes: Vec::new(), by_name: HashMap::new(), sections };
        image.read_symbols(&file)?;
        image.read_frames(&file)?;
        image.read_relocations(&file)?;
        Ok(image)
    }

    fn read_symbols(&mut self, file: &File<'_>) -> Result<()> {
        let Some(table) = file.symbol_table()? else { return Ok(()) };
        // The lowest bit of an address of code says that it is Thumb.
        let mask = if file.header().machine == EM_ARM { !1 } else { !0 };
        for (index, symbol) in (0..).zip(table.symbols()) {
            let Definition::Section(_) = table.section_of(index, &symbol)? else { continue };
            let name = table.name_of(&symbol)?.to_string();
            let code = symbol.r#type() == STT_FUNC;
            if !code && symbol.r#type() != STT_OBJECT {
                continue;
            }
            let address = if code { symbol.value & mask } else { symbol.value };
            self.by_name.insert(name.clone(), self.nodes.len());
            let name = format!("{:#}", rustc_demangle::demangle(&name));
            self.nodes.push(Node {
                name,
                address,
                size: symbol.size,
                code,
                frame: None,
                to: BTreeMap::new(),
            });
        }
        // Functions with the same code may share it: all names mean the node that is found by address.
        let index = Index::new(&self.nodes);
        for at in self.by_name.values_mut() {
            let address = self.nodes.get(*at).map_or(0, |node| node.address);
            *at = index.at(&self.nodes, address).unwrap_or(*at);
        }
        Ok(())
    }

    /// `.stack_sizes`: an address and a LEB128 number, again and again.
    fn read_frames(&mut self, file: &File<'_>) -> Result<()> {
        let is_64 = file.encoding().is_64();
        let mask = if file.header().machine == EM_ARM { !1 } else { !0 };
        let starts: HashMap<u64, Vec<usize>> =
            self.nodes.iter().enumerate().filter(|(_, node)| node.code).fold(
                HashMap::new(),
                |mut map, (at, node)| {
                    map.entry(node.address).or_insert_with(Vec::new).push(at);
                    map
                },
            );
        for section in file.sections() {
            if file.section_name(&section)? != ".stack_sizes" {
                continue;
            }
            let mut bytes = file.section_data(&section)?;
            let size = if is_64 { 8 } else { 4 };
            while let Some((address, rest)) = bytes.split_at_checked(size) {
                let address =
                    address.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
                let (mut frame, mut shift, mut used) = (0_u64, 0_u32, 0_usize);
                for byte in rest {
                    frame |= u64::from(byte & 0x7f) << shift;
                    shift += 7;
                    used += 1;
                    if byte & 0x80 == 0 {
                        break;
                    }
                }
                for at in starts.get(&(address & mask)).into_iter().flatten() {
                    if let Some(node) = self.nodes.get_mut(*at) {
                        node.frame = Some(frame);
                    }
                }
                bytes = rest.get(used..).unwrap_or_default();
            }
        }
        Ok(())
    }

    fn read_relocations(&mut self, file: &File<'_>) -> Result<()> {
        let index = Index::new(&self.nodes);
        let Some(table) = file.symbol_table()? else { return Ok(()) };
        let machine = file.header().machine;
        let mask = if machine == EM_ARM { !1 } else { !0 };
        for section in file.sections() {
            let Some(records) = file.relocations(&section)? else { continue };
            let target = file.section(section.info)?;
            if !target.flags.contains(SectionFlags::ALLOC) {
                continue;
            }
            let places = file.section_data(&target)?;
            for record in records {
                let Some(from) = index.at(&self.nodes, record.offset) else { continue };
                let symbol = table.get(record.symbol)?;
                let Definition::Section(_) = table.section_of(record.symbol, &symbol)? else {
                    continue;
                };
                let to = match (symbol.r#type(), record.addend) {
                    (STT_SECTION, Some(addend)) => {
                        let addend = addend.wrapping_add(bias(machine, record.r#type));
                        symbol.value.wrapping_add_signed(addend)
                    }
                    // The place holds the whole address; where an instruction has a part of it, what it means stays open.
                    (STT_SECTION, None) if record.r#type == R_ARM_ABS32 => {
                        let start = record.offset.wrapping_sub(target.address);
                        let word = usize::try_from(start)
                            .ok()
                            .and_then(|start| places.get(start..)?.first_chunk());
                        word.map_or(0, |word| u64::from(u32::from_le_bytes(*word)))
                    }
                    (STT_SECTION, None) => continue,
                    _ => symbol.value,
                };
                let to = index.at(&self.nodes, to & mask).or_else(|| index.at(&self.nodes, to));
                if let Some(to) = to.filter(|to| *to != from)
                    && let Some(node) = self.nodes.get_mut(from)
                {
                    node.to.entry(to).or_insert(record.offset);
                }
            }
        }
        Ok(())
    }

    /// The node whose symbol has this name.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Whether the image has a symbol whose name contains `part`.
    pub(crate) fn symbols_with<'a>(&'a self, part: &'a str) -> impl Iterator<Item = &'a str> {
        self.by_name.keys().map(String::as_str).filter(move |name| name.contains(part))
    }

    /// For each node from which `goal` can be reached: the next one on a shortest way, and the place that refers to it.
    pub(crate) fn ways_to(&self, goal: usize) -> HashMap<usize, (usize, u64)> {
        let mut into: Vec<Vec<(usize, u64)>> = vec![Vec::new(); self.nodes.len()];
        for (from, node) in self.nodes.iter().enumerate() {
            for (to, place) in &node.to {
                if let Some(list) = into.get_mut(*to) {
                    list.push((from, *place));
                }
            }
        }
        let (mut ways, mut queue) = (HashMap::new(), std::collections::VecDeque::from([goal]));
        while let Some(at) = queue.pop_front() {
            for (from, place) in into.get(at).into_iter().flatten() {
                if *from != goal && !ways.contains_key(from) {
                    ways.insert(*from, (at, *place));
                    queue.push_back(*from);
                }
            }
        }
        ways
    }

    /// The functions by size in bytes, largest first.
    pub(crate) fn largest(&self) -> Vec<(u64, &str)> {
        let code = self.nodes.iter().filter(|node| node.code);
        let mut list: Vec<(u64, &str)> = code.map(|node| (node.size, node.name.as_str())).collect();
        list.sort_unstable_by_key(|(size, _)| std::cmp::Reverse(*size));
        list
    }

    /// Bytes of code that come from the compiler's library: copies, fills, comparisons, arithmetic of 64 bits.
    pub(crate) fn library(&self) -> u64 {
        let is_library = |name: &str| {
            name.starts_with("compiler_builtins::")
                || name.starts_with("__")
                || matches!(name, "memcpy" | "memmove" | "memset" | "memcmp" | "bcmp")
        };
        self.nodes
            .iter()
            .filter(|node| node.code && is_library(&node.name))
            .map(|node| node.size)
            .sum()
    }

    /// The functions whose frame is unknown.
    pub(crate) fn without_frame(&self) -> impl Iterator<Item = &str> {
        self.nodes
            .iter()
            .filter(|node| node.code && node.frame.is_none())
            .map(|node| node.name.as_str())
    }

    /// The stack that the function `at` needs at most; through objects it may call every function that they name.
    pub(crate) fn stack(&self, at: usize) -> Stack {
        self.stack_of(at, &mut HashMap::new(), &mut BTreeSet::new())
    }

    fn stack_of(
        &self,
        at: usize,
        known: &mut HashMap<usize, Stack>,
        open: &mut BTreeSet<usize>,
    ) -> Stack {
        if let Some(stack) = known.get(&at) {
            return *stack;
        }
        let Some(node) = self.nodes.get(at) else { return Stack::default() };
        if !open.insert(at) {
            return Stack { bytes: 0, recursive: node.frame.is_some(), partial: false };
        }
        let mut deepest = Stack::default();
        for to in node.to.keys() {
            let stack = self.stack_of(*to, known, open);
            deepest.bytes = deepest.bytes.max(stack.bytes);
            deepest.recursive |= stack.recursive;
            deepest.partial |= stack.partial;
        }
        open.remove(&at);
        if node.code {
            deepest.bytes += node.frame.unwrap_or(0);
            deepest.partial |= node.frame.is_none();
        }
        known.insert(at, deepest);
        deepest
    }
}

/// What an addend lacks to be an offset: distances of x86-64 count from the end of a field of 4 bytes.
const fn bias(machine: u16, number: u32) -> i64 {
    match (machine, number) {
        (EM_X86_64, R_X86_64_64 | R_X86_64_32 | R_X86_64_32S) => 0,
        (EM_X86_64, _) => 4,
        _ => 0,
    }
}

/// Nodes by address.
struct Index(BTreeMap<u64, usize>);

impl Index {
    fn new(nodes: &[Node]) -> Self {
        // Where symbols share an address, the largest says most.
        let mut map: BTreeMap<u64, usize> = BTreeMap::new();
        for (at, node) in nodes.iter().enumerate() {
            let better =
                |other: &usize| nodes.get(*other).is_none_or(|other| other.size < node.size);
            if map.get(&node.address).is_none_or(better) {
                map.insert(node.address, at);
            }
        }
        Self(map)
    }

    /// The node that covers `address`.
    fn at(&self, nodes: &[Node], address: u64) -> Option<usize> {
        let (start, at) = self.0.range(..=address).next_back()?;
        let size = nodes.get(*at)?.size.max(1);
        (address - start < size).then_some(*at)
    }
}
