/* load PLUGIN.o WITH_CONSTRUCTOR.o: loads, looks up, calls, iterates. */
#include "check.h"

#include <unistd.h>

static int asked;

static int host_value(int which) { return which * 100; }

static bool find(void *context, const char *name, hoist_definition *definition) {
    ++asked;
    CHECK(context == &asked);
    CHECK(definition->address == 0 && definition->kind == HOIST_DEFINITION_UNKNOWN);
    if (strcmp(name, "host_value") != 0) {
        return false;
    }
    definition->address = (uint64_t)(uintptr_t)host_value;
    definition->kind = HOIST_DEFINITION_FUNCTION;
    return true;
}

/* Whether functions and variables are as the source has them. */
static void use(const hoist_module *module) {
    hoist_error *error = NULL;
    hoist_function function = NULL;
    OK(hoist_module_function(module, "twice", &function, &error));
    CHECK(((int (*)(int))function)(21) == 42);
    OK(hoist_module_function(module, "of_host", &function, &error));
    CHECK(((int (*)(void))function)() == 704);
    CHECK(((int (*)(void))function)() == 705);
    char text[16];
    OK(hoist_module_function(module, "printed", &function, &error));
    CHECK(((int (*)(char *, int, int))function)(text, sizeof text, -5) == 4);
    CHECK(strcmp(text, "<-5>") == 0);

    void *address = NULL;
    OK(hoist_module_address(module, "count", &address, &error));
    int *count = address;
    OK(hoist_module_function(module, "next", &function, &error));
    CHECK(*count == 3 && ((int (*)(void))function)() == 4 && *count == 4);
    *count = 3;
    OK(hoist_module_address(module, "greeting", &address, &error));
    CHECK(strcmp(address, "hello") == 0);

    FAILS(NOT_FOUND, hoist_module_function(module, "absent", &function, &error));
    CHECK(function == NULL && strcmp(info_of(error).symbol, "absent") == 0);
    FAILS(NOT_FOUND, hoist_module_address(module, "absent", &address, &error));
    CHECK(address == NULL);
    FAILS(NOT_FUNCTION, hoist_module_function(module, "count", &function, &error));
    hoist_error_free(error);
}

static void look(const hoist_module *module) {
    hoist_error *error = NULL;
    size_t symbols = hoist_module_symbol_count(module), sections = hoist_module_section_count(module);
    CHECK(symbols > 6 && sections > 5);
    int found = 0;
    for (size_t i = 0; i < symbols; ++i) {
        hoist_module_symbol_row symbol;
        OK(hoist_module_symbol(module, i, &symbol, &error));
        CHECK(symbol.name != NULL && symbol.address != NULL && symbol.object == 0);
        if (strcmp(symbol.name, "twice") == 0) {
            ++found;
            CHECK(symbol.kind == 2 && symbol.binding == 1 && symbol.size > 0);
            hoist_module_symbol_row at;
            uint64_t offset = 99;
            OK(hoist_module_symbol_at(module, (char *)symbol.address + 1, &at, &offset, &error));
            CHECK(offset == 1 && at.address == symbol.address && strcmp(at.name, "twice") == 0);
            OK(hoist_module_symbol_at(module, symbol.address, &at, NULL, &error));
        } else if (strcmp(symbol.name, "hidden") == 0) {
            ++found;
            CHECK(symbol.kind == 1 && symbol.binding == 0 && symbol.size == sizeof(int));
        }
    }
    CHECK(found == 2);
    hoist_module_symbol_row symbol;
    FAILS(OUT_OF_RANGE, hoist_module_symbol(module, symbols, &symbol, &error));
    CHECK(symbol.name == NULL && info_of(error).value == symbols && info_of(error).maximum == symbols - 1);
    FAILS(NOT_FOUND, hoist_module_symbol_at(module, &found, &symbol, NULL, &error));

    int text = 0, bss = 0;
    hoist_error_free(error);
    error = NULL;
    for (size_t i = 0; i < sections; ++i) {
        hoist_module_section_row section;
        OK(hoist_module_section(module, i, &section, &error));
        if (strcmp(section.name, ".text") == 0) {
            ++text;
            CHECK((section.flags & 4) != 0 && section.address != NULL && section.data_size == section.size);
        } else if (strcmp(section.name, ".bss") == 0) {
            ++bss;
            CHECK(section.data == NULL && section.data_size == 0 && section.size >= 1000 * sizeof(int));
        } else if (strcmp(section.name, ".symtab") == 0) {
            CHECK(section.address == NULL && section.data != NULL);
        }
    }
    CHECK(text == 1 && bss == 1);
    hoist_module_sizes_row sizes;
    OK(hoist_module_sizes(module, &sizes, &error));
    CHECK(sizes.code > 0 && sizes.writable >= 1000 * sizeof(int) && sizes.thread_variables == 0);
    void *start = NULL;
    uint64_t size = 0;
    OK(hoist_module_extent(module, &start, &size, &error));
    CHECK(start != NULL && size >= sizes.code + sizes.writable);
    OK(hoist_module_extent(module, NULL, NULL, &error));
}

