//! What cannot be in memory of this process.
#![cfg(test)]
#![cfg(target_arch = "x86_64")]

#[path = "../../elf-layout/tests/support/mod.rs"]
mod support;
mod system;

use elf_core::SectionFlags;
use elf_core::names::{SHT_PROGBITS, STB_GLOBAL, STT_FUNC};
use exec_host::{Error, Module};
use support::{CODE, Object, Place, READ, WRITE};
use system::load;

fn refused(object: &Object) -> Error {
    load(&[&object.build()]).map(|_| ()).unwrap_err()
}

#[test]
fn writable_and_executable() {
    let mut object = Object::new();
    object.section(".both", WRITE | CODE, 16, &[0xc3]);
    let error = refused(&object);
    assert!(matches!(error, Error::WriteExecute));
    assert_eq!(error.to_string(), "a section is writable and executable at once");
}

#[test]
fn addresses_of_its_own() {
    let mut object = Object::new();
    let section = object.section(".fixed", READ, 16, &[1; 4]);
    object.at(section, 0x1_0000);
    assert_eq!(
        refused(&object).to_string(),
        "object 0: section .fixed: its address 0x10000 cannot be had"
    );
}

#[test]
fn code_on_the_stack() {
    let mut object = Object::new();
    object.section(".text", CODE, 16, &[0xc3]);
    object.section(".note.GNU-stack", SectionFlags::empty(), 1, &[]);
    assert!(load(&[&object.build()]).is_ok());
    object.section(".note.GNU-stack", SectionFlags::EXECINSTR, 1, &[]);
    let error = refused(&object);
    assert!(matches!(error, Error::ExecutableStack { object: 0, section: 3, .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "object 0: section .note.GNU-stack: code that wants to execute the stack"
    );
}

/// Objects of GCC's `-flto`: `slim_object` is the fifth byte (lto-streamer.h).
#[test]
fn no_machine_code() {
    let object = |name: &str, flags, data: &[u8]| {
        let mut object = Object::new();
        object.section(".text", CODE, 16, &[0xc3]);
        object.section(name, flags, 1, data);
        object
    };
    let own = ".gnu.lto_.lto.5f0c8c6a";
    let error = refused(&object(own, SectionFlags::empty(), &[13, 0, 0, 0, 1, 0, 0, 0]));
    assert!(matches!(error, Error::Elf { object: 0, .. }), "{error}");
    assert!(error.to_string().contains("-ffat-lto-objects"), "{error}");
    for other in [
        object(own, SectionFlags::empty(), &[13, 0, 0, 0, 0, 0, 0, 0]),
        object(own, SectionFlags::empty(), &[13, 0, 0, 0]),
        object(own, READ, &[13, 0, 0, 0, 1]),
        object(".gnu.lto_.opts", SectionFlags::empty(), &[13, 0, 0, 0, 1]),
    ] {
        assert!(load(&[&other.build()]).is_ok());
    }
}

#[test]
fn more_memory_than_there_is() {
    let mut object = Object::new();
    object.zeros(".bss", WRITE, 1, 1 << 62);
    let error = refused(&object).to_string();
    assert!(error.starts_with("object 0: section .bss: asks for 4611686018427387904"), "{error}");
    assert!(error.contains("more than the limit"), "{error}");
    let mut object = Object::new();
    object.zeros(".bss", WRITE, 1 << 61, 1);
    assert!(matches!(refused(&object), Error::Map { .. }), "{}", refused(&object));
}

#[test]
fn constructors_that_are_no_code() {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[0; 8]);
    let list = object.section(".ctors", WRITE, 8, &[0; 16]);
    assert_eq!(SHT_PROGBITS, 1, "as the sections here are");
    let target = object.local("target", data, 0);
    object.relocation(list, 8, 1, target, 0);
    let error = refused(&object);
    assert!(matches!(error, Error::Initializer { object: 0, section: 2, .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("object 0: section .ctors: constructor 0x"), "{text}");
    assert!(text.ends_with(" is outside the code"), "{text}");
}

#[test]
fn symbols_that_are_no_functions() {
    let mut object = Object::new();
    let text = object.section(".text", CODE, 16, &[0xc3, 0xcc]);
    let data = object.section(".data", WRITE, 8, &[0; 8]);
    object.symbol("code", STB_GLOBAL, STT_FUNC, Place::In(text), 0, 1);
    object.global("data", data, 0);
    object.symbol("constant", STB_GLOBAL, STT_FUNC, Place::Absolute, 0x1234, 0);
    object.local("local", text, 0);
    object.weak("weak", text, 1);
    object.undefined("strlen");
    let module: Module<Vec<u8>> = load(&[&object.build()]).unwrap();
    let start = module.extent().0;
    assert_eq!(module.function("code").unwrap(), start);
    assert_eq!(module.function("weak").unwrap(), start + 1);
    for name in ["data", "constant"] {
        let error = module.function(name).unwrap_err();
        assert_eq!(error.to_string(), format!("{name} is not code"));
    }
    for name in ["local", "strlen", "nothing", ""] {
        let error = module.function(name).unwrap_err();
        assert_eq!(error.to_string(), format!("no object defines {name}"));
    }
    assert_eq!(module.address("constant"), Some(0x1234));
    assert_eq!(module.address("nothing"), None);
    // SAFETY: the code is `ret`.
    unsafe { module.get::<unsafe extern "C" fn()>("code").unwrap()() };
}
