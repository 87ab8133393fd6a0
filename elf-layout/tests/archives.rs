//! Which members of archives a link takes: by the rules of GNU ld, which `hoist-tool` compares on random archives.
#![cfg(test)]
#![cfg(feature = "alloc")]

mod support;

use elf_core::File;
use elf_core::names::*;
use elf_layout::archives::{MemberIndex, Taken, Undefined, UndefinedSymbols, names_limit};
use std::collections::BTreeSet;
use std::error::Error as _;
use support::{CODE, Object, Place, WRITE};

/// What an object says of a name.
#[derive(Clone, Copy)]
enum Says {
    Data,
    Function,
    Weak,
    Common,
    LargeCommon,
    Local,
    Wants,
    WantsWeakly,
}
use Says::*;

/// An object that says so.
fn object(said: &[(&str, Says)]) -> Vec<u8> {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[0; 8]);
    let text = object.section(".text", CODE, 8, &[0xc3; 8]);
    for &(name, says) in said {
        let _ = match says {
            Data => object.symbol(name, STB_GLOBAL, STT_OBJECT, Place::In(data), 0, 8),
            Function => object.symbol(name, STB_GLOBAL, STT_FUNC, Place::In(text), 0, 8),
            Weak => object.weak(name, data, 0),
            Common => object.common(name, 8, 8),
            LargeCommon => {
                let place = Place::Reserved(SHN_X86_64_LCOMMON);
                object.symbol(name, STB_GLOBAL, STT_OBJECT, place, 8, 8)
            }
            Local => object.local(name, data, 0),
            Wants => object.undefined(name),
            WantsWeakly => object.undefined_weak(name),
        };
    }
    object.build()
}

/// The members that join a link of one object, in their order.
fn taken(own: &[(&str, Says)], members: &[&[(&str, Says)]]) -> Vec<usize> {
    let mut undefined = UndefinedSymbols::new();
    undefined.add(&File::parse(&object(own)).unwrap()).unwrap();
    let members = members.iter().map(|said| object(said)).collect();
    let archive = MemberIndex::new(members).unwrap();
    let found = undefined.search(&archive);
    assert_eq!(undefined.search(&archive), [], "nothing is looked for any more");
    found
}

#[test]
fn what_is_missing_takes_the_first_definition() {
    for says in [Data, Function, Weak, Common, LargeCommon] {
        assert_eq!(taken(&[("f", Wants)], &[&[("g", Data)], &[("f", says)], &[("f", Weak)]]), [1]);
    }
    for says in [Local, Wants, WantsWeakly] {
        assert_eq!(taken(&[("f", Wants)], &[&[("f", says)], &[("f", Data)]]), [1]);
    }
    assert_eq!(taken(&[("f", WantsWeakly)], &[&[("f", Data)]]), []);
    assert_eq!(taken(&[("f", WantsWeakly), ("f", Wants)], &[&[("f", Data)]]), [0]);
    for says in [Data, Function, Weak, Local] {
        assert_eq!(taken(&[("f", says)], &[&[("f", Data)]]), []);
    }
}

#[test]
fn what_is_common_takes_data() {
    for own in [Common, LargeCommon] {
        for (says, is_taken) in
            [(Data, true), (Function, false), (Weak, false), (Common, false), (LargeCommon, false)]
        {
            let found = taken(&[("f", own)], &[&[("f", says)]]);
            assert_eq!(found == [0], is_taken);
            assert!(is_taken || found.is_empty());
        }
        // past those that are none
        assert_eq!(taken(&[("f", own)], &[&[("f", Weak)], &[("f", Common)], &[("f", Data)]]), [2]);
    }
    // a member that was taken leaves it common, and another one defines it
    assert_eq!(taken(&[("f", Wants)], &[&[("f", Common)], &[("f", Data)]]), [0, 1]);
    assert_eq!(taken(&[("f", Wants)], &[&[("f", Weak)], &[("f", Data)]]), [0]);
    // what is common stays so, and what is weak is there, whoever refers to it afterwards
    for later in [Wants, Weak] {
        assert_eq!(taken(&[("f", Common), ("f", later)], &[&[("f", Function)]]), []);
        assert_eq!(taken(&[("f", Common), ("f", later)], &[&[("f", Data)]]), [0]);
    }
    assert_eq!(taken(&[("f", Weak), ("f", Wants)], &[&[("f", Data)]]), []);
    // one that was taken for another name defines it as a function, before the one with data joins
    let members: [&[(&str, Says)]; 2] = [&[("f", Data), ("c", Function)], &[("c", Data)]];
    assert_eq!(taken(&[("f", Wants), ("c", Common)], &members), [0]);
}

