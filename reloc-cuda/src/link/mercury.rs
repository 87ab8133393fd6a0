//! The Mercury form of the code, from `sm_100` on: `.nv.merc.*` and `.nv.capmerc.*`, out of which a driver's finalizer makes
//! machine code for other members of the family.
//!
//! A program in the program: symbols with the numbers of the others, sections of its own for code, records and attributes, and
//! the same bytes for initialized variables and constants. What a function's Mercury is made of is its machine code and what that
//! differs in, so that it stays true as long as both are taken from one object, which they are here.

use super::capsule;
use super::entity::{EntityId, Kind, SYMBOL_OF_TEXT};
use super::error::LinkError;
use super::info::Numbers;
use super::linked::LinkedMercury;
use super::mercury_object::{
    MODULE_INFO, are_literals, is_reserved, mercury_code, mercury_info, mercury_symbols,
};
use super::mercury_records::{FLAGS_WITH_INFO, Forms, is_linked};
use super::object::{Object, Role};
use super::order::{OutSymbol, Symbols};
use super::out::{Class, Info, Link, Meaning, Out, OutId, OutRecord};
use super::record::Bytes;
use super::relocate::Fate;
use super::reserved;
use super::state::State;
use super::strings::Strings;
use super::write::{self, Sections};
use alloc::rc::Rc;
use alloc::vec::Vec;
use elf_core::Symbol;
use elf_core::names::{
    SHF_CUDA_MERCURY, SHT_CUDA_CAPMERC, SHT_CUDA_GLOBAL_INIT, SHT_CUDA_MERCURY_CALLGRAPH,
    SHT_CUDA_MERCURY_CONSTANT_OPT, SHT_CUDA_MERCURY_CONSTANT_USER, SHT_CUDA_MERCURY_INFO,
    SHT_CUDA_MERCURY_PROTOTYPE, SHT_CUDA_MERCURY_RELA, SHT_CUDA_MERCURY_SYMTAB,
    SHT_CUDA_RESERVED_SHARED, SHT_PROGBITS, STT_CUDA_OBJECT, STT_SECTION,
};

/// The first architecture that is made of Mercury.
pub(super) const FIRST_SM: u32 = 100;

/// The sections of Mercury that are filled once symbols have numbers.
#[derive(Default)]
pub(super) struct Tables {
    symbols: Option<OutId>,
    module: Option<OutId>,
    /// Object and section, function, section of the linked file.
    infos: Vec<((usize, u32), EntityId, OutId)>,
    records: Vec<(OutId, Vec<OutRecord>)>,
    /// What stands for a section of the program in Mercury.
    forms: Forms,
}

