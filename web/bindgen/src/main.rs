//! `web-bindgen MODULE.wasm FOLDER`: writes `hoist_bg.wasm` and `hoist.js` for a browser.

use std::env::args_os;
use std::path::PathBuf;

use anyhow::{Result, bail};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let words: Vec<PathBuf> = args_os().skip(1).map(PathBuf::from).collect();
    let [module, folder] = words.as_slice() else { bail!("web-bindgen MODULE.wasm FOLDER") };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name("hoist").web(true)?;
    bindgen.typescript(true).remove_name_section(true).remove_producers_section(true);
    bindgen.generate(folder)
}