/// An archive is gone through from its start to its end, and again while members are asked for.
#[test]
fn members_join_in_the_order_of_the_archive() {
    let members: [&[(&str, Says)]; 5] = [
        &[("a", Data), ("d", Wants)],
        &[("b", Data), ("a", Wants)],
        &[("c", Data), ("e", Wants)],
        &[("d", Data)],
        &[("e", Data), ("b", Wants)],
    ];
    assert_eq!(taken(&[("a", Wants)], &members), [0, 3]);
    assert_eq!(taken(&[("c", Wants)], &members), [2, 4, 1, 0, 3]);
    assert_eq!(taken(&[("e", Wants), ("a", Wants)], &members), [0, 3, 4, 1]);
    // behind the member that asks, the next one that defines it; else the first
    let twice: [&[(&str, Says)]; 4] =
        [&[("x", Data)], &[("y", Data), ("x", Wants)], &[("x", Data)], &[("y", Data)]];
    assert_eq!(taken(&[("y", Wants)], &twice), [1, 2]);
}

/// Each name is looked for once as missing and once as common, however many objects ask.
#[test]
fn names_are_looked_for_once() {
    let mut undefined = UndefinedSymbols::new();
    let both: [&[(&str, Says)]; 2] = [
        &[("f", Wants), ("c", Common), ("later", Weak), ("known", Data)],
        &[("f", Wants), ("c", Common), ("later", Common), ("known", Wants), ("g", Wants)],
    ];
    let mut asked_for = |said: &[(&str, Says)]| {
        undefined.add(&File::parse(&object(said)).unwrap()).unwrap();
        let mut asked = Vec::new();
        let find = |name: elf_core::Name<'_>, why, _: Option<&usize>| {
            asked.push((name.to_string(), why));
            None
        };
        undefined.extract(find, |_, _| Ok::<(), ()>(())).unwrap();
        asked
    };
    let named = |name: &str, why| (name.to_owned(), why);
    let first = [named("f", Undefined::Missing), named("c", Undefined::Common)];
    assert_eq!(asked_for(both[0]), first);
    let later = [named("later", Undefined::Common), named("g", Undefined::Missing)];
    assert_eq!(asked_for(both[1]), [&first[..], &later].concat());
}

#[test]
fn definers_behind_the_last() {
    let members: Vec<_> =
        [&[("f", Data)][..], &[("f", Common)], &[("f", Data)], &[("g", Weak)]].map(object).into();
    let index = MemberIndex::new(members).unwrap();
    assert_eq!(index.members().len(), 4);
    let definer = |name: &str, why, last| index.definer(name.into(), why, last);
    for (last, missing, common) in [
        (None, 0, 0),
        (Some(0), 1, 2),
        (Some(1), 2, 2),
        // from the start again
        (Some(2), 0, 0),
        (Some(3), 0, 0),
    ] {
        assert_eq!(definer("f", Undefined::Missing, last), Some(missing), "{last:?}");
        assert_eq!(definer("f", Undefined::Common, last), Some(common), "{last:?}");
    }
    assert_eq!(definer("g", Undefined::Missing, Some(3)), Some(3));
    assert_eq!(definer("g", Undefined::Common, None), None);
    assert_eq!(definer("h", Undefined::Missing, None), None);
}

