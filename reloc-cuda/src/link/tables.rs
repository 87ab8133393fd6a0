//! What describes the rest: symbols, attributes, the call graph, notes.

use super::entity::EntityId;
use super::error::LinkError;
use super::info::Numbers;
use super::linked::LinkedMercury;
use super::object::Role;
use super::out::{Class, Info, Link, Out, OutId};
use super::state::State;
use super::strings::Strings;
use super::write::{self, Sections, Stage};
use super::{mercury, notes, order};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use elf_core::names::{
    SHT_CUDA_CALLGRAPH, SHT_CUDA_COMPAT_INFO, SHT_CUDA_INFO, SHT_CUDA_PROTOTYPE,
    SHT_CUDA_RELOCINFO, SHT_NOTE, SHT_STRTAB, SHT_SYMTAB, STB_LOCAL,
};
use nvinfo::{Attributes, HeaderForm, TargetSuffix};

/// How the driver is to fill `R_CUDA_ABS55_16_34`: `.nv.rel.action`, up to `sm_90`.
const RELOCATION_ACTIONS: [u8; 16] =
    [0x73, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x25, 0, 0x05, 0x36];

/// Sections that are filled once symbols have numbers.
struct Tables {
    strings: OutId,
    symbols: OutId,
    /// `.nv.info`, if there is anything in it.
    module: Option<OutId>,
    /// Section of the object, function, section of the linked file.
    infos: Vec<((usize, u32), EntityId, OutId)>,
    calls: OutId,
    prototypes: Option<OutId>,
    /// Position in the list of records.
    records: BTreeMap<OutId, usize>,
    mercury: mercury::Tables,
}

