//! Layouts of files whose names have numbers, which are those of files whose names are read.

use super::BASE;
use elf_core::{Arch, File, Name};
use elf_layout::archives::{NameNumbers, UndefinedSymbols};
use elf_layout::{Error, ExternalSymbol, HeapStorage, Layout, Options};

/// What there is of a layout: its image, or why there is none, and where each symbol is.
pub(crate) type Outcome = Result<(Result<Vec<u8>, Error>, Vec<Option<u64>>), Error>;

/// The numbers of the names of files, if nothing is wrong with them.
pub(crate) fn numbers(files: &[File<'_>]) -> Option<NameNumbers> {
    let mut undefined = UndefinedSymbols::new();
    files.iter().try_for_each(|file| undefined.add(file)).ok()?;
    Some(undefined.into_numbers())
}

/// Lays out files with numbers and without; both ask for what was `asked` for before.
pub(crate) fn compare<A: Arch>(
    files: &[File<'_>],
    options: Options,
    asked: &[(Vec<u8>, Option<ExternalSymbol>)],
) {
    let Some(numbers) = numbers(files) else { return };
    let outcome_of = |numbers: Option<&NameNumbers>| {
        let mut rest = asked.iter();
        let mut answer = |name: Name<'_>| {
            let (asked, answer) = rest.next().unwrap();
            assert_eq!(*asked, name.as_bytes());
            *answer
        };
        let mut room = HeapStorage::new();
        outcome::<A>(match numbers {
            Some(numbers) => room.plan_numbered(files, numbers, options, &mut answer),
            None => room.plan(files, options, &mut answer),
        })
    };
    let (read, numbered) = (outcome_of(None), outcome_of(Some(&numbers)));
    assert!(numbered == read, "{numbered:?} instead of {read:?}");
}

pub(crate) fn outcome<A: Arch>(layout: Result<Layout<'_, '_, A>, Error>) -> Outcome {
    let layout = layout?;
    // what tests lay out to be too large has no image
    let size = usize::try_from(layout.size()).ok().filter(|size| *size < 1 << 24);
    let mut image = vec![0; size.unwrap_or(0)];
    let written = size.map_or(Ok(()), |_| layout.write(&mut image, BASE));
    let symbols = (0..layout.files().len()).flat_map(|object| layout.addresses(object, 0, BASE));
    let symbols = symbols.collect();
    Ok((written.map(|()| image), symbols))
}
