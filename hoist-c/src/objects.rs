//! Objects and archives to load or to link.

use crate::border::{Bytes, Text, alone, changed, fallible, handle, infallible, place};
use crate::error::{Error, Status};
use crate::faults::{elf, host, io};
use crate::module::Module;
use crate::object::Object;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use elf_core::archive::{self, Archive};
use exec_host::symbols::{ArchiveSource, SharedBytes, keep_data};
use std::path::Path;
use std::sync::Mutex;

/// Objects and archives, in the order in which they are linked. Free them with `hoist_objects_free`.
#[derive(Default)]
pub struct Objects(pub(crate) Mutex<List>);

/// What is on the list.
#[derive(Clone, Default)]
pub(crate) struct List {
    pub(crate) inputs: Vec<Input>,
    is_whole: bool,
}

/// An object, or an archive whose members are taken as they are asked for.
#[derive(Clone)]
pub(crate) enum Input {
    Object(Object),
    Archive { source: ArchiveSource, members: Vec<Object> },
}

impl List {
    /// Adds what the bytes are; of an archive in a file, `path` is where the members of a thin one are looked for.
    fn add(&mut self, label: &str, bytes: SharedBytes, path: Option<&Path>) -> Result<(), Error> {
        if !bytes.starts_with(archive::MAGIC) && !bytes.starts_with(archive::THIN_MAGIC) {
            self.inputs.push(Input::Object(Object { label: label.into(), bytes }));
            return Ok(());
        }
        let source = match path.filter(|_| bytes.starts_with(archive::THIN_MAGIC)) {
            Some(path) => ArchiveSource::open(path),
            None => ArchiveSource::new(bytes.clone()),
        };
        let source = source.map_err(|error| host(&error, &[]).of_file(label))?;
        let names = Archive::parse(&bytes).map_err(|error| elf(&error, label))?;
        let names = names
            .members()
            .map(|member| member.map_or_else(|_| String::new(), |it| it.name.to_string()));
        let members = source.members().zip(names);
        let members =
            members.map(|(bytes, name)| Object { label: format!("{label}({name})").into(), bytes });
        let members: Vec<Object> = members.collect();
        if self.is_whole {
            let is_elf = |object: &Object| elf_core::File::parse(&object.bytes).is_ok();
            self.inputs.extend(members.into_iter().filter(is_elf).map(Input::Object));
        } else {
            self.inputs.push(Input::Archive { source, members });
        }
        Ok(())
    }

    /// The objects that are loaded in any case.
    pub(crate) fn objects(&self) -> Vec<Object> {
        let object = |input: &Input| match input {
            Input::Object(object) => Some(object.clone()),
            Input::Archive { .. } => None,
        };
        self.inputs.iter().filter_map(object).collect()
    }

    /// The archives.
    pub(crate) fn archives(&self) -> Vec<ArchiveSource> {
        let archive = |input: &Input| match input {
            Input::Archive { source, .. } => Some(source.clone()),
            Input::Object(_) => None,
        };
        self.inputs.iter().filter_map(archive).collect()
    }
}

/// An empty list of objects. Never NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_objects_new() -> Box<Objects> {
    Box::default()
}

/// Adds a file: a relocatable object, or an archive, thin ones included. Of archives, members are taken that define what is missing,
/// as linkers do, unless `hoist_objects_set_whole_archive` says otherwise. The file is read now. What is wrong with an object is
/// said when it is loaded or linked.
///
/// Errors: `FILE`; for archives `BAD_FILE`; `BUSY`.
/// Threads: one call at a time for each list; another one is answered `BUSY`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_objects_add_file(
    objects: Option<NonNull<Objects>>,
    path: Text,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let path = path.path("path")?;
        let objects = handle(changed(objects), "objects")?;
        let bytes = std::fs::read(path).map_err(|cause| io(&cause, path))?;
        alone(&objects.0, "objects")?.add(&path.to_string_lossy(), bytes.into(), Some(path))
    })
}

/// The same of `size` bytes in memory, which are copied. `label` is what errors call it; NULL stands for `"memory"`. Thin archives are
/// refused: their members are files.
///
/// Errors: for archives `BAD_FILE`, `UNSUPPORTED`; `BUSY`.
/// Threads: as for `hoist_objects_add_file`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_objects_add_memory(
    objects: Option<NonNull<Objects>>,
    label: Text,
    data: Bytes,
    size: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let objects = handle(changed(objects), "objects")?;
        let label = label.optional("label")?.unwrap_or("memory");
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.get(size, "data")? };
        alone(&objects.0, "objects")?.add(label, bytes.into(), None)
    })
}

/// Adds an object like `hoist_objects_add_memory`, without those writable variables that `old` has under the same names: loaded with
/// `old` as its first source of symbols, it uses them, where they are and as they are. For code that was compiled anew and whose
/// functions replace those of `old`. `static`, constant and thread-local variables are its own.
///
/// Errors: `BAD_FILE`; `LAYOUT` if a variable has another size than it had; `BUSY`.
/// Threads: as for `hoist_objects_add_file`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_objects_add_keeping_data(
    objects: Option<NonNull<Objects>>,
    label: Text,
    data: Bytes,
    size: usize,
    old: Option<&Module>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let objects = handle(changed(objects), "objects")?;
        let old = handle(old, "old")?;
        let label = label.optional("label")?.unwrap_or("memory");
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.get(size, "data")? };
        let kept = keep_data(bytes, old.shared()).map_err(|error| {
            host(&error, &[Object { label: label.into(), bytes: bytes.into() }])
        })?;
        let object = Object { label: label.into(), bytes: kept.into() };
        alone(&objects.0, "objects")?.inputs.push(Input::Object(object));
        Ok(())
    })
}

/// Whether all members of archives that are added from now on are taken (`--whole-archive` of linkers). They are not at first.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_objects_add_file`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_objects_set_whole_archive(
    objects: Option<NonNull<Objects>>,
    is_whole: bool,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        alone(&handle(changed(objects), "objects")?.0, "objects")?.is_whole = is_whole;
        Ok(())
    })
}

/// How many objects are loaded in any case: without archives whose members are taken as they are asked for.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_objects_add_file`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_objects_count(
    objects: Option<&Objects>,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let count = place(count, "count")?;
        let list = alone(&handle(objects, "objects")?.0, "objects")?;
        *count = list.inputs.iter().filter(|input| matches!(input, Input::Object(_))).count();
        Ok(())
    })
}

/// Frees a list; NULL is none. What was loaded from it stays.
///
/// Threads: nobody uses the list any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_objects_free(objects: Option<Box<Objects>>) {
    infallible((), || drop(objects));
}
