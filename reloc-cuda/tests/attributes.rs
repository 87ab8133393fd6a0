//! Attributes of functions that linking changes: fixtures with changes, as nvlink 13.5 has them of the same objects.
#![cfg(test)]
#![cfg(feature = "link")]

mod objects;

use nvinfo::{AttributeValue, Attributes};
use objects::{attribute, bytes_of, halves, put32};
use reloc_cuda::link::link;

/// `EIATTR_AT_ENTRY_FRAGMENTS`.
const FRAGMENTS: u8 = 0x4f;
/// `EIATTR_LANGUAGE`.
const LANGUAGE: u8 = 0x66;

/// The words of an attribute, of each record that a section has of it.
fn words(cubin: &[u8], section: &str, number: u8) -> Vec<Vec<u32>> {
    let range = bytes_of(cubin, section);
    let rows = Attributes::new(&cubin[range.clone()], range.start as u64).map(Result::unwrap);
    let rows = rows.filter(|row| row.number == number);
    let words = |row: nvinfo::Attribute<'_>| match row.value {
        AttributeValue::Bytes(bytes) => {
            let words = bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
            words.collect()
        }
        other => panic!("{other:?}"),
    };
    rows.map(words).collect()
}

/// Code that is to run before a kernel: what it has itself, and behind that what is said of the functions that it calls, each once.
/// These have none of it any more.
#[test]
fn kernels_keep_their_fragments_before_those_of_what_they_call() {
    let [a, b] = halves("tensor", "13.5-sm_100a");
    assert_eq!(words(&b, ".nv.info.allocate", FRAGMENTS), [[6]]);
    let linked = |own: Option<u32>| {
        let mut a = a.clone();
        if let Some(own) = own {
            // in the place of the language, of as many bytes
            let at = attribute(&a, ".nv.info.calls", LANGUAGE);
            a[at + 1] = FRAGMENTS;
            put32(&mut a, at + 4, own);
        }
        let linked = link(&[&a, &b]).unwrap().bytes;
        assert_eq!(words(&linked, ".nv.info.allocate", FRAGMENTS), [[0; 0]; 0], "{own:?}");
        words(&linked, ".nv.info.calls", FRAGMENTS)
    };
    assert_eq!(linked(None), [[6]]);
    assert_eq!(linked(Some(6)), [[6]]);
    assert_eq!(linked(Some(3)), [[3, 6]]);
}
