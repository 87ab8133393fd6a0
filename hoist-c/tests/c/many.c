/* many VERSION1.o VERSION2.o: a thousand loads and unloads, threads, functions that are replaced while threads call them. */
#include "check.h"

#include <pthread.h>

enum { LOADS = 1000, THREADS = 8, TURNS = 50 };

/* How many mappings the process has. */
static size_t mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file != NULL);
    size_t lines = 0;
    for (int letter; (letter = getc(file)) != EOF;) {
        lines += letter == '\n';
    }
    fclose(file);
    return lines;
}

static int call(const hoist_module *module) {
    hoist_error *error = NULL;
    hoist_function function = NULL;
    OK(hoist_module_function(module, "version", &function, &error));
    return ((int (*)(void))function)();
}

static void *in_a_thread(void *objects) {
    for (int turn = 0; turn < TURNS; ++turn) {
        hoist_error *error = NULL;
        hoist_module *module = NULL;
        hoist_status status = hoist_loader_load(NULL, objects, NULL, &module, &error);
        /* a list is for one call at a time: another one is told so */
        if (status == HOIST_STATUS_BUSY) {
            CHECK(module == NULL);
            hoist_error_free(error);
            continue;
        }
        CHECK(succeeded(status, error));
        CHECK(call(module) == 1 && hoist_module_symbol_count(module) > 1);
        hoist_module_free(module);
    }
    return NULL;
}

static int own_version(void) { return 77; }

static int (*called)(void);
static volatile int is_over;

static void *calls(void *sum) {
    while (!is_over) {
        int version = called();
        CHECK(version == 1 || version == 2);
        *(long *)sum += version;
    }
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    hoist_error *error = NULL;
    hoist_module *module = NULL;
    hoist_objects *objects = hoist_objects_new();
    OK(hoist_objects_add_file(objects, argv[1], &error));

    size_t before = 0;
    for (int turn = 0; turn < LOADS; ++turn) {
        OK(hoist_loader_load(NULL, objects, NULL, &module, &error));
        CHECK(call(module) == 1);
        hoist_module_free(module);
        if (turn == LOADS / 10) {
            before = mappings();
        }
    }
    size_t after = mappings();
    CHECK(after < before + 20);

    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        CHECK(pthread_create(&threads[i], NULL, in_a_thread, objects) == 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }

    /* replaced while it is called; the new code counts in the variable of the old one */
    hoist_loader *loader = hoist_loader_new();
    OK(hoist_loader_set_replaceable(loader, true, &error));
    hoist_module *first = NULL, *second = NULL;
    OK(hoist_loader_load(loader, objects, NULL, &first, &error));
    hoist_function function = NULL;
    OK(hoist_module_function(first, "version", &function, &error));
    called = (int (*)(void))function;
    size_t size = 0;
    void *data = read_all(argv[2], &size);
    hoist_objects *anew = hoist_objects_new();
    OK(hoist_objects_add_keeping_data(anew, "second", data, size, first, &error));
    free(data);
    hoist_symbols *symbols = hoist_symbols_new();
    OK(hoist_symbols_add_module(symbols, first, &error));
    OK(hoist_symbols_add_process(symbols, &error));
    OK(hoist_loader_load(loader, anew, symbols, &second, &error));

    long sums[2] = {0, 0};
    for (int i = 0; i < 2; ++i) {
        CHECK(pthread_create(&threads[i], NULL, calls, &sums[i]) == 0);
    }
    for (int turn = 0; turn < TURNS; ++turn) {
        hoist_replacement *replacement = NULL;
        OK(hoist_module_replace(first, "version", second, &replacement, &error));
        CHECK(called() == 2);
        hoist_replacement_free(replacement);
        CHECK(called() == 1);
    }
    is_over = 1;
    for (int i = 0; i < 2; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    void *counted = NULL;
    OK(hoist_module_address(first, "calls", &counted, &error));
    int earlier = *(int *)counted;
    hoist_replacement *replacement = NULL;
    OK(hoist_module_replace(first, "version", second, &replacement, &error));
    CHECK(called() == 2 && *(int *)counted == earlier + 1);
    hoist_replacement_free(replacement);

    /* what cannot be replaced */
    FAILS(NOT_FOUND, hoist_module_replace(first, "absent", second, &replacement, &error));
    CHECK(replacement == NULL);
    hoist_error_free(error);
    error = NULL;
    OK(hoist_loader_load(NULL, objects, NULL, &module, &error));
    FAILS(NOT_REPLACEABLE, hoist_module_replace(module, "version", second, &replacement, &error));
    CHECK(replacement == NULL && strcmp(info_of(error).symbol, "version") == 0);
    hoist_error_free(error);
    error = NULL;

    FAILS(NOT_FUNCTION, hoist_module_redirect(first, "calls", (hoist_function)own_version, &replacement, &error));
    hoist_error_free(error);
    error = NULL;

    /* by a function of this program */
    OK(hoist_module_redirect(first, "version", (hoist_function)own_version, &replacement, &error));
    CHECK(called() == 77);
    hoist_replacement_free(replacement);
    CHECK(called() == 1);

    hoist_module_free(module);
    hoist_module_free(first);
    hoist_module_free(second);
    hoist_symbols_free(symbols);
    hoist_objects_free(anew);
    hoist_objects_free(objects);
    hoist_loader_free(loader);
    puts("ok");
    return 0;
}
