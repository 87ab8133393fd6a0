//! What differs between compilers.

use crate::machine;

/// A sort of compiler.
pub trait Family: Send + Sync + 'static {
    /// What it is called: alone, or with a version behind a hyphen.
    const NAME: &'static str;
    /// Options that images are made with, if no others are given.
    const OPTIONS: &'static [&'static str];
    /// Arguments that make an object on standard output of the source on standard input.
    const COMPILE: &'static [&'static str];
    /// Arguments that make a source without includes, if there is such a thing.
    const EXPAND: Option<&'static [&'static str]>;
    /// Whether a file of this name is the compiler itself, and changes when the version does: `rustc` is often a program that
    /// starts one of several compilers.
    const IS_ITSELF: bool;
    /// Arguments that make it say everything about its version.
    const VERSION: &'static [&'static str];
}

/// Clang.
#[derive(Clone, Copy, Debug)]
pub struct Clang;

/// GCC.
#[derive(Clone, Copy, Debug)]
pub struct Gcc;

/// The Rust compiler.
#[derive(Clone, Copy, Debug)]
pub struct Rustc;

/// For this processor; position-independent, so that it can be anywhere; `errno` is nobody's business.
const C: &[&str] = &["-O2", machine::ARCHITECTURE, "-fPIC", "-fno-math-errno", "-fno-ident"];

impl Family for Clang {
    const NAME: &'static str = "clang";
    const OPTIONS: &'static [&'static str] = C;
    const COMPILE: &'static [&'static str] = &["-c", "-x", "c", "-", "-o", "-"];
    const EXPAND: Option<&'static [&'static str]> = Some(&["-E", "-x", "c", "-"]);
    const IS_ITSELF: bool = true;
    const VERSION: &'static [&'static str] = &["--version"];
}

impl Family for Gcc {
    const NAME: &'static str = "gcc";
    const OPTIONS: &'static [&'static str] = C;
    // the assembler goes back and forth in its output, so that it needs a name; standard output is memory here
    const COMPILE: &'static [&'static str] =
        &["-c", "-x", "c", "-pipe", "-", "-o", "/proc/self/fd/1"];
    const EXPAND: Option<&'static [&'static str]> = Some(&["-E", "-x", "c", "-"]);
    // with how it was configured, as distributions differ in defaults
    const IS_ITSELF: bool = true;
    const VERSION: &'static [&'static str] = &["-v"];
}

impl Family for Rustc {
    const NAME: &'static str = "rustc";
    const OPTIONS: &'static [&'static str] = &[
        "--edition=2024",
        "-Copt-level=3",
        "-Ctarget-cpu=native",
        "-Cpanic=abort",
        "-Crelocation-model=pic",
        "-Ccodegen-units=1",
    ];
    const COMPILE: &'static [&'static str] =
        &["--crate-type=lib", "--crate-name=image", "--emit=obj=-", "-"];
    const EXPAND: Option<&'static [&'static str]> = None;
    const IS_ITSELF: bool = false;
    const VERSION: &'static [&'static str] = &["--version", "--verbose"];
}

/// C++ with Clang.
#[derive(Clone, Copy, Debug)]
pub struct ClangCpp;

/// C++ with GCC.
#[derive(Clone, Copy, Debug)]
pub struct GccCpp;

/// Fortran with GCC.
#[derive(Clone, Copy, Debug)]
pub struct Gfortran;

/// Assembly with Clang.
#[derive(Clone, Copy, Debug)]
pub struct ClangAssembly;

/// Assembly with GCC and GNU as.
#[derive(Clone, Copy, Debug)]
pub struct GccAssembly;

/// Compilers that are started as those of C are: name, usual options, arguments of the compiler, of the preprocessor, of the
/// version.
macro_rules! families {
    ($($family:ident: $name:literal, $options:expr, $language:literal, $out:literal, $expand:expr, $version:literal;)*) => {
        $(impl Family for $family {
            const NAME: &'static str = $name;
            const OPTIONS: &'static [&'static str] = $options;
            const COMPILE: &'static [&'static str] = &["-c", "-x", $language, "-pipe", "-", "-o", $out];
            const EXPAND: Option<&'static [&'static str]> = $expand;
            const IS_ITSELF: bool = true;
            const VERSION: &'static [&'static str] = &[$version];
        })*
    };
}
families! {
    ClangCpp: "clang++", C, "c++", "-", Some(&["-E", "-x", "c++", "-"]), "--version";
    GccCpp: "g++", C, "c++", "/proc/self/fd/1", Some(&["-E", "-x", "c++", "-"]), "-v";
    Gfortran: "gfortran", FORTRAN, "f95", "/proc/self/fd/1", None, "-v";
    ClangAssembly: "clang", &[], "assembler-with-cpp", "-", Some(&["-E", "-x", "assembler-with-cpp", "-"]), "--version";
    GccAssembly: "gcc", &[], "assembler-with-cpp", "/proc/self/fd/1", Some(&["-E", "-x", "assembler-with-cpp", "-"]), "-v";
}

/// Lines are as long as they like, and need not start in a column.
const FORTRAN: &[&str] =
    &["-O2", "-march=native", "-fPIC", "-fno-ident", "-ffree-form", "-ffree-line-length-none"];
