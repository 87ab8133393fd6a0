//! The command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    hoist_tool::line::main(std::env::args_os().collect()).into()
}
