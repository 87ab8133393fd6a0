//! Kinds at their limits: the last values that fit, the first that do not, and what is misaligned, by hoist and by a linker.

use std::path::Path;

use archs::with_arch;
use elf_core::{Arch, Bits, File, Kind, Name, Page, Role, find};
use elf_layout::{ExternalSymbol, HeapStorage, Options};
use hoist_tool::budget::Limits;
use hoist_tool::input;
use hoist_tool::objects::Objects;

use crate::compare::{Outcome, compare_defined};
use crate::fixtures;
use crate::linker::Linker;

/// In the middle of what the widest kind reaches, either way.
const BASE: u64 = 1 << 40;

/// A relocation of a section of its own, against a symbol of its own.
struct Row {
    kind: &'static Kind,
    symbol: String,
    place: u64,
}

impl Row {
    /// The address of the symbol that gives the formula this value; the last one of a page if `last`.
    fn target(&self, value: i128, last: bool) -> Option<u64> {
        let minus = if self.kind.value.minus == Role::Place { self.place } else { 0 };
        let (minus, below) = match self.kind.value.page {
            Page::Neither => (minus, 0),
            Page::Nearest if last => (minus & !0xfff, 0x7ff),
            Page::Nearest => (minus & !0xfff, -0x800),
            page => panic!("no kind here has {page:?}"),
        };
        u64::try_from(i128::from(minus) + value + below).ok()
    }

    /// What lies between two values.
    fn step(&self) -> i128 {
        let exact = |bits: &&Bits| bits.exact;
        let steps = self.kind.field.parts.iter().filter(exact).map(|bits| 1 << bits.shift);
        if self.kind.value.page == Page::Nearest { 0x1000 } else { steps.max().unwrap_or(1) }
    }
}

/// The rows of an object whose every section has one relocation.
fn rows(objects: &Objects<'_>, options: Options) -> Vec<Row> {
    with_arch!(objects.machine(), A => {
        let mut room = HeapStorage::new();
        let mut externals = |_: Name<'_>| Some(ExternalSymbol::new(BASE));
        let layout = room.plan::<A>(objects.files(), options, &mut externals).expect("a layout");
        let file: &File<'_> = &objects.files()[0];
        let mut rows = Vec::new();
        for header in file.sections() {
            for record in file.relocations(&header).expect("relocations").into_iter().flatten() {
                let table = objects.symbols(0).expect("symbols");
                let symbol = table.get(record.symbol).expect("a symbol");
                rows.push(Row {
                    kind: find(A::KINDS, record.r#type).expect("a kind"),
                    symbol: table.name_of(&symbol).expect("a name").to_string(),
                    place: BASE + layout.section(0, header.info).expect("a section") + record.offset,
                });
            }
        }
        rows
    })
}

/// Compares every row of an object at its limits. A linker may cut off what does not fit (`cut_off`), and hoist reach it all the same
/// (`stubs`).
pub(crate) fn compare_limits(
    test: &str,
    object: &str,
    programs: &[&str],
    cut_off: &[&str],
    stubs: &[&str],
) {
    let Some(linker) = Linker::find(programs) else {
        println!("skipped: {test}: none of {programs:?} is installed");
        return;
    };
    let scratch = tempfile::tempdir().expect("a folder");
    let path = Path::new(&fixtures::folder()).join(object);
    let inputs = input::read_all(&[path], Limits::default()).expect("a fixture");
    let objects = Objects::gather(&inputs, &[]).expect("an object");
    let options = Options { base: Some(BASE), relax: false, ..Options::default() };
    let rows = rows(&objects, options);
    let (mut equal, mut refused, mut cut) = (0, 0, 0);
    for row in &rows {
        let (least, most) = row.kind.check.limits();
        let step = row.step();
        let most = most + 1 - step;
        let fits =
            [(least, false), (0, false), (most, true)].map(|(value, last)| (value, last, true));
        let beyond = [(least - step, true), (most + step, false)];
        let beyond = beyond.map(|(value, last)| (value, last, false));
        let misaligned = (step == 4).then_some((2, false, false));
        for (value, last, fits) in fits.into_iter().chain(beyond).chain(misaligned) {
            let Some(target) = row.target(value, last) else { continue };
            let others = rows.iter().map(|other| {
                let near = other.target(0, false).unwrap_or(0x800);
                let target = if other.symbol == row.symbol { target } else { near };
                (other.symbol.clone(), target)
            });
            let defined: Vec<(String, u64)> = others.collect();
            let name = row.kind.name;
            let stub = stubs.contains(&name) && value % step == 0;
            match compare_defined(&linker, &objects, options, &defined, scratch.path()) {
                Outcome::Equal { .. } if fits => equal += 1,
                Outcome::BothRefused(why) if !fits && why.contains(name) => refused += 1,
                Outcome::Refused(why) if !fits && cut_off.contains(&name) && why.contains(name) => {
                    cut += 1;
                }
                Outcome::LinkerRefused(_) if !fits && stub => refused += 1,
                Outcome::Different(why) => panic!("{name} {value:#x}: {why:?}"),
                Outcome::Refused(why) => panic!("{name} {value:#x}: refused here: {why}"),
                Outcome::LinkerRefused(why) => panic!("{name} {value:#x}: refused there: {why}"),
                Outcome::BothRefused(why) => panic!("{name} {value:#x}: refused: {why}"),
                Outcome::Equal { .. } => panic!("{name} {value:#x}: linked"),
            }
        }
    }
    println!(
        "{test}: {} kinds: {equal} links equal, {refused} refused, {cut} that the linker cuts off",
        rows.len()
    );
    assert!(rows.len() >= 8 && equal >= 2 * rows.len());
}
