//! Differences against lld and GNU ld, counted. `links/make.py` asked them.

#[cfg(test)]
mod links;

use reloc_x86::{I386, X86_64};

const WRAPS: &str = "takes whatever is right modulo the field's size";

#[test]
fn x86_64_is_as_linkers_do() {
    let counts = links::compare::<X86_64>(
        include_str!("links/x86_64.txt"),
        &[
            ("R_X86_64_16", "ld", 1, WRAPS),
            ("R_X86_64_8", "ld", 1, WRAPS),
            ("R_X86_64_PC16", "ld", 2, WRAPS),
            (
                "R_X86_64_SIZE32",
                "lld",
                1,
                "takes signed values; the psABI's field is as unsigned as a size",
            ),
            ("R_X86_64_GOTPC32_TLSDESC", "ld", 2, "does not check"),
        ],
    );
    assert_eq!(counts, (37, 302), "kinds, answers that agree");
    let by_hand = links::compare::<X86_64>(include_str!("links/by-hand.txt"), &[]);
    assert_eq!(by_hand, (5, 25), "kinds that no linker knows");
    // the counts of README.md
    assert_eq!(links::count::<X86_64>(), 37 + 5);
}

#[test]
fn i386_is_as_linkers_do() {
    let counts = links::compare::<I386>(
        include_str!("links/i386.txt"),
        &[
            ("R_386_16", "ld", 1, WRAPS),
            ("R_386_8", "ld", 1, WRAPS),
            ("R_386_PC16", "ld", 1, "takes 16 bits, lld 17"),
            ("R_386_PC8", "ld", 1, "refuses -128"),
        ],
    );
    assert_eq!(counts, (20, 152), "kinds, answers that agree");
}
