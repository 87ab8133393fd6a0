//! Programs of two objects, by `hoist run` and linked: output and status are the same, also of what a program and the libraries of its
//! process have to do with each other.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A program: its name, the compiler, what is in one object, and in the other.
type Program = (&'static str, &'static str, &'static str, &'static str);

const PROGRAMS: &[Program] = &[
    // a library's memory is freed by the program's own function, and the other way round
    (
        "malloc",
        "cc",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n
         int main(void) { extern long calls; long before = calls; char *s = strdup(\"hello\"); FILE *f = tmpfile();
            char *line = 0; size_t n = 0; fputs(s, f); rewind(f); long got = getline(&line, &n, f); fclose(f);
            printf(\"%s %s %ld %d\\n\", s, line, got, calls > before + 2); free(s); free(line);
            for (int i = 0; i < 40; i++) atexit(abs); return 0; }"
            , "#include <stddef.h>\nlong calls; extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), __libc_free(void *);
         void *malloc(size_t n) { calls++; return (char *)__libc_malloc(n + 16) + 16; }
         void free(void *p) { if (p) __libc_free((char *)p - 16); }
         void *realloc(void *p, size_t n) { calls++; return (char *)__libc_realloc(p ? (char *)p - 16 : 0, n + 16) + 16; }
         void *calloc(size_t n, size_t m) { calls++; return (char *)__libc_calloc(1, n * m + 16) + 16; }",
    ),
    (
        "operator new",
        "c++",
        "#include <cstdio>\n#include <sstream>\n#include <string>\nextern long made, gone;
         int main() { { std::string s(100, 'x'); s += std::string(200, 'y'); std::ostringstream o; o << s << 1234; std::printf(\"%zu\\n\", o.str().size()); }
            std::printf(\"%d\\n\", made == gone && made > 2); }",
        "#include <cstdlib>\n#include <new>\nlong made, gone;
         void *operator new(std::size_t n) { made++; return static_cast<char *>(std::malloc(n + 16)) + 16; }
         void operator delete(void *p) noexcept { if (p) { gone++; std::free(static_cast<char *>(p) - 16); } }
         void operator delete(void *p, std::size_t) noexcept { operator delete(p); }",
    ),
    // `dl_iterate_phdr` tells of data once; of code also where an unwinding table is about it
    (
        "segments",
        "cc",
        "#define _GNU_SOURCE\n#include <link.h>\n#include <stdio.h>\n
         int data = 4, zeros[100]; const int constant = 3; int code(void) { return data; } extern __thread int variable; int other(void);
         static struct { const void *at; unsigned flags; int times; } wanted[] = {{code, PF_R | PF_X}, {&data, PF_R | PF_W}, {zeros, PF_R | PF_W}, {&constant, PF_R}, {other, PF_R | PF_X}};
         static int variables, blocks;
         static int each(struct dl_phdr_info *i, size_t s, void *p) { int own = 0;
            for (int h = 0; h < i->dlpi_phnum; h++) { const ElfW(Phdr) *header = &i->dlpi_phdr[h]; if (header->p_type != PT_LOAD) continue;
                const char *start = (char *)i->dlpi_addr + header->p_vaddr;
                for (int w = 0; w < 5; w++) { int in = (char *)wanted[w].at >= start && (char *)wanted[w].at < start + header->p_memsz;
                    own |= in; wanted[w].times += in && (header->p_flags & wanted[w].flags) == wanted[w].flags; } }
            for (int h = 0; own && h < i->dlpi_phnum; h++) if (i->dlpi_phdr[h].p_type == PT_TLS) { blocks++;
                struct { unsigned long module, offset; } first = {i->dlpi_tls_modid, 0}; extern void *__tls_get_addr(void *);
                char *block = __tls_get_addr(&first); variables += (char *)&variable >= block && (char *)&variable < block + i->dlpi_phdr[h].p_memsz; }
            return 0; }
         int main(void) { dl_iterate_phdr(each, 0); for (int w = 0; w < 5; w++) printf(\"%d \", wanted[w].flags & PF_X ? wanted[w].times > 0 : wanted[w].times); printf(\"%d %d %d\\n\", blocks, variables, variable); return other(); }",
        "__thread int variable = 7; int other(void) { return 5; }",
    ),
    (
        "the main thread ends",
        "cc",
        "#include <pthread.h>\n#include <stdio.h>\nvoid *later(void *);
         __attribute__((destructor)) static void end(void) { puts(\"destructor\"); }
         static void cleanup(void *what) { puts(what); }
         static pthread_t own; int main(void) { pthread_t t; own = pthread_self(); pthread_create(&t, 0, later, &own); puts(\"main\"); pthread_cleanup_push(cleanup, \"cleanup\"); pthread_exit(0); pthread_cleanup_pop(0); return 3; }",
        "#include <pthread.h>\n#include <stdio.h>\nvoid *later(void *p) { pthread_join(*(pthread_t *)p, 0); puts(\"thread\"); return p; }",
    ),
    (
        "nobody catches",
        "c++",
        "#include <cstdio>\n#include <cstdlib>\n#include <exception>\nvoid thrower(int);
         int main() { std::set_terminate([] { std::puts(\"terminate\"); std::exit(6); }); try { thrower(1); } catch (int x) { std::printf(\"caught %d\\n\", x); } thrower(2); }",
        "void thrower(int x) { throw x; }",
    ),
    (
        "the name of the program",
        "cc",
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdio.h>\n#include <string.h>\nint same(const char *);
         int main(int c, char **v) { printf(\"%d %d\\n\", strcmp(program_invocation_name, v[0]), same(v[0])); return c; }",
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <string.h>\nint same(const char *name) { const char *slash = strrchr(name, '/'); return strcmp(slash ? slash + 1 : name, program_invocation_short_name); }",
    ),
    (
        "first and last",
        "cc",
        "#include <stdio.h>\n#define SAY(name, what) static void name(void) { puts(what); }\n
         static void early(int c, char **v, char **e) { printf(\"early %d %d\\n\", c, e == v + c + 1); }
         __attribute__((section(\".preinit_array\"), used)) static void (*first)(int, char **, char **) = early;
         SAY(a, \"a\") SAY(b, \"b\") SAY(c, \"c\") SAY(d, \"d\")
         __attribute__((constructor)) static void plain(void) { puts(\"constructor\"); }
         __attribute__((constructor(200))) static void ranked(void) { puts(\"constructor 200\"); }
         __attribute__((destructor)) static void end(void) { puts(\"destructor\"); }
         __attribute__((destructor(200))) static void late(void) { puts(\"destructor 200\"); }
         __attribute__((section(\".init_array.00150\"), used)) static void (*i1)(void) = a;
         __attribute__((section(\".init_array.99999\"), used)) static void (*i2)(void) = b;
         __attribute__((section(\".fini_array.00100\"), used)) static void (*f1)(void) = c;
         int main(void) { d(); return 3; }",
        "#include <stdio.h>\n#include <stdlib.h>\n#define SAY(name, what) static void name(void) { puts(what); }\n
         SAY(early, \"early 2\") SAY(last, \"atexit\") SAY(a, \"ctors 1\") SAY(b, \"ctors 2\") SAY(c, \"ctors.65435\") SAY(d, \"dtors\") SAY(e, \"dtors.65400\")
         __attribute__((section(\".preinit_array\"), used)) static void (*first)(void) = early;
         __attribute__((constructor)) static void plain(void) { puts(\"second\"); atexit(last); }
         __attribute__((constructor(150))) static void ranked(void) { puts(\"second 150\"); }
         __attribute__((destructor(101))) static void late(void) { puts(\"second destructor 101\"); }
         typedef void (*word)(void);
         __asm__(\".section .ctors,\\\"aw\\\",%progbits\\n.balign 8\\n.dc.a a, b\\n.section .ctors.65435,\\\"aw\\\",%progbits\\n.balign 8\\n.dc.a c\\n.section .dtors,\\\"aw\\\",%progbits\\n.balign 8\\n.dc.a d\\n.section .dtors.65400,\\\"aw\\\",%progbits\\n.balign 8\\n.dc.a e\\n.text\");
         word keep[] = {a, b, c, d, e};",
    ),
    (
        "indirect functions in constructors and data",
        "cc",
        "#include <stdio.h>\nstatic int one(void) { return 1; } static int two(void) { return 2; } static void *pick(void) { return one; } static void *pick_two(void) { return two; }
         static int of_file(void) __attribute__((ifunc(\"pick\"))); int global(void) __attribute__((ifunc(\"pick_two\"))); __attribute__((visibility(\"hidden\"))) int hidden(void) __attribute__((ifunc(\"pick_two\")));
         extern int other(void); int (*table[])(void) = {of_file, global, hidden, other}; static int early, later; int (*of_other(void))(void);
         __attribute__((constructor)) static void plain(void) { later = of_file() * 100 + global() * 10 + other(); }
         __attribute__((constructor(101))) static void ranked(void) { early = table[0]() + table[1]() * 10 + table[3]() * 100; }
         int main(void) { printf(\"%d %d %d %d %d %d\\n\", early, later, table[2](), table[1] == global, of_other() == global, table[3] == other); return 0; }",
        "static int seven(void) { return 7; } static void *pick(void) { return seven; } int other(void) __attribute__((ifunc(\"pick\"))); extern int global(void); int (*of_other(void))(void) { return global; }",
    ),
    (
        "groups, weak names and aliases",
        "c++",
        "#include <cstdio>\n#define SHARED inline int &counter() { static int c = 5; return c; } template <class A> struct T { static int v; }; template <class A> int T<A>::v = 1; template <class A> int f() { return sizeof(A); } inline int count = 7; inline thread_local int own = 2;\nSHARED
         extern \"C\" int weak() __attribute__((weak)); extern \"C\" int absent() __attribute__((weak)); extern \"C\" int alias(); int b(); void *of_b(); int *count_of_b();
         extern \"C\" __attribute__((weak)) int both() { return 1; }
         int main() { counter()++; T<int>::v = 4; std::printf(\"%d %d %d %d %d %d %d %d %d %d\\n\", b(), counter(), T<int>::v, of_b() == (void *)&f<int>, count_of_b() == &count, own, weak(), absent == nullptr, alias(), both()); }",
        "#define SHARED inline int &counter() { static int c = 5; return c; } template <class A> struct T { static int v; }; template <class A> int T<A>::v = 1; template <class A> int f() { return sizeof(A); } inline int count = 7; inline thread_local int own = 2;\nSHARED
         extern \"C\" int real() { return 9; } extern \"C\" int alias() __attribute__((alias(\"real\"))); extern \"C\" __attribute__((weak)) int weak() { return 3; } extern \"C\" int both() { return 2; }
         int b() { counter() += 10; T<int>::v++; own += 3; count++; return T<int>::v; } void *of_b() { return (void *)&f<int>; } int *count_of_b() { return &count; }",
    ),
    // what a program finds of itself, and of what comes behind it
    (
        "names at run time",
        "cc",
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <string.h>\n
         int mine(void) { return 3; } int data = 4; __thread int own = 5; static int of_file(void) { return 6; } __attribute__((visibility(\"hidden\"))) int hidden(void) { return 7; }
         extern int other(void), (*next_puts(void))(const char *); int puts(const char *text) { printf(\"own puts: \"); return next_puts()(text); }
         static void say(const char *what, int it) { printf(\"%s %d\\n\", what, it); }
         int main(int c, char **v) { Dl_info i = {0}; void *self = dlopen(0, RTLD_LAZY);
            say(\"dladdr\", dladdr((char *)mine, &i)); say(i.dli_sname, i.dli_saddr == (void *)mine && !strcmp(i.dli_fname, v[0]) && (char *)i.dli_fbase < (char *)main);
            say(\"static\", dladdr((char *)of_file, &i) && (!i.dli_sname || strcmp(i.dli_sname, \"of_file\"))); say(\"data\", dladdr((char *)&data + 2, &i) && !strcmp(i.dli_sname, \"data\") && i.dli_saddr == (void *)&data);
            say(\"library\", dladdr((char *)dlsym(RTLD_NEXT, \"strlen\"), &i) && strstr(i.dli_fname, \"libc.so\")); say(\"nowhere\", dladdr((char *)16, &i));
            say(\"mine\", dlsym(RTLD_DEFAULT, \"mine\") == (void *)mine); say(\"other\", dlsym(self, \"other\") == (void *)other); say(\"own\", dlsym(self, \"own\") == (void *)&own);
            say(\"hidden\", dlsym(self, \"hidden\") == 0); say(\"absent\", dlsym(self, \"absent_of_all\") == 0 && dlerror() != 0); say(\"next\", dlsym(RTLD_NEXT, \"mine\") == 0);
            say(\"version\", dlvsym(RTLD_NEXT, \"qsort\", \"NONE_1\") == 0); puts(\"text\"); return hidden(); }",
        "#define _GNU_SOURCE\n#include <dlfcn.h>\nint other(void) { return 8; } int (*next_puts(void))(const char *) { return (int (*)(const char *))dlsym(RTLD_NEXT, \"puts\"); }",
    ),
    // hidden and weak is a definition of the program or nothing, also where a library has one
    (
        "hidden weak names",
        "cc",
        "#include <stdio.h>\nextern int getpid(void) __attribute__((weak, visibility(\"hidden\"))); extern int mine(void) __attribute__((weak, visibility(\"hidden\"))); extern int getppid(void) __attribute__((weak)); int b(void);
         int main(void) { printf(\"%d %d %d %d\\n\", getpid != 0, mine ? mine() : 0, getppid != 0, b()); return 0; }",
        "extern int sleep(unsigned) __attribute__((weak, visibility(\"hidden\"))); int mine(void) { return 2; } int b(void) { return sleep != 0; }",
    ),
    // what compilers wrote before there were groups: the first one is kept, weak or not
    (
        "link once",
        "cc",
        "#include <stdio.h>\n__asm__(\".section .gnu.linkonce.d.shared,\\\"aw\\\",%progbits\\n.balign 4\\n.weak shared\\nshared: .long 1\\n.section .gnu.linkonce.d.both,\\\"aw\\\",%progbits\\n.balign 4\\n.globl both\\nboth: .long 1\\n.text\");
         extern int shared, both; int b(void), c(void); int main(void) { shared += 10; printf(\"%d %d %d %d\\n\", shared, both, b(), c()); return 0; }",
        "__asm__(\".section .gnu.linkonce.d.shared,\\\"aw\\\",%progbits\\n.balign 4\\n.globl shared\\nshared: .long 2\\n.section .gnu.linkonce.d.both,\\\"aw\\\",%progbits\\n.balign 4\\n.globl both\\nboth: .long 2\\n.text\");
         extern int shared, both; int b(void) { return shared; } int c(void) { return both; }",
    ),
    // a library asks for variables that the program has: those it sets, and common symbols, whose values are the library's
    (
        "variables that libraries ask for",
        "cc",
        "#include <argp.h>\n#include <stdio.h>\nconst char *argp_program_version = \"mine 1.0\"; extern int optind, opterr; extern char *optarg; int options(void);
         int main(int c, char **v) { char *words[] = {v[0], \"--version\", 0}; printf(\"%d %d %d\\n\", optind, opterr, options()); fflush(stdout); struct argp none = {0}; argp_parse(&none, 2, words, 0, 0, 0); return 3; }",
        "#include <unistd.h>\n__asm__(\".comm optind,4,4\"); int opterr = 0; char *optarg = \"before\"; extern int optind;
         int options(void) { char *words[] = {\"p\", \"-a\", \"5\", \"-b\", 0}; int a = getopt(4, words, \"a:\"), first = *optarg; return a * 1000000 + first * 10000 + optind * 100 + getopt(4, words, \"a:\"); }",
    ),
    // the only thing that wants a low address is a variable of a library
    (
        "the environment",
        "cc",
        "#include <stdio.h>\nextern char **environ; int same(char **);
         int main(int c, char **v, char **e) { char ***at = &environ; printf(\"%d %d\\n\", *at == e, same(e)); return 0; }",
        "#include <stdlib.h>\nextern char **environ;\n#if defined __x86_64__ && !defined __PIC__\n#define LOW(to) __asm__(\"movq $environ, %0\" : \"=r\"(to))\n#else\n#define LOW(to) to = &environ\n#endif
         int same(char **e) { char ***at; LOW(at); int before = at == &environ && *at == e; setenv(\"HOIST_NEW_NAME\", \"1\", 1); return before && *at == environ && environ != e; }",
    ),
];

fn run(folder: &Path, line: &str) -> Option<Output> {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next()?);
    command.args(words).current_dir(folder).output().ok()
}

#[test]
fn programs_do_the_same() {
    let mut compared = 0;
    for (name, compiler, first, second) in PROGRAMS {
        let (ending, options) =
            if *compiler == "cc" { ("c", "-w") } else { ("cc", "-w -std=c++17") };
        let libraries =
            if *compiler == "cc" { "" } else { " --lib libstdc++.so.6 --lib libgcc_s.so.1" };
        for model in ["-fPIC", "-fno-pic -no-pie"] {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            for (part, source) in [("one", first), ("two", second)] {
                fs::write(folder.join(format!("{part}.{ending}")), source).unwrap();
            }
            // a linker that was told of position-independent code makes what it makes by default
            let pie = model.split(' ').nth(1).unwrap_or("-pie");
            let model = model.split(' ').next().unwrap();
            let compile = run(
                folder,
                &format!("{compiler} {options} -O1 {model} -c one.{ending} two.{ending}"),
            );
            let Some(compile) = compile else {
                println!("skipped: programs_do_the_same: needs {compiler}");
                continue;
            };
            assert!(
                compile.status.success(),
                "{name}: {}",
                String::from_utf8_lossy(&compile.stderr)
            );
            let link =
                run(folder, &format!("{compiler} {pie} -rdynamic one.o two.o -o linked -pthread"))
                    .unwrap();
            assert!(link.status.success(), "{name}: {}", String::from_utf8_lossy(&link.stderr));
            let native = run(folder, "./linked").unwrap();
            let hoist = env!("CARGO_BIN_EXE_hoist");
            let ours = run(folder, &format!("{hoist} run one.o two.o{libraries} main")).unwrap();
            assert_eq!(
                (ours.status, String::from_utf8_lossy(&ours.stdout)),
                (native.status, String::from_utf8_lossy(&native.stdout)),
                "{name}, {model}: {}",
                String::from_utf8_lossy(&ours.stderr)
            );
            assert!(!native.stdout.is_empty(), "{name}: it says something");
            compared += 1;
        }
    }
    println!("{compared} programs are equal");
}
