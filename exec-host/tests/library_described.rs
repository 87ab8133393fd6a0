//! What libraries find of themselves by `dladdr` and `dl_iterate_phdr`, beside the dynamic loader.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use core::ffi::{c_long, c_void};
use exec_host::library::{Library, LibraryLoader};
use system::libraries::{Libraries, call_ours};

/// Each answer is a bit.
const SOURCE: &str = "#define _GNU_SOURCE
    #include <dlfcn.h>
    #include <link.h>
    #include <string.h>
    long variable = 3;
    __attribute__((visibility(\"hidden\"), noinline)) long hidden(long x) { return x * variable; }
    __attribute__((noinline)) long shown(long x) { return x + hidden(x); }
    static int each(struct dl_phdr_info *info, size_t size, void *address) {
        for (int i = 0; i < info->dlpi_phnum; i++) {
            const ElfW(Phdr) *header = &info->dlpi_phdr[i];
            ElfW(Addr) start = info->dlpi_addr + header->p_vaddr;
            if (header->p_type == PT_LOAD && (ElfW(Addr))address - start < header->p_memsz) return 1;
        }
        return 0;
    }
    long probe(void) {
        Dl_info info, of_data, of_c;
        char *code = (char *)((unsigned long)shown & ~1ul);
        if (!dladdr(code + 2, &info) || !dladdr((char *)&variable + 1, &of_data)) return -1;
        if (!dladdr((void *)strlen, &of_c)) return -2;
        long found = !strcmp(info.dli_sname, \"shown\") + 2 * (info.dli_saddr == (void *)shown);
        found += 4 * (strstr(info.dli_fname, \"described-\") != 0) + 8 * !memcmp(info.dli_fbase, \"\\x7f\" \"ELF\", 4);
        found += 16 * !strcmp(of_data.dli_sname, \"variable\") + 32 * (of_data.dli_saddr == &variable);
        found += 64 * (strstr(of_c.dli_fname, \"libc\") != 0) + 128 * dl_iterate_phdr(each, code);
        return found + 256 * !dladdr((void *)16, &info);
    }";
const ASKS: &str = "#define _GNU_SOURCE
    #include <dlfcn.h>
    long knows(void *address) { Dl_info info; return dladdr(address, &info); }
    long probe(void) { return knows((void *)knows); }";

#[test]
fn libraries_find_themselves() {
    let libraries = Libraries::new("described");
    // without a name of its own it is called as it is needed
    libraries.add("one", SOURCE, &[], &[]);
    assert_eq!(libraries.together("one"), 511);
    assert_eq!(libraries.probe("one"), 511);
}

#[test]
fn what_is_gone_is_not_found() {
    let libraries = Libraries::new("described-gone");
    libraries.add("asks", ASKS, &[], &[]);
    libraries.add("one", SOURCE, &[], &[]);
    assert_eq!(libraries.together("asks"), 1);
    let knows = |library: &Library, address: u64| {
        let address = core::ptr::with_exposed_provenance(address as usize);
        // SAFETY: the function has this type.
        unsafe {
            library.get::<unsafe extern "C" fn(*const c_void) -> c_long>("knows").unwrap()(address)
        }
    };
    let asks = libraries.ours("asks").unwrap();
    let one = libraries.ours("one").unwrap();
    let address = one.function("shown").unwrap();
    assert_eq!(knows(&asks, address), 1);
    drop(one);
    assert_eq!(knows(&asks, address), 0);
}

/// By the name that `dladdr` gives, and with the variables that this thread has.
#[test]
fn libraries_are_shown_with_their_names() {
    let libraries = Libraries::new("shown");
    let source = "#define _GNU_SOURCE
        #include <dlfcn.h>
        #include <link.h>
        #include <string.h>
        static __thread long variable = 3;
        static long found;
        static int each(struct dl_phdr_info *info, size_t size, void *name) {
            if (strcmp(info->dlpi_name, name)) return 0;
            long distance = (char *)&variable - (char *)info->dlpi_tls_data;
            for (int i = 0; i < info->dlpi_phnum; i++)
                if (info->dlpi_phdr[i].p_type == PT_TLS && distance >= 0)
                    found += distance < (long)info->dlpi_phdr[i].p_memsz;
            return 0;
        }
        long probe(void) {
            Dl_info info;
            variable++;
            if (!dladdr((void *)each, &info) || !info.dli_fname[0]) return -1;
            dl_iterate_phdr(each, (void *)info.dli_fname);
            return found;
        }";
    libraries.add("one", source, &[], &[]);
    // the dynamic loader knows nothing yet of variables that were reached through a descriptor
    assert_eq!(call_ours(&libraries.ours("one").unwrap()), 1);
    // SAFETY: the tests' libraries do no harm.
    let of_file = unsafe { LibraryLoader::new().open_file(libraries.path("one")) };
    assert_eq!(call_ours(&of_file.unwrap()), 1);
}
