//! The tasks that are work of their own; `ci` and `test-matrix`, which run others, are added in `main.rs`.

use crate::task::{Task, task};
use crate::{
    bare_metal, boot_loader, calls, debian, fixtures, fuzz, generate, gpu_test, kernel_modules,
    layers, ld_so, library_work, licences, lint, miri, mutants, no_panic, nvcc_modes, public_api,
    python, raw_mock, sanitize, semver, size, slim_wheels, test, verdicts, viewer, web,
    whole_archives, whole_libraries,
};

/// Name, and what it is for.
#[rustfmt::skip]
pub(crate) const TASKS: &[Task] = &[
    task::<lint::Lint>        ("lint",     "rustfmt, clippy and rustdoc without warnings"),
    task::<test::Test>        ("test",     "Every test and doctest of the workspace; ends with the total"),
    task::<layers::Layers>    ("layers",   "Compare the picture in ARCHITECTURE.md with the manifests; find circles of files"),
    task::<fixtures::Fixtures>("fixtures", "Rebuild every fixture by its recorded command; tell which changed"),
    task::<calls::Calls>      ("calls",    "Link the fixtures with the system's linker and check fixtures/calls.toml"),
    task::<no_panic::NoPanic> ("no-panic", "Prove that no entry point of the lower crates can panic or allocates; tell their stack"),
    task::<size::Size>        ("size",     "Code of the lower crates on small machines, beside its budget"),
    task::<fuzz::Fuzz>        ("fuzz",     "Run the fuzz targets on seeds made of the fixtures"),
    task::<sanitize::Sanitize>("sanitize", "Tests of the executors under AddressSanitizer: bad accesses, leaks"),
    task::<bare_metal::BareMetal>("bare-metal", "Boot firmware that links objects: examples/bare-metal"),
    task::<boot_loader::BootLoader>("boot-loader", "Boot firmware that loads executables: examples/boot-loader"),
    task::<gpu_test::GpuTest> ("gpu-test", "Run on a GPU: make a folder with programs and cubins, and a report there or elsewhere"),
    task::<raw_mock::RawMock> ("raw-mock", "GPUs without CUDA on tinygrad's mock of driver and GPU"),
    task::<ld_so::LdSo>       ("ld-so",    "Every shared library of the machine as ld.so and as hoist relocate it, byte for byte"),
    task::<library_work::LibraryWork>("library-work", "Real work through shared libraries, by dlopen and out of bytes"),
    task::<kernel_modules::KernelModules>("kernel-modules", "Every module of a kernel package through `hoist link`, and by the kernel's rules, byte for byte"),
    task::<whole_archives::WholeArchives>("whole-archives", "Every static library of the machine with --whole-archive, by hoist and by GNU ld"),
    task::<verdicts::Verdicts>("verdicts", "Run programs of every compiler and code model; tell what hoist gets right"),
    task::<debian::Packages>("packages", "Run programs with static libraries of Debian, and of many languages; tell what hoist gets right"),
    task::<public_api::Api>   ("api",      "Compare what the published libraries offer with the snapshots in xtask/api"),
    task::<semver::Semver>    ("semver",   "Whether the libraries keep what an earlier version promised"),
    task::<python::Python>    ("python",   "Build the Python package, install it, run its tests and examples"),
    task::<python::Tinygrad>  ("tinygrad", "Run tinygrad's own tests with its loader and with ours; tell which differ"),
    task::<python::Wheels>    ("wheels",   "Build the Python package for other machines and older C libraries"),
    task::<slim_wheels::SlimWheels>("slim-wheels", "Wheels of the index through `hoist wheel slim`: sizes, times, images, and what pip says"),
    task::<whole_libraries::WholeLibraries>("whole-libraries", "Libraries of wheels, changed by hoist and then by other tools: they load, with the same images"),
    task::<nvcc_modes::NvccModes>("nvcc-modes", "Sizes that `hoist fatbin recompress --mode` gives, beside those of nvcc"),
    task::<licences::Licences>("licences", "Licences and sources of dependencies; advisories against them on demand"),
    task::<miri::Miri>        ("miri",     "Tests in the interpreter that finds undefined behaviour"),
    task::<mutants::Mutants>  ("mutants",  "Small changes of the code that no test notices: hours"),
    task::<viewer::Viewer>    ("viewer",   "The page of `hoist fatbin report`: its types, and its tests in a browser"),
    task::<web::Web>          ("web",      "The page that opens files in a browser: static files; its tests; a server"),
    task::<generate::Generate>("generate", "Make large inputs for benches"),
];