impl State<'_> {
    /// What becomes of the objects' Mercury.
    pub(super) fn judge_mercury(&self) -> LinkedMercury {
        if self.sm < FIRST_SM {
            return LinkedMercury::None;
        }
        let gap = |object: &Object<'_>| {
            let why = self.mercury_gap(object)?;
            Some(LinkedMercury::LeftOut { object: object.index, why })
        };
        self.objects.iter().find_map(gap).unwrap_or(LinkedMercury::Merged)
    }

    /// Why an object's Mercury cannot be linked.
    fn mercury_gap(&self, object: &Object<'_>) -> Option<&'static str> {
        if self.names_textures(object) {
            return Some("its code names textures, whose numbers nvlink puts into Mercury anew");
        }
        let Some(symbols) = mercury_symbols(object) else { return Some("it has no Mercury form") };
        let names = object.with_type(SHT_CUDA_MERCURY_SYMTAB).next();
        let names = names.map(|(_, section)| section.header.link);
        let names = names.and_then(|link| object.cubin.file().string_table(link, "sh_link").ok());
        let is_same = |(known, (symbol, name)): (&Symbol, &(Symbol, elf_core::Name<'_>))| {
            let own = names.and_then(|names| names.get(known.name).ok());
            known.info == symbol.info && (known.r#type() == STT_SECTION || own == Some(*name))
        };
        let is_parallel = symbols.len() <= object.symbols.len()
            && symbols.iter().zip(&object.symbols).all(is_same);
        if !is_parallel {
            return Some("its Mercury symbols are not those of its code");
        }
        for section in object.sections.iter().filter(|section| section.role == Role::Mercury) {
            let is_known = match section.header.r#type {
                SHT_CUDA_CAPMERC => capsule::is_known(section.data),
                SHT_PROGBITS if !is_linked(section.name.as_bytes()) => {
                    return Some(
                        "it has debug information beyond line numbers in the Mercury form",
                    );
                }
                SHT_PROGBITS => true,
                SHT_CUDA_MERCURY_CONSTANT_OPT => are_literals(object, section),
                SHT_CUDA_RESERVED_SHARED => is_reserved(object, section),
                other => TYPES.contains(&other),
            };
            if !is_known {
                return Some("its Mercury form is one that is not known");
            }
        }
        let lacks = |&(id, _): &(EntityId, OutId)| {
            let place = self.entities[id].place;
            place.is_some_and(|place| place.object == object.index)
                && mercury_code(object, id).is_none()
        };
        self.texts.iter().any(lacks).then_some("a function has no Mercury form")
    }

    /// Makes the sections of Mercury, beside those of the program: `infos` are its attributes.
    pub(super) fn take_mercury(
        &mut self,
        infos: &[((usize, u32), EntityId, OutId)],
        (module, calls, prototypes): (bool, OutId, Option<OutId>),
    ) -> Result<Tables, LinkError> {
        let mut tables = Tables::default();
        if self.mercury != LinkedMercury::Merged {
            return Ok(tables);
        }
        let texts = self.texts.clone();
        for (id, text) in texts {
            let form = self.take_capsule(id)?;
            tables.forms.extend(form.map(|form| (text, form)));
        }
        self.share(&mut tables, b".nv.constant3", SHT_CUDA_MERCURY_CONSTANT_USER);
        self.take_mercury_literals(&mut tables.forms);
        self.share(&mut tables, b".nv.global.init", SHT_CUDA_GLOBAL_INIT);
        self.take_mercury_reserved(&mut tables);
        tables.symbols = Some(self.outs.push(Out {
            flags: SHF_CUDA_MERCURY,
            link: Link::Strings,
            info: Info::Locals,
            entry_size: 24,
            ..Out::new(b".nv.merc.symtab", Class::MercurySymbols, SHT_CUDA_MERCURY_SYMTAB, 8)
        }));
        let debug = self.take_mercury_debug(&mut tables.forms);
        let linked = |name: &[u8], r#type| Out {
            flags: SHF_CUDA_MERCURY,
            link: Link::MercurySymbols,
            ..Out::new(name, Class::Mercury, r#type, 4)
        };
        tables.module = module.then(|| self.outs.push(linked(MODULE_INFO, SHT_CUDA_MERCURY_INFO)));
        for &((object, _), id, text) in infos {
            let source = self.objects.get(object).and_then(|object| mercury_info(object, id));
            let text = match self.outs[text].info {
                Info::Section(text) => tables.forms.get(&text).copied(),
                _ => None,
            };
            let Some((source, text)) = source.zip(text) else { continue };
            let name = [b".nv.merc.nv.info.", self.entities[id].name.as_bytes()].concat();
            let (flags, info) = (FLAGS_WITH_INFO, Info::Section(text));
            let out = Out { flags, info, ..linked(&name, SHT_CUDA_MERCURY_INFO) };
            tables.infos.push(((object, source), id, self.outs.push(out)));
        }
        let pairs = |name: &[u8], r#type| Out { entry_size: 8, ..linked(name, r#type) };
        let graph = pairs(b".nv.merc.nv.callgraph", SHT_CUDA_MERCURY_CALLGRAPH);
        tables.forms.insert(calls, self.outs.push(graph));
        if let Some(own) = prototypes {
            let table = pairs(b".nv.merc.nv.prototype", SHT_CUDA_MERCURY_PROTOTYPE);
            tables.forms.insert(own, self.outs.push(table));
        }
        tables.records = self.take_mercury_records(&tables.forms, &debug)?;
        Ok(tables)
    }

    /// The Mercury form of a function, with what the linker resolves.
    fn take_capsule(&mut self, id: EntityId) -> Result<Option<OutId>, LinkError> {
        let objects = Rc::clone(&self.objects);
        let place = self.entities[id].place.and_then(|place| Some((place.object, place.section?)));
        let Some((object, text)) = place.and_then(|(at, text)| Some((objects.get(at)?, text)))
        else {
            return Ok(None);
        };
        let Some((_, section)) = mercury_code(object, id) else { return Ok(None) };
        let mut data = section.data.to_vec();
        for record in object.records(text)? {
            if !matches!(self.fate(object, text, &record)?, Fate::Apply) {
                continue;
            }
            let Some(kind) = crate::row(record.r#type) else { continue };
            let query = elf_core::Query {
                role: elf_core::Role::Address,
                symbol: record.symbol,
                place: record.offset,
                addend: record.addend.unwrap_or(0),
                kind: &kind.kind,
            };
            if let Some(value) = self.answer(object, Some(id), &query) {
                // in Mercury the whole address, whatever part of it the machine code has
                let value = value.wrapping_add_signed(record.addend.unwrap_or(0)) as u32;
                let entity = object.entity(record.symbol).map(|id| self.entities[id].kind);
                // a place in a bank has 16 bits
                let value = if entity == Some(Kind::InBank) { value & 0xffff } else { value };
                capsule::put(&mut data, record.offset, value);
            }
        }
        let header = section.header;
        Ok(Some(self.outs.push(Out {
            flags: header.flags.bits(),
            link: Link::MercurySymbols,
            info: Info::Symbol(id, header.info & !SYMBOL_OF_TEXT),
            data,
            ..Out::new(section.name.as_bytes(), Class::MercuryCode, header.r#type, header.alignment)
        })))
    }

    /// Makes the section that has the bytes of one of the program's.
    fn share(&mut self, tables: &mut Tables, name: &[u8], r#type: u32) {
        let own = self.outs.iter().find(|(_, out)| out.name == name);
        let own = own.map(|(id, out)| (id, out.alignment, out.flags));
        let mut all = self.objects.iter().flat_map(|object| object.with_type(r#type));
        let Some((_, section)) = all.next() else { return };
        let Some((own, alignment, flags)) = own else { return };
        let class = match r#type {
            SHT_CUDA_GLOBAL_INIT => Class::MercuryData,
            _ => Class::MercuryBanks,
        };
        let form = Out {
            flags: flags | SHF_CUDA_MERCURY,
            shares: Some(own),
            ..Out::new(section.name.as_bytes(), class, r#type, alignment)
        };
        let form = self.outs.push(form);
        tables.forms.insert(own, form);
    }

    /// Makes what the system has of shared memory: without the bytes before the first variable, from which Mercury counts.
    fn take_mercury_reserved(&mut self, tables: &mut Tables) {
        let mut all =
            self.objects.iter().flat_map(|object| object.with_type(SHT_CUDA_RESERVED_SHARED));
        let form = all.find(|(_, section)| section.role == Role::Mercury);
        let Some((name, flags)) =
            form.map(|(_, one)| (one.name.as_bytes(), one.header.flags.bits()))
        else {
            return;
        };
        let own =
            self.outs.iter().find(|(_, out)| name.strip_prefix(b".nv.merc") == Some(&out.name));
        let Some((own, alignment, memory)) =
            own.map(|(id, out)| (id, out.alignment, out.memory.saturating_sub(reserved::HEAD)))
        else {
            return;
        };
        let out = Out::new(name, Class::MercuryData, SHT_CUDA_RESERVED_SHARED, alignment);
        let form = self.outs.push(Out { flags, memory, ..out });
        tables.forms.insert(own, form);
    }

    /// Fills the sections of Mercury; `module` is what the program has in its own.
    pub(super) fn fill_mercury(
        &mut self,
        tables: &Tables,
        (symbols, sections, numbers): (&Symbols, &Sections, &Numbers),
        strings: &mut Strings,
        module: Option<Bytes>,
    ) -> Result<(), LinkError> {
        if let Some((out, data)) = tables.module.zip(module) {
            self.outs[out].data = data;
        }
        for &(source, id, out) in &tables.infos {
            self.outs[out].data = self.function_info(source, id, numbers)?;
        }
        for (out, list) in &tables.records {
            self.outs[*out].data = write::records(list, numbers);
        }
        for (&own, &form) in &tables.forms {
            match self.outs[own].class {
                Class::Text => {
                    capsule::put_section(&mut self.outs[form].data, sections.number(own));
                }
                Class::CallGraph | Class::Prototypes => {
                    self.outs[form].data = self.outs[own].data.clone();
                }
                _ => {}
            }
        }
        let Some(out) = tables.symbols else { return Ok(()) };
        let all: Vec<_> = symbols
            .all
            .iter()
            .filter(|symbol| !self.is_late(symbol))
            .map(|symbol| self.mercury_symbol(tables, symbol))
            .collect();
        self.outs[out].data = write::symbol_table(&all, sections, strings);
        Ok(())
    }

    /// Whether a symbol is of a section that has none in Mercury, and stands behind all others.
    fn is_late(&self, symbol: &OutSymbol) -> bool {
        matches!(symbol.meaning, Some(Meaning::Section(id)) if self.outs[id].class == Class::LateBanks)
    }

    /// A symbol as Mercury has it: in the form of its section, with the size of its form, and as the objects say it.
    fn mercury_symbol(&self, tables: &Tables, symbol: &OutSymbol) -> OutSymbol {
        let form = symbol.section.and_then(|section| tables.forms.get(&section)).copied();
        let mut new = OutSymbol { section: form.or(symbol.section), ..symbol.clone() };
        match symbol.meaning {
            Some(Meaning::Section(_)) => {
                let name = form.and_then(|form| self.outs[form].name.strip_prefix(b".nv.merc"));
                new.name = name.map_or(new.name, <[u8]>::to_vec);
            }
            Some(Meaning::Entity(id)) => {
                let entity = &self.entities[id];
                match entity.kind {
                    Kind::Function => new.size = self.mercury_size(id).unwrap_or(new.size),
                    Kind::Reserved if symbol.section.is_none() => new.value = 0,
                    Kind::Reserved => {
                        new.value = new.value.saturating_sub(reserved::HEAD);
                        new.info = new.info & 0xf0 | entity.symbol.r#type();
                        new.other = entity.symbol.other;
                    }
                    _ if entity.symbol.r#type() == STT_CUDA_OBJECT => {
                        new.info = new.info & 0xf0 | STT_CUDA_OBJECT;
                        new.other = entity.symbol.other;
                    }
                    _ => {}
                }
            }
            None => {}
        }
        new
    }

    /// Bytes of a function in the Mercury form.
    fn mercury_size(&self, id: EntityId) -> Option<u64> {
        let object = self.objects.get(self.entities[id].place?.object)?;
        let number = (0usize..).zip(&object.entities).find(|(_, one)| **one == Some(id))?.0;
        mercury_symbols(object)?.get(number).map(|symbol| symbol.size)
    }
}

/// Types of sections that are linked.
const TYPES: [u32; 7] = [
    SHT_CUDA_MERCURY_SYMTAB,
    SHT_CUDA_MERCURY_INFO,
    SHT_CUDA_MERCURY_RELA,
    SHT_CUDA_MERCURY_CALLGRAPH,
    SHT_CUDA_MERCURY_PROTOTYPE,
    SHT_CUDA_MERCURY_CONSTANT_USER,
    SHT_CUDA_GLOBAL_INIT,
];
