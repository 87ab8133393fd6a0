/*
 * A JIT compiler without a compiler beside it: libtcc makes an object of C in this process, hoist loads it next to objects of other
 * compilers, and its functions can be replaced while they are called.
 *
 *     cc jit_tcc.c $(pkg-config --cflags --libs hoist) -ltcc -o jit_tcc
 *     ./jit_tcc 'int f(int x) { return twice(x) + 1; }' 1 20
 *
 * It prints 3 and 41. (Debian: libtcc-dev.)
 */
#include <hoist.h>
#include <libtcc.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What the code may call of this program. */
static int twice(int x) { return 2 * x; }

/* Compiles a source to an object at `path`. */
static int compile(const char *source, const char *path) {
    TCCState *tcc = tcc_new();
    if (tcc == NULL) {
        return -1;
    }
    tcc_set_options(tcc, "-nostdlib");
    int failed = tcc_set_output_type(tcc, TCC_OUTPUT_OBJ) != 0 || tcc_compile_string(tcc, source) != 0
                 || tcc_output_file(tcc, path) != 0;
    tcc_delete(tcc);
    return failed ? -1 : 0;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: jit_tcc 'int f(int x) { ... }' [X...]\n");
        return 2;
    }
    /* libtcc writes objects to files only */
    char folder[] = "/tmp/hoist-jit-XXXXXX", path[sizeof folder + 8], source[8192];
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    snprintf(path, sizeof path, "%s/f.o", folder);
    snprintf(source, sizeof source, "int twice(int);\n%s\n", argv[1]);
    int failed = compile(source, path);

    hoist_error *error = NULL;
    hoist_objects *objects = hoist_objects_new();
    hoist_symbols *symbols = hoist_symbols_new();
    hoist_loader *loader = hoist_loader_new();
    hoist_module *module = NULL;
    hoist_function function = NULL;
    if (failed == 0
        && (hoist_objects_add_file(objects, path, &error) != HOIST_STATUS_OK
            || hoist_symbols_define(symbols, "twice", (uint64_t)(uintptr_t)twice, HOIST_DEFINITION_FUNCTION, &error) != HOIST_STATUS_OK
            || hoist_symbols_add_process(symbols, &error) != HOIST_STATUS_OK
            || hoist_loader_load(loader, objects, symbols, &module, &error) != HOIST_STATUS_OK
            || hoist_module_function(module, "f", &function, &error) != HOIST_STATUS_OK)) {
        fprintf(stderr, "jit_tcc: %s\n", hoist_error_message(error));
        failed = 1;
    }
    unlink(path);
    rmdir(folder);
    if (failed == 0) {
        int (*f)(int) = (int (*)(int))function;
        for (int i = 2; i < argc; ++i) {
            printf("%d\n", f(atoi(argv[i])));
        }
    }
    hoist_error_free(error);
    hoist_module_free(module);
    hoist_loader_free(loader);
    hoist_symbols_free(symbols);
    hoist_objects_free(objects);
    return failed != 0;
}