impl State<'_> {
    /// Makes all tables and gives the file.
    pub(super) fn finish(mut self) -> Result<(Vec<u8>, LinkedMercury), LinkError> {
        self.mercury = self.judge_mercury();
        let tables = self.make_tables()?;
        let symbols: order::Symbols = self.symbols();
        let sections = Sections::of(&self.outs, &symbols.needed);
        let numbers: Numbers =
            (0u32..).zip(&symbols.all).filter_map(|(at, one)| Some((one.meaning?, at))).collect();
        let mut strings = Strings::new();
        self.prototypes().for_each(|(_, text)| {
            strings.add(text);
        });
        if let Some(out) = tables.module {
            self.outs[out].data = self.module_info(&numbers)?;
        }
        for &(source, function, out) in &tables.infos {
            self.outs[out].data = self.function_info(source, function, &numbers)?;
        }
        self.outs[tables.calls].data = self.call_graph(&numbers, &mut strings);
        if let Some(out) = tables.prototypes {
            self.outs[out].data = self.prototype_table(&numbers, &mut strings);
        }
        for (&out, &list) in &tables.records {
            if let Some((_, _, list)) = self.records.get(list) {
                self.outs[out].data = write::records(list, &numbers);
            }
        }
        let module = tables.module.map(|out| self.outs[out].data.clone());
        let all = (&symbols, &sections, &numbers);
        self.outs[tables.symbols].data = write::symbol_table(&symbols.all, &sections, &mut strings);
        self.fill_mercury(&tables.mercury, all, &mut strings, module)?;
        self.outs[tables.strings].data = strings.into_bytes();
        let late = symbols.all.last().is_some_and(|symbol| symbol.info >> 4 == STB_LOCAL);
        let count = if late { symbols.all.len() as u32 } else { symbols.locals };
        let counts = (self.flags(), [count, symbols.locals], Stage::Linked(self.sm));
        Ok((write::file(&self.outs, &sections, &numbers, counts), self.mercury))
    }

    fn make_tables(&mut self) -> Result<Tables, LinkError> {
        let has_module = !self.module_info(&Numbers::new())?.is_empty();
        let symbol_linked =
            |outs: &mut super::out::Outs, out: Out| outs.push(Out { link: Link::Symbols, ..out });
        let outs = &mut self.outs;
        outs.push(Out::new(b".shstrtab", Class::SectionNames, SHT_STRTAB, 1));
        let strings = outs.push(Out::new(b".strtab", Class::Strings, SHT_STRTAB, 1));
        let symbols = outs.push(Out {
            link: Link::Strings,
            info: Info::Symbols,
            entry_size: 24,
            ..Out::new(b".symtab", Class::Symbols, SHT_SYMTAB, 8)
        });
        let module = has_module.then(|| {
            symbol_linked(outs, Out::new(b".nv.info", Class::ModuleInfo, SHT_CUDA_INFO, 4))
        });
        let graph = Out::new(b".nv.callgraph", Class::CallGraph, SHT_CUDA_CALLGRAPH, 4);
        let calls = symbol_linked(outs, Out { entry_size: 8, ..graph });
        if self.sm < 100 {
            self.outs.push(Out {
                entry_size: 8,
                data: RELOCATION_ACTIONS.into(),
                ..Out::new(b".nv.rel.action", Class::RelocationActions, SHT_CUDA_RELOCINFO, 8)
            });
        }
        let has_prototypes = self.prototypes().next().is_some();
        let prototypes = has_prototypes.then(|| {
            let table = Out::new(b".nv.prototype", Class::Prototypes, SHT_CUDA_PROTOTYPE, 4);
            symbol_linked(&mut self.outs, Out { entry_size: 8, ..table })
        });
        self.notes()?;
        let sources = self.info_sections();
        let mut infos = Vec::new();
        for (source, function, text) in sources {
            let name = [b".nv.info.", self.entities[function].name.as_bytes()].concat();
            let out = Out {
                flags: 0x40, // SHF_INFO_LINK
                info: Info::Section(text),
                ..Out::new(&name, Class::Info, SHT_CUDA_INFO, 4)
            };
            infos.push((source, function, symbol_linked(&mut self.outs, out)));
        }
        let records = self.record_sections();
        let mercury = self.take_mercury(&infos, (has_module, calls, prototypes))?;
        Ok(Tables { strings, symbols, module, infos, calls, prototypes, records, mercury })
    }

    /// The linker's note and those of all objects; what the first object says of itself, or would say in the newer form.
    pub(super) fn notes(&mut self) -> Result<(), LinkError> {
        let mut tools = notes::tool(self.sm, self.suffix(), &self.mercury.remark());
        let mut tool_flags = notes::TOOL_FLAGS;
        for object in self.objects.iter() {
            for (_, section) in object.with_role(Role::ToolNote) {
                tool_flags = section.header.flags.bits();
                tools.extend_from_slice(section.data);
                tools.resize(tools.len().next_multiple_of(4), 0);
            }
        }
        self.outs.push(Out {
            flags: tool_flags,
            data: tools,
            ..Out::new(b".note.nv.tkinfo", Class::ToolNote, SHT_NOTE, 4)
        });
        let objects = alloc::rc::Rc::clone(&self.objects);
        let Some(object) = objects.first() else { return Ok(()) };
        let cuda = object.with_role(Role::CudaNote).next().map(|(_, section)| section);
        let mut compats = objects.iter().flat_map(|object| object.with_role(Role::Compat));
        let compat = compats.next().map(|(_, section)| section);
        let has_compat = self.sm >= notes::FIRST_WITH_COMPAT;
        // what is for an older architecture still is when it is linked to what is for a newer one
        let of = objects.iter().map(|object| object.cubin.target());
        let oldest = of.filter_map(|target| target.virtual_sm).min().unwrap_or(self.sm);
        let data = match cuda {
            Some(section) if section.name == ".note.nv.cuver" => {
                notes::with_virtual(section.data, oldest)
            }
            _ => notes::cuda(oldest, self.newest_toolkit()),
        };
        self.outs.push(Out {
            flags: match cuda {
                Some(section) => section.header.flags.bits(),
                None if has_compat => notes::CUDA_FLAGS | 0x40, // SHF_INFO_LINK
                None => notes::CUDA_FLAGS,
            },
            link: Link::ToolNote,
            info: Info::Compat,
            data,
            ..Out::new(
                cuda.map_or(b".note.nv.cuinfo", |section| section.name.as_bytes()),
                Class::CudaNote,
                SHT_NOTE,
                4,
            )
        });
        if compat.is_none() && !has_compat {
            return Ok(());
        }
        for object in objects.iter() {
            for (_, section) in object.with_role(Role::Compat) {
                for row in Attributes::new(section.data, section.header.offset) {
                    row.map_err(LinkError::damaged(object.index))?;
                }
            }
        }
        let lists = objects.iter().flat_map(|object| object.with_role(Role::Compat));
        let lists = lists.map(|(_, section)| section.data);
        let is_accelerated = self.suffix() == TargetSuffix::Accelerated;
        let data = super::compat::merged(lists, self.sm, is_accelerated);
        self.outs.push(Out {
            flags: compat.map_or(0, |section| section.header.flags.bits()),
            data,
            ..Out::new(b".nv.compat", Class::Compat, SHT_CUDA_COMPAT_INFO, 4)
        });
        Ok(())
    }

    /// The suffix of the architecture: the narrowest of the objects.
    fn suffix(&self) -> TargetSuffix {
        let ours = self.objects.iter().map(|object| object.cubin.target());
        let ours: Vec<_> =
            ours.filter(|one| one.sm == Some(self.sm)).map(|one| one.suffix).collect();
        let mut narrow = [TargetSuffix::Accelerated, TargetSuffix::Family].into_iter();
        narrow.find(|suffix| ours.contains(suffix)).unwrap_or(TargetSuffix::Plain)
    }

    /// `e_flags` less the number of the note: those of the first object; if that has the older form, the architecture and a
    /// bit that files from `sm_100` on have another of.
    pub(super) fn flags(&self) -> u32 {
        let first = self.objects.first().map(|object| &object.cubin);
        let newer = first.filter(|cubin| cubin.target().form == HeaderForm::V8);
        let low = newer
            .map_or(if self.sm < 100 { 4 } else { 2 }, |cubin| cubin.file().header().flags & 0xff);
        (self.sm & 0xffff) << 8 | low
    }

    /// The newest toolkit that made an object, at least the first one of this form of notes.
    fn newest_toolkit(&self) -> u32 {
        let toolkits = self.objects.iter().filter_map(|object| object.cubin.target().toolkit);
        toolkits.map(|toolkit| toolkit.0).max().unwrap_or(0).max(notes::FIRST_TOOLKIT)
    }
}
