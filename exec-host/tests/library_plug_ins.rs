//! Libraries that code of a library out of bytes opens, and that need that one: as for the dynamic loader's.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::library::LibraryLoader;
use exec_host::symbols::Symbols as _;
use exec_host::{Loader, Process};
use std::ffi::c_long;
use system::libraries::{Libraries, call_ours, of_file};

/// A library with a number that others add to, whose `probe` is this.
fn add_core(libraries: &Libraries, probe: &str) {
    let source = format!(
        "#define _GNU_SOURCE
        #include <dlfcn.h>
        #include <link.h>
        #include <string.h>
        static long number;
        long core_add(long by) {{ return number += by; }}
        static const char *plug = \"{}\", *part = \"{}\", *own = \"{}\";
        static long call(void *handle, const char *name) {{
            long (*function)(void) = handle ? (long (*)(void))dlsym(handle, name) : 0;
            return function ? function() : -1;
        }}
        long probe(void) {{ {probe} }}",
        libraries.soname("plug"),
        libraries.soname("part"),
        libraries.soname("core"),
    );
    libraries.add("core", &source, &[], &["-Wl,-z,now"]);
}

const PLUG: &str = "long core_add(long by); long plug(void) { return core_add(5); }
    __attribute__((constructor)) static void begin(void) { core_add(100); }
    __attribute__((destructor)) static void end(void) { core_add(1000); }";

