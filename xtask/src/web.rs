//! `web`: the page that opens files in a browser, as static files; its tests; a server for it on this machine.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, bail};

use crate::bare::Toolchain;
use crate::task::Run;
use crate::test;
use crate::tool::{Missing, Tool, cargo, need, output, run};
use crate::viewer;
use crate::workspace::Workspace;

mod server;

/// Arguments of `web`.
#[derive(clap::Args)]
pub(crate) struct Web {
    /// Runs the tests of the page in a browser
    #[arg(long)]
    test: bool,
    /// Records what pictures of the page look like, for later runs to compare with: look at them first
    #[arg(long, requires = "test")]
    record: bool,
    /// Runs some of them in Firefox
    #[arg(long, conflicts_with = "test")]
    firefox: bool,
    /// Says how long the page takes to appear, and to show the maps of these files
    #[arg(long, num_args = 1.., value_name = "FILE", conflicts_with_all = ["test", "firefox"])]
    times: Vec<PathBuf>,
    /// Serves the page on this machine until it is ended
    #[arg(long, conflicts_with_all = ["test", "firefox", "times"])]
    serve: bool,
    /// Port of the server; any that is free without it
    #[arg(long, default_value_t = 0, requires = "serve")]
    port: u16,
    /// Skip it, by name, if this machine lacks the tools
    #[arg(long)]
    skip_missing: bool,
}

/// The machine of the module.
const TARGET: &str = "wasm32-unknown-unknown";
/// Names of C++ are nested deeply: more than the usual megabyte.
const STACK: &str = "link-arg=-zstack-size=4194304";
/// What compiles Zstandard's library in C for the module, and says how large the module is over the network.
const TOOLS: [Tool<'_>; 3] = [
    Tool::new("clang-19", "clang-19"),
    Tool::new("llvm-ar-19", "llvm-19"),
    Tool::new("gzip", "gzip"),
];
/// What every browser has had since 2023: vectors, and copies of memory as one instruction.
const MACHINE: [(&str, &str); 4] = [
    ("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", "-Ctarget-feature=+simd128"),
    ("CC_wasm32_unknown_unknown", "clang-19"),
    ("AR_wasm32_unknown_unknown", "llvm-ar-19"),
    ("CFLAGS_wasm32_unknown_unknown", "-msimd128 -mbulk-memory"),
];
/// Bytes of the module, compressed, that it may not reach.
const LIMIT: usize = 1_000_000;
/// The scripts of this page, behind those of the viewer.
const SCRIPTS: &[&str] = &["engine", "views", "page"];

/// What scripts of tests compare pictures with.
const PICTURES: &str = "pictures.mjs";
/// What drives Firefox: with all that it needs too much for every run.
const DRIVER: &str = "puppeteer-core@24.43.1";

impl Run for Web {
    fn run(self, workspace: &Workspace) -> Result<()> {
        match self.done(workspace) {
            Err(error) if self.skip_missing && error.is::<Missing>() => {
                test::skip("web", &format!("{error:#}"));
                Ok(())
            }
            done => done,
        }
    }
}

impl Web {
    fn done(&self, workspace: &Workspace) -> Result<()> {
        let drives = self.test || self.firefox || !self.times.is_empty();
        let checked = if drives { Some(viewer::installed(workspace)?) } else { None };
        let site = workspace.target().join("web");
        module(workspace, &site)?;
        page(workspace, &site)?;
        println!("the page is in {}", site.display());
        if let Some(checked) = checked {
            return match &*self.times {
                [] if self.firefox => firefox(workspace, &site, &checked),
                [] => tests(workspace, &site, &checked, self.record),
                files => times(workspace, &site, &checked, files),
            };
        }
        if self.serve {
            let listener = TcpListener::bind(("127.0.0.1", self.port))?;
            println!("http://{}/", listener.local_addr()?);
            server::serve(&listener, &site);
        }
        Ok(())
    }
}

