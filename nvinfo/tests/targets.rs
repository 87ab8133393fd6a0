//! Targets, notes and `.nv.compat` of the fixtures.
#![cfg(test)]

mod cubins;

use nvinfo::{
    AttributeValue, Cubin, CubinNote, HeaderForm, LinkStage, TargetSuffix, TextureMode, compat_name,
};

/// Fixtures are named `SOURCE-TOOLKIT-ARCHITECTURE`, and half of a program `_a` or `_b`.
#[test]
fn targets() {
    let mut sources = 0;
    for (name, bytes) in cubins::all() {
        let cubin = Cubin::parse(&bytes).unwrap();
        let target = cubin.target();
        let toolkit = target.toolkit.unwrap();
        let [source, version, arch] = name.split('-').collect::<Vec<_>>()[..] else {
            panic!("{name}: SOURCE-TOOLKIT-ARCHITECTURE");
        };
        // objects of 12.0 are linked by the next: that of 12.0 names a wrong table of symbols
        let written = if name == "gpu_linked-12.0-sm_90" { "12.4" } else { version };
        assert_eq!((target.to_string(), toolkit.to_string()), (arch.into(), written.into()));
        let newer = toolkit.0 > 129 || target.sm >= Some(100);
        assert_eq!(target.form == HeaderForm::V8, newer, "{name}");
        let independent = target.texture_mode == TextureMode::Independent;
        assert_eq!(independent, source.starts_with("textures"), "{name}");
        // what `nvlink -r` joins is still to be linked
        let half = source.ends_with("_a") || source.ends_with("_b") || source == "joined";
        assert_eq!(target.stage == LinkStage::Relocatable, half, "{name}");
        // of a program that is the oldest of its halves
        let halves = [source.to_owned(), format!("{source}_a"), format!("{source}_b")];
        let targets = halves.iter().filter_map(|source| {
            let ptx = read_ptx(source)?;
            let (_, virtual_sm) = ptx.split_once(".target sm_").unwrap();
            let digits = virtual_sm.chars().take_while(char::is_ascii_digit);
            Some(digits.collect::<String>().parse::<u32>().unwrap())
        });
        if let Some(oldest) = targets.min() {
            sources += 1;
            assert_eq!(target.virtual_sm, Some(oldest), "{name}");
        }
    }
    assert!(sources >= 30, "most are made from PTX: {sources}");
}

/// The source of this name, if it is PTX.
fn read_ptx(name: &str) -> Option<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/cuda");
    std::fs::read_to_string(format!("{folder}/{name}.ptx")).ok()
}

/// Header bits that mean nothing known are few, and passed on.
#[test]
fn other_flags() {
    for (name, bytes) in cubins::all() {
        let target = *Cubin::parse(&bytes).unwrap().target();
        let expected = match (target.form, target.sm) {
            (HeaderForm::V8, Some(100..)) => 2,
            (HeaderForm::V8, _) => 4,
            _ => 0,
        };
        assert_eq!(target.other_flags, expected, "{name}");
        assert_eq!(target.note_section.is_some(), target.form == HeaderForm::V8, "{name}");
    }
}

#[test]
fn tools_and_their_command_lines() {
    let bytes = cubins::read("calls-13.5-sm_90");
    let cubin = Cubin::parse(&bytes).unwrap();
    let notes: Vec<_> = cubin.notes().map(Result::unwrap).collect();
    let tools = notes.iter().filter_map(|note| match note {
        CubinNote::Tool(tool) => Some((tool.name.to_string(), tool.arguments.to_string())),
        _ => None,
    });
    let tools: Vec<_> = tools.collect();
    assert_eq!(tools.len(), 3, "the linker, and the compiler of both objects");
    assert_eq!(tools[0].0, "nvlink");
    assert_eq!(tools[1], ("ptxas".into(), "-arch sm_90 -c  ".into()));
    assert!(notes.iter().any(|note| matches!(
        note,
        CubinNote::Cuda { version: 2, virtual_sm: 30, toolkit: Some(_) }
    )));
}

#[test]
fn compat_is_named() {
    let bytes = cubins::read("kernels-13.5-sm_90a");
    let cubin = Cubin::parse(&bytes).unwrap();
    let rows: Vec<_> = cubin.compat().unwrap().map(Result::unwrap).collect();
    assert_eq!(compat_name(rows[0].number), Some("EICOMPAT_ATTR_CUDA_ACCELERATOR_TARGET"));
    assert_eq!(rows[0].value, AttributeValue::Byte(1, 0));
    assert_eq!(cubin.target().suffix, TargetSuffix::Accelerated);
    assert_eq!(compat_name(7), None);
}
