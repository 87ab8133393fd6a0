//! What is said of objects that cannot be linked.
#![cfg(test)]
#![cfg(feature = "link")]

use reloc_cuda::link::LinkErrorKind::{self, *};
use reloc_cuda::link::{LinkError, LinkErrors};

fn named() -> String {
    "symbol".into()
}

/// What objects disagree about names the symbol and the object that has it otherwise; all else is of one object.
#[test]
fn disagreements_name_the_other_object() {
    let kinds: [(LinkErrorKind, &str); 7] = [
        (Duplicate { symbol: named(), first: 3 }, "symbol symbol is defined in b.o already"),
        (Size { symbol: named(), first: 3 }, "symbol symbol has another size in b.o"),
        (Space { symbol: named(), first: 3 }, "symbol symbol is in another memory in b.o"),
        (Prototype { symbol: named(), first: 3 }, "symbol symbol has another prototype in b.o"),
        (
            Managed { symbol: named(), first: 3 },
            "symbol symbol is managed in one of this and b.o only",
        ),
        (
            Entry { symbol: named(), first: 3 },
            "symbol symbol is a kernel in one of this and b.o only",
        ),
        (
            Common { symbol: named(), first: 3 },
            "common symbol symbol is larger than its definition: b.o",
        ),
    ];
    for (kind, text) in kinds {
        assert_eq!(kind.conflict(), Some(("symbol", 3)), "{text}");
        assert_eq!(kind.to_string(), text.replace("b.o", "object 3"));
        let error = LinkError { object: 5, kind };
        let name = |object| if object == 3 { "b.o".to_owned() } else { format!("a{object}.o") };
        assert_eq!(error.with_names(name).to_string(), format!("a5.o: {text}"));
        assert_eq!(error.to_string(), format!("object 5: {}", text.replace("b.o", "object 3")));
    }
    for kind in [Nothing, NotRelocatable, Undefined(named()), Parameters(named())] {
        assert_eq!(kind.conflict(), None, "{kind}");
    }
}

#[test]
fn toolkits_and_sizes_are_told() {
    assert_eq!(
        Toolkit { sm: 61, toolkit: 118 }.to_string(),
        "is for sm_61 by toolkit 11.8: sm_75 and later are linked, from sm_90 on of toolkit 12.0 and later"
    );
    let kernel = "k".to_owned();
    assert_eq!(
        SharedTooLarge { kernel, size: 0x2_0000, limit: 0xc000 }.to_string(),
        "kernel k uses 0x20000 bytes of shared memory: at most 0xc000"
    );
    let error = |object, kind| LinkError { object, kind };
    let both = LinkErrors(vec![error(0, Undefined("f".into())), error(1, NotRelocatable)]);
    assert_eq!(both.to_string(), "object 0: symbol f is undefined\nobject 1: is linked already");
}