/// It is the library that opens it which a plug-in needs, not one more; handles are as others are.
#[test]
fn what_needs_the_one_that_opens_it() {
    let libraries = Libraries::new("plug-in");
    let probe = "
        void *handle = dlopen(plug, RTLD_NOW), *again = dlopen(plug, RTLD_LAZY | RTLD_NOLOAD);
        if (call(handle, \"plug\") != 105 || number != 105) return 1;
        if (again != handle || dlclose(again) || number != 105) return 2;
        if (dlsym(handle, \"core_add\") != (void *)core_add || !dlvsym) return 3;
        if (dlerror() || dlsym(handle, \"absent\") || !dlerror()) return 4;
        struct link_map *map = 0;
        Dl_info info;
        if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !strstr(map->l_name, plug)) return 5;
        if (!dladdr(dlsym(handle, \"plug\"), &info) || info.dli_fbase != (void *)map->l_addr) return 6;
        char folder[4096] = \"\", path[4096];
        strcpy(path, info.dli_fname);
        if (dlinfo(handle, RTLD_DI_ORIGIN, folder) || strncmp(map->l_name, folder, strlen(folder))) return 7;
        if (!*folder || dlinfo(handle, -5, folder) != -1) return 8;
        handle = dlclose(handle) ? handle : dlopen(plug, RTLD_NOW | RTLD_NOLOAD);
        if (handle || number != 1105) return 9;
        dlerror();
        handle = dlopen(path, RTLD_NOW);
        return 10 * call(handle, \"plug\") + dlclose(handle);";
    add_core(&libraries, probe);
    libraries.add("plug", PLUG, &["core"], &[]);
    assert_eq!(of_file(&libraries, "core"), (12100, 12100));
}

/// So it is where a plug-in needs the library by way of another one, which is opened later, and the other way round.
#[test]
fn by_way_of_others() {
    let libraries = Libraries::new("plug-ins");
    let probe = "
        void *first = dlopen(plug, RTLD_NOW), *second = dlopen(part, RTLD_NOW);
        if (!first || !second || first == second) return 1;
        if (dlsym(first, \"part\") != dlsym(second, \"part\")) return 2;
        if (call(first, \"plug\") != 1 || call(second, \"part\") != 11 || number != 11) return 3;
        if (dlclose(first) || call(second, \"part\") != 21) return 4;
        first = dlopen(plug, RTLD_NOW);
        return dlclose(second) ? 5 : 100 * call(first, \"plug\");";
    add_core(&libraries, probe);
    let part = "long core_add(long by); long part(void) { return core_add(10); }";
    libraries.add("part", part, &["core"], &[]);
    let plug = "long core_add(long by); long part(void); long (*other)(void) = part;
        long plug(void) { return core_add(1); }";
    libraries.add("plug", plug, &["part"], &["-Wl,--unresolved-symbols=ignore-all"]);
    assert_eq!(of_file(&libraries, "core"), (2200, 2200));
}

/// Nor does it matter whether the library says a name of its own, as an interpreter's does not: its file has one.
#[test]
fn without_a_name() {
    let libraries = Libraries::new("plug-in-unnamed");
    let source = format!(
        "#include <dlfcn.h>
        static long number;
        long core_add(long by) {{ return number += by; }}
        long probe(void) {{
            void *handle = dlopen(\"{}\", RTLD_NOW);
            long (*plug)(void) = handle ? (long (*)(void))dlsym(handle, \"plug\") : 0;
            return plug ? 10 * plug() + (number == 105) : -1;
        }}",
        libraries.soname("plug")
    );
    libraries.add("core", &source, &[], &["-Wl,-soname,"]);
    let core = format!("-l:{}", libraries.soname("core"));
    let folder = format!("-L{}", libraries.folder.path().display());
    libraries.add("plug", PLUG, &[], &[&folder, &core]);
    assert_eq!(of_file(&libraries, "core"), (1051, 1051));
}

/// Objects that refer to a library out of bytes open what needs it, as the program would that was linked to the library.
#[test]
fn objects_that_open_others() {
    let libraries = Libraries::new("plug-in-objects");
    add_core(&libraries, "return number;");
    libraries.add("plug", PLUG, &["core"], &[]);
    let source = format!(
        "#include <dlfcn.h>
        long probe(void);
        long run(void) {{
            void *handle = dlopen(\"{}\", RTLD_NOW);
            long (*plug)(void) = handle ? (long (*)(void))dlsym(handle, \"plug\") : 0;
            if (!plug || plug() != 105 || probe() != 105) return -1;
            return dlclose(handle) ? -2 : probe();
        }}",
        libraries.path("plug").display()
    );
    let (input, object) =
        (libraries.folder.path().join("run.c"), libraries.folder.path().join("run.o"));
    std::fs::write(&input, source).unwrap();
    let mut gcc = std::process::Command::new(system::of_this_machine("gcc"));
    assert!(
        gcc.args(["-O1", "-fPIC", "-c", "-o"]).arg(&object).arg(&input).status().unwrap().success()
    );
    // SAFETY: the tests' libraries do no harm.
    let core = unsafe { LibraryLoader::new().open_file(libraries.path("core")) }.unwrap();
    let object = std::fs::read(object).unwrap();
    let module = Loader::new().load([object], core.or(Process::new())).unwrap();
    // SAFETY: the function has this type.
    let run = unsafe { module.get::<unsafe extern "C" fn() -> c_long>("run") }.unwrap();
    // SAFETY: it does no harm.
    assert_eq!(unsafe { run() }, 1105);
}

/// A library that opens itself, by name and by path, is one library.
#[test]
fn what_opens_itself() {
    let libraries = Libraries::new("self");
    let probe = "
        Dl_info info;
        if (!dladdr((void *)core_add, &info)) return 1;
        void *by_name = dlopen(own, RTLD_LAZY), *by_path = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        if (!by_name || by_name != by_path) return 2;
        long (*add)(long) = (long (*)(long))dlsym(by_path, \"core_add\");
        if (!add || add != core_add) return 3;
        return dlclose(by_name) || dlclose(by_path) ? 4 : 10 * core_add(6);";
    add_core(&libraries, probe);
    assert_eq!(of_file(&libraries, "core"), (60, 60));
}

/// Threads that open a plug-in and close it share it, and the library.
#[test]
fn in_threads() {
    let libraries = Libraries::new("plug-in-threads");
    let probe = "
        void *handle = dlopen(plug, RTLD_NOW);
        long found = call(handle, \"plug\");
        return dlclose(handle) ? -2 : found;";
    add_core(&libraries, probe);
    let plug = "long core_add(long by); long plug(void) { return core_add(0); }";
    libraries.add("plug", plug, &["core"], &[]);
    // SAFETY: the tests' libraries do no harm.
    let core = unsafe { LibraryLoader::new().open_file(libraries.path("core")) }.unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|round| assert_eq!(call_ours(&core), 0, "{round}")));
        }
    });
}

/// Nor does it matter who opens it for the library: one of the dynamic loader's that opens plug-ins for others, as GModule, libltdl and
/// QLibrary do. To such a one handles of both kinds are one.
#[test]
fn libraries_of_the_process_that_open_others() {
    for (test, binding) in [("opener-now", "-Wl,-z,now"), ("opener-lazy", "-Wl,-z,lazy")] {
        let libraries = Libraries::new(test);
        let opener = "
            #define _GNU_SOURCE
            #include <dlfcn.h>
            #include <link.h>
            void *opener_open(const char *path, int flags) { return dlopen(path, flags); }
            void *opener_find(void *handle, const char *name) { return dlsym(handle, name); }
            int opener_close(void *handle) { return dlclose(handle); }
            const char *opener_error(void) { return dlerror(); }
            const char *opener_name(void *handle) {
                struct link_map *map = 0;
                return dlinfo(handle, RTLD_DI_LINKMAP, &map) ? 0 : map->l_name;
            }
            long opener_self(void) {
                void *next = dlsym(RTLD_NEXT, \"opener_self\"), *own = dlsym(RTLD_DEFAULT, \"malloc\");
                return !next && own && dlvsym(RTLD_DEFAULT, \"no such\", \"V\") == 0;
            }";
        libraries.add("opener", opener, &[], &[binding]);
        let core = format!(
            "#define _GNU_SOURCE
            #include <dlfcn.h>
            #include <string.h>
            void *opener_open(const char *, int), *opener_find(void *, const char *);
            int opener_close(void *); long opener_self(void);
            const char *opener_error(void), *opener_name(void *);
            static long number;
            long core_add(long by) {{ return number += by; }}
            long probe(void) {{
                Dl_info info;
                char path[4096] = \"\";
                if (!dladdr((void *)core_add, &info)) return 1;
                strcpy(path, info.dli_fname);
                strcpy(strrchr(path, '/') + 1, \"{}\");
                void *handle = opener_open(path, RTLD_NOW);
                long (*plug)(void) = handle ? (long (*)(void))opener_find(handle, \"plug\") : 0;
                if (!plug || plug() != 105 || number != 105) return 2;
                if (opener_error() || opener_find(handle, \"absent\") || !opener_error()) return 3;
                if (!opener_name(handle) || strcmp(opener_name(handle), path)) return 4;
                if (opener_close(handle) || number != 1105 || opener_open(path, RTLD_NOW | RTLD_NOLOAD)) return 5;
                strcpy(strrchr(path, '/') + 1, \"{}\");
                handle = opener_open(path, RTLD_NOW);
                long (*other)(void) = handle ? (long (*)(void))opener_find(handle, \"other\") : 0;
                if (!other || other() != 7 || opener_close(handle)) return 6;
                return opener_open(\"/absent\", RTLD_NOW) || !opener_error() ? 7 : number + opener_self();
            }}",
            libraries.soname("plug"),
            libraries.soname("other"),
        );
        libraries.add("core", &core, &["opener"], &[]);
        libraries.add("plug", PLUG, &["core"], &[]);
        libraries.add("other", "long other(void) { return 7; }", &[], &[]);
        assert_eq!(of_file(&libraries, "core"), (1106, 1106), "{binding}");
        // it is the dynamic loader's own that a plug-in needs where that has one
        let (path, core) =
            (libraries.path("core"), system::libraries::Opened::new(&libraries.path("core")));
        let core = core.unwrap();
        // SAFETY: the tests' libraries do no harm.
        let ours = unsafe { LibraryLoader::new().open_file(path) }.unwrap();
        assert_eq!((core.call(), call_ours(&ours)), (1106, 2), "{binding}");
    }
}