/// A default version is what its name means without one, and with one.
#[test]
#[cfg_attr(not(feature = "symbol-versions"), ignore = "needs the feature symbol-versions")]
fn versions() {
    let index = MemberIndex::new(
        [&[("f@V1", Data)][..], &[("f@@V2", Data)], &[("g@V1", Data)]].map(object).into(),
    )
    .unwrap();
    let definer = |name: &str| index.definer(name.into(), Undefined::Missing, None);
    assert_eq!(["f", "f@V1", "f@V2", "f@V3"].map(definer), [Some(1), Some(0), Some(1), None]);
    assert_eq!(["g", "g@V1", "g@V2", "V2"].map(definer), [None, Some(2), None, None]);
    for (wanted, expected) in [("f", 1), ("f@V1", 0), ("f@V2", 1)] {
        let mut undefined = UndefinedSymbols::new();
        undefined.require(wanted.into());
        assert_eq!(undefined.search(&index), [expected], "{wanted}");
        // what is defined with a version is not missing without
        let mut undefined = UndefinedSymbols::new();
        undefined.add(&File::parse(&object(&[("f@@V2", Data), (wanted, Wants)])).unwrap()).unwrap();
        let found = undefined.search(&index);
        assert_eq!(found, if wanted == "f@V1" { vec![0] } else { vec![] }, "{wanted}");
    }
}

#[test]
fn members_that_are_there_do_not_come_again() {
    let archive =
        MemberIndex::new([&[("f", Data)][..], &[("g", Data)]].map(object).into()).unwrap();
    let mut undefined = UndefinedSymbols::new();
    undefined.require("g".into());
    let mut taken = Taken::from_iter([0]);
    assert_eq!(undefined.search_again(&archive, &mut taken), [1]);
    assert_eq!(*taken.members(), BTreeSet::from([0, 1]));
    undefined.require("f".into());
    assert_eq!(undefined.search_again(&archive, &mut taken), []);
    // what layouts define is missing nowhere
    undefined.require("_GLOBAL_OFFSET_TABLE_".into());
    let archive = MemberIndex::new(vec![object(&[("_GLOBAL_OFFSET_TABLE_", Data)])]).unwrap();
    assert_eq!(undefined.search(&archive), []);
}

/// What a group is named by is no symbol that anybody sees.
#[test]
fn signatures_of_groups_are_missing_nowhere() {
    let archive =
        MemberIndex::new([&[("signature", Data)][..], &[("f", Data)]].map(object).into()).unwrap();
    let mut own = Object::new();
    let text = own.section(".text.f", CODE, 1, &[0xc3]);
    for name in ["signature", "another", "one more"] {
        let signature = own.local(name, text, 0);
        own.group(signature, GRP_COMDAT, &[text]);
    }
    let mut undefined = UndefinedSymbols::new();
    undefined.add(&File::parse(&own.build()).unwrap()).unwrap();
    assert_eq!(undefined.search(&archive), []);
    undefined.add(&File::parse(&object(&[("f", Wants)])).unwrap()).unwrap();
    assert_eq!(undefined.search(&archive), [1]);
}

