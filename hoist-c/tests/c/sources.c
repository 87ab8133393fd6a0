/* sources USER.o BASE.o LIBBASE.a LIBBASE.so: where symbols come from, and who keeps whom. */
#include "check.h"

static int call(const hoist_module *module, const char *name, int x) {
    hoist_error *error = NULL;
    hoist_function function = NULL;
    OK(hoist_module_function(module, name, &function, &error));
    return ((int (*)(int))function)(x);
}

/* Loads user.o with a source, which is freed at once. */
static hoist_module *user(const char *path, hoist_symbols *symbols) {
    hoist_error *error = NULL;
    hoist_module *module = NULL;
    hoist_objects *objects = hoist_objects_new();
    OK(hoist_objects_add_file(objects, path, &error));
    OK(hoist_loader_load(NULL, objects, symbols, &module, &error));
    hoist_objects_free(objects);
    hoist_symbols_free(symbols);
    return module;
}

int main(int argc, char **argv) {
    CHECK(argc == 5);
    hoist_error *error = NULL;
    hoist_module *module = NULL;
    size_t size = 0;

    /* an earlier module, which stays when its handle goes */
    hoist_module *base = NULL;
    OK(hoist_load_file(argv[2], &base, &error));
    hoist_symbols *symbols = hoist_symbols_new();
    OK(hoist_symbols_add_module(symbols, base, &error));
    module = user(argv[1], symbols);
    hoist_module_free(base);
    CHECK(call(module, "used", 4) == 41);
    hoist_module_free(module);

    /* an archive, from a file and from memory */
    symbols = hoist_symbols_new();
    OK(hoist_symbols_add_archive_file(symbols, argv[3], &error));
    module = user(argv[1], symbols);
    CHECK(call(module, "used", 5) == 51 && call(module, "base", 5) == 50);
    hoist_module_free(module);
    void *data = read_all(argv[3], &size);
    symbols = hoist_symbols_new();
    OK(hoist_symbols_add_archive_memory(symbols, data, size, &error));
    module = user(argv[1], symbols);
    CHECK(call(module, "used", 6) == 61);
    hoist_module_free(module);

    /* an archive among the objects: what is asked for, or all of it */
    hoist_objects *objects = hoist_objects_new();
    size_t count = 99;
    OK(hoist_objects_add_file(objects, argv[1], &error));
    OK(hoist_objects_add_memory(objects, "libbase.a", data, size, &error));
    OK(hoist_objects_count(objects, &count, &error));
    CHECK(count == 1);
    OK(hoist_loader_load(NULL, objects, NULL, &module, &error));
    CHECK(call(module, "used", 7) == 71);
    hoist_module_free(module);
    hoist_objects_free(objects);
    objects = hoist_objects_new();
    OK(hoist_objects_set_whole_archive(objects, true, &error));
    OK(hoist_objects_add_memory(objects, NULL, data, size, &error));
    OK(hoist_objects_count(objects, &count, &error));
    CHECK(count == 1);
    OK(hoist_loader_load(NULL, objects, NULL, &module, &error));
    CHECK(call(module, "base", 8) == 80);
    hoist_module_free(module);
    hoist_objects_free(objects);

    /* what an archive consists of */
    hoist_archive *archive = NULL;
    OK(hoist_archive_parse("a", data, size, &archive, &error));
    CHECK(hoist_archive_member_count(archive) == 1);
    const char *name = NULL;
    const void *member = NULL;
    size_t length = 0;
    OK(hoist_archive_member(archive, 0, &name, &member, &length, &error));
    CHECK(strcmp(name, "base.o") == 0 && length > 64 && memcmp(member, "\177ELF", 4) == 0);
    FAILS(OUT_OF_RANGE, hoist_archive_member(archive, 1, &name, &member, &length, &error));
    CHECK(name == NULL && member == NULL && length == 0);
    hoist_archive_free(archive);
    FAILS(BAD_FILE, hoist_archive_parse("a", data, size - 1, &archive, &error));
    CHECK(archive == NULL);
    hoist_error_free(error);
    error = NULL;
    OK(hoist_archive_open(argv[3], &archive, &error));
    hoist_archive_free(archive);
    free(data);

    /* a shared library, by the dynamic loader and by this one */
    symbols = hoist_symbols_new();
    OK(hoist_symbols_add_system_library(symbols, argv[4], &error));
    module = user(argv[1], symbols);
    CHECK(call(module, "used", 9) == 91);
    hoist_module_free(module);
    hoist_library *library = NULL;
    OK(hoist_library_open_file(argv[4], NULL, 0, &library, &error));
    CHECK(strcmp(hoist_library_name(library), "libbase.so") == 0);
    hoist_function function = NULL;
    OK(hoist_library_function(library, "base", &function, &error));
    CHECK(((int (*)(int))function)(3) == 30);
    void *address = NULL;
    OK(hoist_library_address(library, "base_count", &address, &error));
    CHECK(*(int *)address == 1);
    void *start = NULL;
    uint64_t length_of_all = 0, behind = 0;
    OK(hoist_library_extent(library, &start, &length_of_all, &error));
    CHECK((char *)address >= (char *)start && (char *)address < (char *)start + length_of_all);
    OK(hoist_library_extent(library, NULL, NULL, &error));
    const char *found = NULL;
    const char *code = (const char *)(uintptr_t)function;
    OK(hoist_library_symbol_at(library, code + 1, &found, &behind, &error));
    CHECK(strcmp(found, "base") == 0 && behind == 1);
    OK(hoist_library_symbol_at(library, code, &name, NULL, &error));
    CHECK(name == found);
    FAILS(NOT_FOUND, hoist_library_symbol_at(library, &error, &name, &behind, &error));
    hoist_error_free(error);
    error = NULL;
    CHECK(name == NULL);
    FAILS(NOT_FOUND, hoist_library_function(library, "absent", &function, &error));
    FAILS(NOT_FOUND, hoist_library_address(library, "absent", &address, &error));
    FAILS(NOT_FUNCTION, hoist_library_function(library, "base_count", &function, &error));
    hoist_error_free(error);
    error = NULL;
    symbols = hoist_symbols_new();
    OK(hoist_symbols_add_library(symbols, library, &error));
    module = user(argv[1], symbols);
    hoist_library_free(library);
    CHECK(call(module, "used", 2) == 21);
    hoist_module_free(module);
    data = read_all(argv[4], &size);
    OK(hoist_library_open_memory(data, size, NULL, 0, &library, &error));
    free(data);
    hoist_library_free(library);

    symbols = hoist_symbols_new();
    FAILS(LIBRARY, hoist_symbols_add_system_library(symbols, "libabsent.so.9", &error));
    hoist_symbols_free(symbols);
    FAILS(FILE, hoist_library_open_file("/absent/x.so", NULL, 0, &library, &error));
    CHECK(library == NULL && info_of(error).os_error == 2 && strcmp(info_of(error).file, "/absent/x.so") == 0);
    FAILS(UNSUPPORTED, hoist_library_open_file(argv[2], NULL, 0, &library, &error));
    FAILS(TOO_LARGE, hoist_library_open_file(argv[4], NULL, 64, &library, &error));
    CHECK(info_of(error).maximum == 64 && strcmp(info_of(error).file, argv[4]) == 0);
    hoist_error_free(error);
    puts("ok");
    return 0;
}