/// Builds the module, and tells its size.
fn module(workspace: &Workspace, site: &Path) -> Result<()> {
    if !Toolchain::Own.has(TARGET) {
        let mut rustup = Command::new("rustup");
        let added = output(rustup.args(["target", "add", TARGET]));
        added.map_err(|error| Missing(format!("the libraries of {TARGET}: {error:#}")))?;
    }
    need(TOOLS)?;
    let root = workspace.root();
    let mut build = cargo();
    build.current_dir(root).envs(MACHINE);
    run(build.args(["rustc", "--package", "web", "--lib"]).args([
        "--crate-type",
        "cdylib",
        "--target",
        TARGET,
        "--profile",
        "web",
        "--",
        "-C",
        STACK,
    ]))?;
    if site.exists() {
        fs::remove_dir_all(site).with_context(|| site.display().to_string())?;
    }
    fs::create_dir_all(site)?;
    let bindgen = root.join("web/bindgen/Cargo.toml");
    let mut cargo = cargo();
    cargo.current_dir(root).args(["run", "--quiet", "--locked", "--manifest-path"]).arg(bindgen);
    cargo.arg("--target-dir").arg(workspace.target().join("xtask/web-bindgen")).arg("--");
    run(cargo.arg(workspace.target().join(TARGET).join("web/web.wasm")).arg(site))?;
    let module = site.join("hoist_bg.wasm");
    let size = fs::metadata(&module)?.len();
    let packed = output(Command::new("gzip").args(["-9", "--stdout"]).arg(&module))?.stdout.len();
    println!("the module: {size} bytes, {packed} compressed by gzip; the limit is {LIMIT}");
    if packed >= LIMIT {
        bail!("the module has {packed} bytes compressed, and may have less than {LIMIT}");
    }
    Ok(())
}

/// Puts the page beside the module: one script, one style, and the worker.
fn page(workspace: &Workspace, site: &Path) -> Result<()> {
    let (viewer, web) = (viewer::source(workspace), workspace.root().join("web/page"));
    let read = |path: &Path| fs::read_to_string(path).with_context(|| path.display().to_string());
    let all = |names: &[&str], folder: &Path| -> Result<String> {
        names.iter().map(|name| read(&folder.join(format!("{name}.js")))).collect()
    };
    let script = all(viewer::SCRIPTS, &viewer)? + &all(SCRIPTS, &web)?;
    fs::write(site.join("page.js"), script)?;
    let style = read(&viewer.join("page.css"))? + &read(&web.join("page.css"))?;
    fs::write(site.join("page.css"), style)?;
    let sections = read(&viewer.join("sections.html"))?;
    let index = read(&web.join("index.html"))?.replace("<!-- sections -->\n", &sections);
    fs::write(site.join("index.html"), index)?;
    fs::copy(web.join("worker.js"), site.join("worker.js"))?;
    Ok(())
}

/// Types of the scripts, and the page in a browser, served from here.
fn tests(workspace: &Workspace, site: &Path, checked: &Path, record: bool) -> Result<()> {
    let web = workspace.root().join("web");
    let tsc = viewer::tsc(checked);
    run(Command::new(&tsc).arg("--project").arg(web.join("page")))?;
    viewer::lint(checked, workspace, &[&web.join("page"), &web.join("tests")])?;
    // beside the script that calls the module, whose types it has
    let worker = web.join("page/tsconfig.worker.json");
    fs::copy(&worker, site.join("tsconfig.json"))?;
    let done = run(Command::new(&tsc).arg("--project").arg(site));
    fs::remove_file(site.join("tsconfig.json"))?;
    done?;
    let mut tests = script(workspace, site, checked, "page.test.mjs", &["--test"])?;
    tests.env("FIXTURES", workspace.fixtures()).env("PICTURES", workspace.kept("web")?);
    tests.env("PICTURES_SEEN", workspace.root().join("web/tests/pictures.json"));
    run(tests.env("RECORD", if record { "1" } else { "" }))
}

/// The page in Firefox, which speaks another language than Chromium to those who drive it.
fn firefox(workspace: &Workspace, site: &Path, checked: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.current_dir(checked).args(["install", "--no-save", "--no-audit", "--no-fund", DRIVER]);
    output(&mut npm).map_err(|error| Missing(format!("npm install: {error:#}")))?;
    let mut tests = script(workspace, site, checked, "firefox.mjs", &["--test"])?;
    run(tests.env("FIXTURES", workspace.fixtures()).env("PICTURES", workspace.kept("web")?))
}

/// How long the page takes.
fn times(workspace: &Workspace, site: &Path, checked: &Path, files: &[PathBuf]) -> Result<()> {
    let files = files.iter().map(|file| file.canonicalize().context(file.display().to_string()));
    let files: Vec<PathBuf> = files.collect::<Result<_>>()?;
    run(script(workspace, site, checked, "times.mjs", &[])?.args(files))
}

/// A script that drives a browser to the page, which is served from here.
fn script(
    workspace: &Workspace,
    site: &Path,
    checked: &Path,
    name: &str,
    options: &[&str],
) -> Result<Command> {
    let folder = checked.join("web");
    fs::create_dir_all(&folder)?;
    for name in [name, PICTURES] {
        fs::copy(workspace.root().join("web/tests").join(name), folder.join(name))
            .with_context(|| name.to_owned())?;
    }
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = format!("http://{}/", listener.local_addr()?);
    let site = site.to_owned();
    thread::spawn(move || server::serve(&listener, &site));
    let mut script = Command::new("node");
    script.current_dir(&folder).args(options).arg(name).env("PAGE", address);
    Ok(script)
}