/// What a link knows of members that it takes is what it knows of objects that are added.
#[test]
fn members_are_as_if_they_were_added() {
    let named = |text: &str, says: &[(&str, Says)]| {
        let mut object = Object::new();
        let text = object.section(text, CODE, 1, &[0xc3; 16]);
        for (name, flags) in [("shared", GRP_COMDAT), ("other", GRP_COMDAT), ("no COMDAT", 0)] {
            let signature = object.weak(name, text, 0);
            object.group(signature, flags, &[text]);
        }
        let own = object.local("own", text, 0);
        object.group(own, GRP_COMDAT, &[text]);
        let section = object.symbol("", STB_GLOBAL, STT_SECTION, Place::In(text), 0, 0);
        object.group(section, GRP_COMDAT, &[text]);
        for &(name, says) in says {
            let _ = match says {
                Wants => object.undefined(name),
                _ => object.weak(name, text, 0),
            };
        }
        object.build()
    };
    let mut damaged = named(".text.damaged", &[("f4", Data)]);
    let file = File::parse(&damaged).unwrap();
    let group = file.sections().iter().position(|it| it.r#type == SHT_GROUP).unwrap();
    let signature = file.header().section_headers as usize + 64 * group + 44;
    for is_damaged in [false, true] {
        let members = vec![
            named(".text.f0", &[("f0", Data), ("f@@V2", Data), ("f2", Wants)]),
            b"a text among them".to_vec(),
            named(".gnu.linkonce.t.f2", &[("f2", Data), ("f0", Wants), ("f", Wants)]),
            object(&[("f3", Data), ("unnamed", Wants)]),
            damaged.clone(),
        ];
        let archive = MemberIndex::new(members).unwrap();
        let wanted = ["f2", "f3", "f4"];
        let [mut taken, mut added] = [(); 2].map(|()| {
            let mut undefined = UndefinedSymbols::new();
            wanted.iter().for_each(|name| undefined.require((*name).into()));
            undefined
        });
        let order = taken.search(&archive);
        assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), BTreeSet::from([0, 2, 3, 4]));
        for member in order {
            added.add(&File::parse(&archive.members()[member]).unwrap()).unwrap();
        }
        // signatures of groups came with them
        let own = object(&[("shared", Data), ("f", Wants), ("f@V2", Wants), ("f@V3", Wants)]);
        let [taken, added] = [taken, added].map(|mut undefined| {
            undefined.add(&File::parse(&own).unwrap()).unwrap();
            let missing = undefined.search(&archive);
            assert_eq!(missing, []);
            format!("{:?}", undefined.into_numbers())
        });
        assert_eq!(taken, added);
        assert!(taken.contains("have_versions: true"), "{taken}");
        assert!(taken.contains(&format!("is_damaged: {is_damaged}")), "{taken}");
        damaged[signature..][..4].copy_from_slice(&77u32.to_le_bytes());
    }
}

#[test]
fn many_names_and_members() {
    let names: Vec<String> = (0..300).map(|number| format!("name{}", number % 250)).collect();
    let members = names.iter().map(|name| object(&[(name, Data)])).collect();
    let index = MemberIndex::new(members).unwrap();
    for (number, name) in names[..250].iter().enumerate() {
        let definer = |last| index.definer(name.as_str().into(), Undefined::Missing, last);
        assert_eq!(definer(None), Some(number));
        let second = if number < 50 { number + 250 } else { number };
        assert_eq!(definer(Some(number)), Some(second));
    }
}

/// Names share their ends, so that a small file may have more of them than any compiler makes.
#[test]
fn names_have_a_limit() {
    assert_eq!([0, 1, 100].map(names_limit), [1 << 20, (1 << 20) + 16, (1 << 20) + 1600]);
    assert_eq!(names_limit(u64::MAX), u64::MAX);
    let mut object = Object::new();
    object.undefined(&"n".repeat(1 << 16));
    for _ in 0..63 {
        object.undefined("n");
    }
    let (text, mut bytes) = (b"a text".to_vec(), object.build());
    assert!(MemberIndex::new(vec![text.clone(), bytes.clone()]).is_ok());
    // all have the long one
    let file = File::parse(&bytes).unwrap();
    let table = file.symbol_table().unwrap().unwrap();
    let rows = file.section(table.section()).unwrap().offset as usize;
    for row in 1..65 {
        bytes[rows + 24 * row..][..4].copy_from_slice(&1_u32.to_le_bytes());
    }
    let mut undefined = UndefinedSymbols::new();
    let why = undefined.add(&File::parse(&bytes).unwrap()).unwrap_err();
    let error = MemberIndex::new(vec![text, bytes]).unwrap_err();
    assert_eq!((error.member, error.error), (1, why));
    assert_eq!(error.to_string(), format!("member 1: {why}"));
    assert_eq!(error.source().unwrap().to_string(), why.to_string());
}
