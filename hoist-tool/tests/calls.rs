//! Every call of `fixtures/calls.toml` for this machine: objects loaded, function called, results and buffers compared.

#![expect(clippy::expect_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use exec_host::dynamic::Type;
use exec_host::{Loader, Process};
use hoist_tool::budget::Limits;
use hoist_tool::call::{Argument, Element};
use hoist_tool::input::{self, Input};
use hoist_tool::objects::Objects;
use serde::Deserialize;

#[derive(Deserialize)]
struct Calls {
    program: Vec<Program>,
}

#[derive(Deserialize)]
struct Program {
    arch: String,
    builds: Vec<Vec<String>>,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    function: String,
    #[serde(default)]
    args: Vec<String>,
    ret: Option<String>,
    expect: Option<String>,
    buffers: Option<Vec<String>>,
    prints: Option<String>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

fn inputs(build: &[String]) -> Vec<Input> {
    let paths: Vec<PathBuf> = build.iter().map(|name| fixtures().join(name)).collect();
    input::read_all(&paths, Limits::default()).expect("fixtures")
}

/// Makes a call in this process; what is not as it should be.
fn call(inputs: &[Input], call: &Call, relax: bool) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let objects = Objects::gather(inputs, &[&call.function]).map_err(|error| text(&error))?;
    let process = Process::new();
    let bytes = objects.files().iter().map(|file| file.bytes());
    let module = Loader::new().relax(relax).load(bytes, process).map_err(|error| text(&error))?;
    // SAFETY: the fixtures are our own.
    unsafe { module.initialize() };
    let mut arguments: Vec<Argument> =
        call.args.iter().map(|word| word.parse().expect("an argument")).collect();
    let values: Vec<_> = arguments.iter_mut().map(Argument::value).collect();
    let types: Vec<Type> = values.iter().map(|value| value.r#type()).collect();
    let result = call
        .ret
        .as_deref()
        .map_or(Type::Void, |word| word.parse::<Element>().expect("a type").r#type());
    let function = module.dynamic(&call.function, &types, result).map_err(|error| text(&error))?;
    // SAFETY: the table gives the function's type, and buffers of the right size.
    let result = unsafe { function.call(&values) }.map_err(|error| text(&error))?;
    let result = result.map(|value| value.to_string());
    if result != call.expect {
        return Err(format!("returns {result:?}, expected {:?}", call.expect));
    }
    let buffers = arguments.iter().filter_map(|argument| match argument {
        Argument::Buffer(buffer) => Some(buffer.to_string()),
        _ => None,
    });
    let buffers: Vec<String> = buffers.collect();
    match &call.buffers {
        Some(expected) if *expected != buffers => {
            Err(format!("buffers {buffers:?}, expected {expected:?}"))
        }
        _ => Ok(()),
    }
}

/// Makes a call in a process of its own and compares what it prints.
fn command(build: &[String], call: &Call, prints: &str) -> Result<(), String> {
    // under an emulator, cargo's runner for the target
    let target =
        format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER", std::env::consts::ARCH.to_uppercase());
    let runner = std::env::var(target).unwrap_or_default();
    let mut words = runner.split_whitespace().chain([env!("CARGO_BIN_EXE_hoist")]);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command.arg("run").args(build).arg(&call.function).args(&call.args).current_dir(fixtures());
    command.args(["--ret", call.ret.as_deref().unwrap_or("void")]);
    let output = command.output().expect("hoist runs");
    let result = call.expect.as_ref().map_or(String::new(), |value| format!("{value}\n"));
    let printed = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && printed == format!("{prints}{result}") {
        return Ok(());
    }
    Err(format!("prints {printed:?}, {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn every_call_is_right() {
    let text = std::fs::read_to_string(fixtures().join("calls.toml")).expect("the table");
    let calls: Calls = toml::from_str(&text).expect("a table");
    let (mut made, mut wrong) = (0, Vec::new());
    for program in calls.program.iter().filter(|program| program.arch == std::env::consts::ARCH) {
        for build in &program.builds {
            let inputs = inputs(build);
            for one in &program.calls {
                made += 1;
                let done = match &one.prints {
                    Some(prints) => command(build, one, prints),
                    None => call(&inputs, one, true).and_then(|()| call(&inputs, one, false)),
                };
                if let Err(error) = done {
                    wrong.push(format!(
                        "{build:?} {}({}): {error}",
                        one.function,
                        one.args.join(", ")
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {made} calls are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(made > 100, "only {made} calls");
}
