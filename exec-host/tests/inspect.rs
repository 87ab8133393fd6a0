//! What a JIT asks of a module: symbols, sections, sizes, names; modules whose objects come one after the other.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use elf_core::names::{STB_LOCAL, STT_FUNC, STT_OBJECT};
use exec_host::image::{ImageMemory, MemoryRequirements, MemorySource, Segment, SegmentFlags};
use exec_host::{CodeArena, Loader, Module, Process};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use system::{compile, is_emulated, mapped};

type Call = unsafe extern "C" fn(i32) -> i32;

fn call<B: AsRef<[u8]>>(module: &Module<B>, name: &str, x: i32) -> i32 {
    // SAFETY: `int name(int)`.
    unsafe { module.get::<Call>(name).unwrap()(x) }
}

const SOURCE: &str = "\
static volatile int secret = 4;
int shared[10];
static __attribute__((noinline)) int helper(int x) { return x * secret; }
int twice(int x) { return helper(x) + helper(x + 1); }
const int table[3] = {1, 2, 3};
__attribute__((section(\"stack_maps\"), used)) static const int (*const maps[2])(int) = {(void *)twice, (void *)helper};
__attribute__((section(\".note.own\"), used)) static const char note[] = \"own\";
";

#[test]
fn symbols_sections_and_sizes() {
    // data at addresses that instructions hold: on RISC-V these would have to be low ones
    let model = if cfg!(target_arch = "riscv64") { "-mcmodel=medany" } else { "-fno-pic" };
    let Some(object) = compile("cc", &["-O1", "-fno-pic", model, "-ffunction-sections"], SOURCE)
    else {
        println!("skipped: symbols_sections_and_sizes: needs cc");
        return;
    };
    let arena = CodeArena::new();
    for loader in [Loader::new(), Loader::new().arena(&arena)] {
        let module = loader.load([object.bytes.clone()], Process::new()).unwrap();
        let by_name: BTreeMap<String, _> =
            module.symbols().map(|symbol| (symbol.name.to_string(), symbol)).collect();
        for name in ["twice", "shared", "table"] {
            assert_eq!(Some(by_name[name].address), module.address(name), "{name}");
        }
        let helper = by_name["helper"];
        assert_eq!((helper.binding, helper.r#type), (STB_LOCAL, STT_FUNC));
        assert_eq!((by_name["shared"].size, by_name["shared"].r#type), (40, STT_OBJECT));
        // SAFETY: `int secret`, which nobody writes.
        assert_eq!(unsafe { (by_name["secret"].address as *const i32).read() }, 4);

        for symbol in by_name.values().filter(|symbol| symbol.size > 0) {
            // pointers to Thumb code have one bit more than its place
            let is_thumb = cfg!(target_arch = "arm") && symbol.r#type == STT_FUNC;
            let place = |address: u64| if is_thumb { address & !1 } else { address };
            let first = place(symbol.address);
            for (address, behind) in
                [(first, 0), (symbol.address, 0), (first + symbol.size - 1, place(symbol.size - 1))]
            {
                let found = module.symbol_at(address);
                assert_eq!(found, Some((*symbol, behind)), "{} {address:#x}", symbol.name);
            }
        }
        assert!(module.symbol_at(0x10).is_none());

        let maps = module.sections().find(|section| section.name == "stack_maps").unwrap();
        let words: Vec<u64> = match maps.bytes() {
            Some(bytes) => {
                let words = bytes.as_chunks::<{ size_of::<usize>() }>().0.iter();
                words.map(|word| usize::from_le_bytes(*word) as u64).collect()
            }
            None => {
                let at = maps.address.unwrap() as *const [usize; 2];
                // SAFETY: two words, which nobody writes.
                unsafe { at.read() }.map(|word| word as u64).to_vec()
            }
        };
        assert_eq!(words, [by_name["twice"].address, helper.address], "relocated");
        assert_ne!(
            maps.in_file(),
            words.iter().flat_map(|word| (*word as usize).to_le_bytes()).collect::<Vec<_>>()
        );
        let note = module.sections().find(|section| section.name == ".note.own").unwrap();
        assert_eq!(note.in_file(), b"own\0");
        let debug = module.sections().find(|section| section.name == ".symtab").unwrap();
        assert_eq!((debug.address, debug.bytes()), (None, None));

        let sizes = module.sizes();
        assert!(
            sizes.code >= helper.size + by_name["twice"].size && sizes.code < 4096,
            "{sizes:?}"
        );
        assert!(sizes.writable >= 44 && sizes.read_only >= 12, "{sizes:?}");
        for (range, flags) in module.segments() {
            let map = mapped(&range);
            let is_code = flags.contains(SegmentFlags::EXECUTE);
            let is_right = |map: &system::Map| map.permissions.contains('x') == is_code;
            assert!(is_emulated() || map.iter().all(is_right), "{map:?}");
        }
        assert_eq!(call(&module, "twice", 3), 28);
    }
}

#[cfg(feature = "demangle")]
#[test]
fn names_as_in_the_source() {
    let source = "namespace space { int f(int x) { return x + 1; } double f(double x) { return x; } \
        struct Type { int method() const; }; int Type::method() const { return 5; } } extern \"C\" int plain() { return 3; }";
    let Some(object) = compile("c++", &["-O1"], source) else {
        println!("skipped: names_as_in_the_source: needs c++");
        return;
    };
    let module = system::load(&[&object.bytes]).unwrap();
    let found = |name: &str| -> Vec<String> {
        module.find_demangled(name).map(|symbol| symbol.name.to_string()).collect()
    };
    assert_eq!(found("space::f(int)"), ["_ZN5space1fEi"]);
    assert_eq!(found("space::f"), ["_ZN5space1fEi", "_ZN5space1fEd"]);
    assert_eq!(found("space::Type::method"), ["_ZNK5space4Type6methodEv"]);
    assert_eq!((found("plain"), found("space::g")), (vec!["plain".to_owned()], Vec::new()));
}

#[test]
fn a_group_that_calls_in_circles() {
    let sources = [
        "int odd(int); int even(int x) { return x == 0 ? 1 : odd(x - 1); }",
        "int even(int); extern int calls; int odd(int x) { calls++; return x == 0 ? 0 : even(x - 1); }",
        "int calls; int abs(int); int count(int x) { return abs(calls) + x; }",
    ];
    let objects = sources.map(|source| compile("cc", &["-O1", "-fPIC", "-fno-builtin"], source));
    let mut group = Loader::new().group();
    let mut missing = Vec::new();
    for object in objects {
        let Some(object) = object else {
            println!("skipped: a_group_that_calls_in_circles: needs cc");
            return;
        };
        group.add(object.bytes).unwrap();
        missing.push(group.missing().map(|name| name.to_string()).collect::<Vec<_>>().join(" "));
    }
    assert!(group.add(b"no object".to_vec()).is_err(), "and nothing has changed");
    let expected = ["odd", "calls", "abs"];
    let is_own = |name: &&str| !name.starts_with('_');
    let missing = missing.iter().map(|names| names.split(' ').filter(is_own).collect::<Vec<_>>());
    assert_eq!(missing.collect::<Vec<_>>(), expected.map(|name| vec![name]));
    assert!(group.defines("even") && !group.defines("abs"));
    let module = group.finish(Process::new()).unwrap();
    assert_eq!([call(&module, "even", 10), call(&module, "odd", 10)], [1, 0]);
    assert_eq!(call(&module, "count", 0), 5 + 6);
}

/// First what was added first, and the other way round at the end, when all of the group is there still.
#[test]
fn a_group_goes_in_order() {
    let source = |own: char, other: char| {
        format!(
            "extern char *at; void tell_{other}(char); void tell_{own}(char what) {{ *at++ = what; }}
             __attribute__((constructor)) static void first(void) {{ tell_{other}('{own}'); }}
             __attribute__((destructor)) static void last(void) {{ tell_{other}('{own}' - 32); }}"
        )
    };
    let sources = [source('a', 'b'), source('b', 'c'), source('c', 'a'), String::from("char *at;")];
    let mut group = Loader::new().group();
    for source in sources {
        let Some(object) = compile("cc", &["-O1", "-fPIC"], &source) else {
            println!("skipped: a_group_goes_in_order: needs cc");
            return;
        };
        group.add(object.bytes).unwrap();
    }
    let module = group.finish(()).unwrap();
    let mut told = [0u8; 8];
    // SAFETY: `char *at`, with room for all that is told.
    unsafe { (module.address("at").unwrap() as *mut *mut u8).write(told.as_mut_ptr()) };
    // SAFETY: the sources are above.
    unsafe { module.initialize() };
    drop(module);
    assert_eq!(&told, b"abcCBA\0\0");
}

/// Memory of the caller's: written at one address, run at another.
#[derive(Debug, Default)]
struct Shared(Mutex<Vec<MemoryRequirements>>);

struct Piece {
    address: u64,
    bytes: Vec<u8>,
}

// SAFETY: the pages are mapped for this alone.
unsafe impl MemorySource for Shared {
    fn reserve(&self, needed: &MemoryRequirements) -> io::Result<Box<dyn ImageMemory>> {
        self.0.lock().unwrap().push(*needed);
        // SAFETY: no existing mapping is touched.
        let start = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), needed.size as usize, libc::PROT_WRITE, flags, -1, 0)
        };
        if start == libc::MAP_FAILED || needed.limit.is_some() {
            return Err(io::Error::last_os_error());
        }
        Ok(Box::new(Piece { address: start as u64, bytes: vec![0; needed.size as usize] }))
    }
}

// SAFETY: as above; what was written is copied before it is protected.
unsafe impl ImageMemory for Piece {
    fn address(&self) -> u64 {
        self.address
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
    fn protect(&mut self, segments: &[Segment]) -> io::Result<()> {
        // SAFETY: so many bytes are mapped there.
        unsafe { (self.address as *mut u8).copy_from(self.bytes.as_ptr(), self.bytes.len()) };
        for segment in segments {
            let mut flags = libc::PROT_READ;
            for (flag, bit) in
                [(SegmentFlags::WRITE, libc::PROT_WRITE), (SegmentFlags::EXECUTE, libc::PROT_EXEC)]
            {
                flags |= if segment.flags.contains(flag) { bit } else { 0 };
            }
            let start = (self.address + segment.offset) as *mut libc::c_void;
            // SAFETY: the pages are ours.
            if unsafe { libc::mprotect(start, segment.size as usize, flags) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: the pages are ours, and nobody uses them any more.
        unsafe { libc::munmap(self.address as *mut libc::c_void, self.bytes.len()) };
    }
}

#[test]
fn memory_of_the_callers() {
    let Some(object) = compile("cc", &["-O1", "-fPIC"], SOURCE) else {
        println!("skipped: memory_of_the_callers: needs cc");
        return;
    };
    let source = Arc::new(Shared::default());
    let loader = Loader::new().memory(Arc::clone(&source));
    let module = loader.load([object.bytes.clone()], Process::new()).unwrap();
    assert_eq!(call(&module, "twice", 3), 28);
    let (start, size) = module.extent();
    let maps = mapped(&(start..start + size));
    assert!(maps.iter().all(|map| map.permissions.ends_with('s')), "{maps:?}");
    let needed = source.0.lock().unwrap().pop().unwrap();
    assert!(needed.size >= size && needed.alignment == 4096 && needed.limit.is_none());
    drop(module);
    let is_left = mapped(&(start..start + size)).iter().any(|map| map.permissions.ends_with('s'));
    assert!(!is_left, "given back");

    let (image, mut memory) = loader.link_into([object.bytes], Process::new(), &*source).unwrap();
    assert_eq!(image.base(), memory.address());
    assert_eq!(memory.bytes_mut()[..image.bytes().len()], *image.bytes());
}
