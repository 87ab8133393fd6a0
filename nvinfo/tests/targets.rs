//! Targets, notes and `.nv.compat` of the fixtures.
#![cfg(test)]

mod cubins;

use nvinfo::{Cubin, Form, Note, Stage, Suffix, TextureMode, Value, compat_name};

#[test]
fn targets() {
    let found: Vec<String> = cubins::all()
        .iter()
        .map(|(name, bytes)| {
            let cubin = Cubin::parse(bytes).unwrap();
            let target = cubin.target();
            let toolkit = target.toolkit.unwrap();
            assert_eq!(
                target.form == Form::V8,
                toolkit.0 > 129 || target.sm >= Some(100),
                "{name}"
            );
            let independent = target.texture_mode == TextureMode::Independent;
            assert_eq!(independent, name.starts_with("textures"), "{name}");
            let stage = if target.stage == Stage::Relocatable { " relocatable" } else { "" };
            format!("{name}: {target} of {} by {toolkit}{stage}", target.virtual_sm.unwrap())
        })
        .collect();
    let expected = "\
calls-13.5-sm_100: sm_100 of 30 by 13.5
calls-13.5-sm_80: sm_80 of 30 by 13.5
calls-13.5-sm_90: sm_90 of 30 by 13.5
calls_a-11.8-sm_35: sm_35 of 30 by 11.8 relocatable
calls_a-11.8-sm_61: sm_61 of 30 by 11.8 relocatable
calls_a-13.5-sm_100: sm_100 of 30 by 13.5 relocatable
calls_a-13.5-sm_80: sm_80 of 30 by 13.5 relocatable
calls_a-13.5-sm_90: sm_90 of 30 by 13.5 relocatable
calls_b-11.8-sm_35: sm_35 of 30 by 11.8 relocatable
calls_b-11.8-sm_61: sm_61 of 30 by 11.8 relocatable
calls_b-13.5-sm_100: sm_100 of 30 by 13.5 relocatable
calls_b-13.5-sm_80: sm_80 of 30 by 13.5 relocatable
calls_b-13.5-sm_90: sm_90 of 30 by 13.5 relocatable
cluster-13.5-sm_90: sm_90 of 90 by 13.5
data-13.5-sm_80: sm_80 of 80 by 13.5
data-13.5-sm_90: sm_90 of 80 by 13.5
data_a-13.5-sm_80: sm_80 of 80 by 13.5 relocatable
data_a-13.5-sm_90: sm_90 of 80 by 13.5 relocatable
data_b-13.5-sm_80: sm_80 of 80 by 13.5 relocatable
data_b-13.5-sm_90: sm_90 of 80 by 13.5 relocatable
gpu_a-13.0-sm_90: sm_90 of 90 by 13.0 relocatable
gpu_b-13.0-sm_90: sm_90 of 90 by 13.0 relocatable
gpu_linked-13.0-sm_90: sm_90 of 90 by 13.0
kernel32-11.8-sm_35: sm_35 of 30 by 11.8
kernels-11.8-sm_35: sm_35 of 30 by 11.8
kernels-11.8-sm_61: sm_61 of 30 by 11.8
kernels-11.8-sm_90: sm_90 of 30 by 11.8
kernels-12.9-sm_100a: sm_100a of 30 by 12.9
kernels-12.9-sm_80: sm_80 of 30 by 12.9
kernels-13.5-sm_121f: sm_121f of 30 by 13.5
kernels-13.5-sm_80: sm_80 of 30 by 13.5
kernels-13.5-sm_90a: sm_90a of 30 by 13.5
linked-13.5-sm_100: sm_100 of 30 by 13.5
linked-13.5-sm_80: sm_80 of 30 by 13.5
linked-13.5-sm_90: sm_90 of 30 by 13.5
shapes-13.5-sm_80: sm_80 of 80 by 13.5
shapes-13.5-sm_90: sm_90 of 80 by 13.5
shapes_a-12.9-sm_80: sm_80 of 80 by 12.9 relocatable
shapes_a-13.5-sm_90: sm_90 of 80 by 13.5 relocatable
shapes_b-12.9-sm_80: sm_80 of 80 by 12.9 relocatable
shapes_b-13.5-sm_90: sm_90 of 80 by 13.5 relocatable
textures-11.8-sm_61: sm_61 of 30 by 11.8
textures-13.5-sm_80: sm_80 of 30 by 13.5";
    assert_eq!(found.join("\n"), expected);
}

/// Header bits that mean nothing known are few, and passed on.
#[test]
fn other_flags() {
    for (name, bytes) in cubins::all() {
        let target = *Cubin::parse(&bytes).unwrap().target();
        let expected = match (target.form, target.sm) {
            (Form::V8, Some(100..)) => 2,
            (Form::V8, _) => 4,
            _ => 0,
        };
        assert_eq!(target.other_flags, expected, "{name}");
        assert_eq!(target.note_section.is_some(), target.form == Form::V8, "{name}");
    }
}

#[test]
fn tools_and_their_command_lines() {
    let bytes = cubins::read("calls-13.5-sm_90");
    let cubin = Cubin::parse(&bytes).unwrap();
    let notes: Vec<_> = cubin.notes().map(Result::unwrap).collect();
    let tools = notes.iter().filter_map(|note| match note {
        Note::Tool(tool) => Some((tool.name.to_string(), tool.arguments.to_string())),
        _ => None,
    });
    let tools: Vec<_> = tools.collect();
    assert_eq!(tools.len(), 3, "the linker, and the compiler of both objects");
    assert_eq!(tools[0].0, "nvlink");
    assert_eq!(tools[1], ("ptxas".into(), "-arch sm_90 -c  ".into()));
    assert!(
        notes.iter().any(|note| matches!(
            note,
            Note::Cuda { version: 2, virtual_sm: 30, toolkit: Some(_) }
        ))
    );
}

#[test]
fn compat_is_named() {
    let bytes = cubins::read("kernels-13.5-sm_90a");
    let cubin = Cubin::parse(&bytes).unwrap();
    let rows: Vec<_> = cubin.compat().unwrap().map(Result::unwrap).collect();
    assert_eq!(compat_name(rows[0].number), Some("EICOMPAT_ATTR_CUDA_ACCELERATOR_TARGET"));
    assert_eq!(rows[0].value, Value::Byte(1, 0));
    assert_eq!(cubin.target().suffix, Suffix::Accelerated);
    assert_eq!(compat_name(7), None);
}