/* A file with the number of this process in its name has this text; it is removed. */
static void has_written(const char *name, const char *text) {
    char path[64];
    snprintf(path, sizeof path, name, (long)getpid());
    size_t size = 0, length = strlen(text);
    char *data = read_all(path, &size);
    size_t at = 0;
    while (at + length <= size && memcmp(data + at, text, length) != 0) {
        ++at;
    }
    CHECK(at + length <= size);
    free(data);
    CHECK(remove(path) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    hoist_error *error = NULL;
    hoist_module *module = NULL;
    CHECK(strcmp(hoist_version(), "0.1.0") == 0 && HOIST_VERSION_MAJOR == 0 && HOIST_VERSION_MINOR == 1);

    /* symbols of the program are not the process's: it is not linked with -rdynamic */
    FAILS(UNDEFINED_SYMBOL, hoist_load_file(argv[1], &module, &error));
    CHECK(module == NULL);
    hoist_error_info info = info_of(error);
    CHECK(strcmp(info.symbol, "host_value") == 0 && strcmp(info.file, argv[1]) == 0);
    CHECK(info.section != NULL && strncmp(info.section, ".text", 5) == 0 && info.relocation != NULL);
    CHECK((info.fields & HOIST_ERROR_HAS_OFFSET) != 0 && (info.fields & HOIST_ERROR_HAS_OBJECT) != 0 && info.object == 0);
    CHECK(strstr(info.message, "host_value") != NULL && strstr(info.message, argv[1]) != NULL);
    hoist_error_free(error);
    error = NULL;

    hoist_objects *objects = hoist_objects_new();
    OK(hoist_objects_add_file(objects, argv[1], &error));
    hoist_symbols *symbols = hoist_symbols_new();
    OK(hoist_symbols_add_callback(symbols, find, &asked, &error));
    OK(hoist_symbols_add_process(symbols, &error));
    OK(hoist_loader_load(NULL, objects, symbols, &module, &error));
    CHECK(asked > 0 && !hoist_module_needs_initialization(module));
    use(module);
    look(module);
    hoist_module_free(module);

    /* defined by name; from memory; all options */
    size_t size = 0;
    void *data = read_all(argv[1], &size);
    hoist_symbols *defined = hoist_symbols_new();
    OK(hoist_symbols_define(defined, "host_value", 1, HOIST_DEFINITION_UNKNOWN, &error));
    OK(hoist_symbols_define(defined, "host_value", (uint64_t)(uintptr_t)host_value, HOIST_DEFINITION_FUNCTION, &error));
    OK(hoist_symbols_add_process(defined, &error));
    for (int option = 0; option < 10; ++option) {
        hoist_objects *bytes = hoist_objects_new();
        OK(hoist_objects_add_memory(bytes, "plugin", data, size, &error));
        hoist_loader *loader = hoist_loader_new();
        OK(hoist_loader_set_dual_mapping(loader, option == 1, &error));
        OK(hoist_loader_set_huge_pages(loader, option == 2, &error));
        OK(hoist_loader_set_replaceable(loader, option == 3, &error));
        OK(hoist_loader_set_relax(loader, option != 4, &error));
        OK(hoist_loader_set_reuse_memory(loader, option == 5, &error));
        OK(hoist_loader_set_limit(loader, 1 << 20, &error));
        if (option == 6) {
            OK(hoist_loader_use_arena(loader, &error));
        } else if (option == 7) {
            OK(hoist_loader_tell_gdb(loader, &error));
        } else if (option == 8) {
            OK(hoist_loader_tell_perf(loader, &error));
        } else if (option == 9) {
            FAILS(FILE, hoist_loader_tell_jitdump(loader, "/absent", &error));
            hoist_error_free(error);
            error = NULL;
            OK(hoist_loader_tell_jitdump(loader, "/tmp", &error));
        }
        OK(hoist_loader_load(loader, bytes, defined, &module, &error));
        hoist_loader_free(loader);
        hoist_objects_free(bytes);
        use(module);
        look(module);
        hoist_module_free(module);
    }
    free(data);
    has_written("/tmp/perf-%ld.map", " twice\n");
    has_written("/tmp/jit-%ld.dump", "twice");

    /* a constructor */
    hoist_objects *with = hoist_objects_new();
    OK(hoist_objects_add_file(with, argv[2], &error));
    OK(hoist_loader_load(NULL, with, symbols, &module, &error));
    CHECK(hoist_module_needs_initialization(module));
    hoist_function function = NULL;
    FAILS(NOT_INITIALIZED, hoist_module_function(module, "is_ready", &function, &error));
    CHECK(strstr(hoist_error_message(error), "hoist_module_initialize") != NULL);
    hoist_error_free(error);
    error = NULL;
    OK(hoist_module_initialize(module, &error));
    OK(hoist_module_initialize(module, &error));
    CHECK(!hoist_module_needs_initialization(module));
    OK(hoist_module_function(module, "is_ready", &function, &error));
    CHECK(((int (*)(void))function)() == 1);
    hoist_module_free(module);

    hoist_objects_free(with);
    hoist_objects_free(objects);
    hoist_symbols_free(symbols);
    hoist_symbols_free(defined);
    puts("ok");
    return 0;
}
