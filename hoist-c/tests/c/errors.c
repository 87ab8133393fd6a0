/* errors PLUGIN.o TEXT: NULL, wrong lengths, damaged files, handles in use. */
#include "check.h"

#include <unistd.h>

static hoist_symbols *own;
static int was_busy;

/* Uses the list that is asking: refused, and harmless. */
static bool reenter(void *context, const char *name, hoist_definition *definition) {
    (void)context, (void)name, (void)definition;
    was_busy += hoist_symbols_add_process(own, NULL) == HOIST_STATUS_BUSY;
    return false;
}

static void null_everywhere(void) {
    hoist_error *error = NULL;
    hoist_module *module = NULL;
    hoist_library *library = NULL;
    hoist_image *image = NULL;
    hoist_file *file = NULL;
    hoist_cubin *cubin = NULL;
    hoist_fatbin *fatbin = NULL;
    hoist_archive *archive = NULL;
    hoist_replacement *replacement = NULL;
    hoist_buffer *buffer = NULL;
    hoist_device_code *code = NULL;
    hoist_function function = NULL;
    hoist_objects *objects = hoist_objects_new();
    void *address = NULL;
    size_t number = 0;

    FAILS(INVALID_ARGUMENT, hoist_load_file(NULL, &module, &error));
    FAILS(INVALID_ARGUMENT, hoist_load_file("x.o", NULL, &error));
    FAILS(INVALID_ARGUMENT, hoist_load_memory(NULL, NULL, 5, &module, &error));
    FAILS(INVALID_ARGUMENT, hoist_load_memory(NULL, "x", SIZE_MAX, &module, &error));
    FAILS(INVALID_ARGUMENT, hoist_load_memory("\377", "x", 1, &module, &error));
    FAILS(INVALID_ARGUMENT, hoist_loader_load(NULL, NULL, NULL, &module, &error));
    FAILS(INVALID_ARGUMENT, hoist_loader_load(NULL, objects, NULL, &module, &error));
    FAILS(INVALID_ARGUMENT, hoist_loader_set_relax(NULL, true, &error));
    FAILS(INVALID_ARGUMENT, hoist_objects_add_file(NULL, "x.o", &error));
    FAILS(INVALID_ARGUMENT, hoist_objects_add_memory(objects, "x", NULL, 1, &error));
    FAILS(INVALID_ARGUMENT, hoist_objects_add_keeping_data(objects, "x", "x", 1, NULL, &error));
    FAILS(INVALID_ARGUMENT, hoist_symbols_add_process(NULL, &error));
    FAILS(INVALID_ARGUMENT, hoist_symbols_define(NULL, "x", 0, HOIST_DEFINITION_UNKNOWN, &error));
    FAILS(INVALID_ARGUMENT, hoist_module_initialize(NULL, &error));
    FAILS(INVALID_ARGUMENT, hoist_module_function(NULL, "x", &function, &error));
    FAILS(INVALID_ARGUMENT, hoist_module_address(NULL, "x", &address, &error));
    FAILS(INVALID_ARGUMENT, hoist_module_extent(NULL, &address, NULL, &error));
    FAILS(INVALID_ARGUMENT, hoist_module_replace(NULL, "x", NULL, &replacement, &error));
    FAILS(INVALID_ARGUMENT, hoist_module_redirect(NULL, "x", NULL, &replacement, &error));
    FAILS(INVALID_ARGUMENT, hoist_library_open_file(NULL, NULL, 0, &library, &error));
    FAILS(INVALID_ARGUMENT, hoist_library_open_memory(NULL, 9, NULL, 0, &library, &error));
    FAILS(INVALID_ARGUMENT, hoist_link(NULL, NULL, 0, 0, 0, &image, &error));
    FAILS(INVALID_ARGUMENT, hoist_link(objects, NULL, 0, 0, 0, &image, &error));
    FAILS(INVALID_ARGUMENT, hoist_link(objects, NULL, 0, 0x80, 0, &image, &error));
    FAILS(INVALID_ARGUMENT, hoist_file_open(NULL, &file, &error));
    FAILS(INVALID_ARGUMENT, hoist_file_section(NULL, 0, NULL, &error));
    FAILS(INVALID_ARGUMENT, hoist_file_symbol_count(NULL, HOIST_SYMBOL_TABLE, &number, &error));
    FAILS(INVALID_ARGUMENT, hoist_archive_open(NULL, &archive, &error));
    FAILS(INVALID_ARGUMENT, hoist_cubin_open(NULL, &cubin, &error));
    FAILS(INVALID_ARGUMENT, hoist_cubin_link(objects, 0, &buffer, &error));
    FAILS(INVALID_ARGUMENT, hoist_fatbin_open(NULL, &fatbin, &error));
    FAILS(INVALID_ARGUMENT, hoist_fatbin_build(NULL, NULL, 0, &buffer, &error));
    FAILS(INVALID_ARGUMENT, hoist_device_code_load_file(NULL, "/absent", 0, &code, &error));
    hoist_error_free(error);

    /* nobody wants to know */
    CHECK(hoist_load_file(NULL, NULL, NULL) == HOIST_STATUS_INVALID_ARGUMENT);
    CHECK(hoist_error_kind(NULL) == HOIST_STATUS_OK && strcmp(hoist_error_message(NULL), "") == 0);
    CHECK(!hoist_error_get_info(NULL, NULL));
    CHECK(strcmp(hoist_status_name(HOIST_STATUS_BUSY), "busy") == 0 && strcmp(hoist_status_name(12345), "unknown") == 0);
    CHECK(strcmp(hoist_status_name(HOIST_STATUS_OTHER), "other") == 0);
    CHECK(hoist_module_symbol_count(NULL) == 0 && hoist_module_section_count(NULL) == 0 && !hoist_module_needs_initialization(NULL));
    CHECK(hoist_buffer_data(NULL) == NULL && hoist_buffer_size(NULL) == 0 && strcmp(hoist_library_name(NULL), "") == 0);
    CHECK(hoist_image_data(NULL) == NULL && hoist_image_size(NULL) == 0 && hoist_image_base(NULL) == 0);
    CHECK(hoist_file_section_count(NULL) == 0 && hoist_cubin_kernel_count(NULL) == 0 && hoist_fatbin_entry_count(NULL) == 0);
    hoist_error_free(NULL);
    hoist_module_free(NULL);
    hoist_objects_free(NULL);
    hoist_symbols_free(NULL);
    hoist_loader_free(NULL);
    hoist_library_free(NULL);
    hoist_replacement_free(NULL);
    hoist_image_free(NULL);
    hoist_file_free(NULL);
    hoist_archive_free(NULL);
    hoist_cubin_free(NULL);
    hoist_fatbin_free(NULL);
    hoist_buffer_free(NULL);
    hoist_objects_free(objects);
}

/* Every truncation, and many changes of a byte: an error or a module, and no harm. Nothing of a damaged object is called. */
static void damaged(const char *path) {
    size_t size = 0;
    unsigned char *data = read_all(path, &size);
    size_t refused = 0;
    for (size_t length = 0; length < size; length += 1 + length / 40) {
        hoist_error *error = NULL;
        hoist_module *module = NULL;
        hoist_file *file = NULL;
        hoist_status status = hoist_load_memory("cut", data, length, &module, &error);
        CHECK((status == HOIST_STATUS_OK) == (module != NULL) && (error == NULL) == (module != NULL));
        refused += status != HOIST_STATUS_OK;
        hoist_module_free(module);
        hoist_error_free(error);
        if (hoist_file_parse("cut", data, length, &file, NULL) == HOIST_STATUS_OK) {
            for (size_t i = 0; i < hoist_file_section_count(file); ++i) {
                hoist_file_section_row section;
                (void)hoist_file_section(file, i, &section, NULL);
            }
        }
        hoist_file_free(file);
    }
    CHECK(refused > 20);
    for (size_t at = 0; at < size; at += 7) {
        data[at] ^= 0x55;
        hoist_module *module = NULL;
        hoist_file *file = NULL;
        (void)hoist_load_memory("changed", data, size, &module, NULL);
        (void)hoist_module_symbol_count(module);
        (void)hoist_module_section_count(module);
        hoist_module_free(module);
        (void)hoist_file_parse("changed", data, size, &file, NULL);
        hoist_file_free(file);
        data[at] ^= 0x55;
    }
    free(data);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    hoist_error *error = NULL;
    hoist_module *module = NULL;
    hoist_file *file = NULL;
    null_everywhere();
    damaged(argv[1]);

    FAILS(FILE, hoist_load_file("/absent/x.o", &module, &error));
    hoist_error_info info = info_of(error);
    CHECK(info.kind == HOIST_STATUS_FILE && (info.fields & HOIST_ERROR_HAS_OS_ERROR) != 0 && info.os_error == 2);
    CHECK(strcmp(info.file, "/absent/x.o") == 0 && info.symbol == NULL && info.section == NULL && info.relocation == NULL);
    FAILS(BAD_FILE, hoist_file_parse("text", "not an ELF file at all, but long enough for a header of one.....", 64, &file, &error));
    CHECK(strcmp(info_of(error).file, "text") == 0 && strstr(hoist_error_message(error), "text: ") != NULL);
    FAILS(BAD_FILE, hoist_load_memory("empty", NULL, 0, &module, &error));
    FAILS(BAD_FILE, hoist_load_file(argv[2], &module, &error));
    CHECK(module == NULL);
    hoist_error_free(error);
    error = NULL;

    /* too large: a limit of a byte */
    hoist_objects *objects = hoist_objects_new();
    OK(hoist_objects_add_file(objects, argv[1], &error));
    hoist_loader *loader = hoist_loader_new();
    OK(hoist_loader_set_limit(loader, 1, &error));
    hoist_symbols *symbols = hoist_symbols_new();
    OK(hoist_symbols_define(symbols, "host_value", 0x1000, HOIST_DEFINITION_FUNCTION, &error));
    OK(hoist_symbols_add_process(symbols, &error));
    FAILS(TOO_LARGE, hoist_loader_load(loader, objects, symbols, &module, &error));
    info = info_of(error);
    CHECK((info.fields & HOIST_ERROR_HAS_VALUE) != 0 && (info.fields & HOIST_ERROR_HAS_LIMITS) != 0);
    CHECK(info.value > 1 && info.maximum == 1 && info.minimum == 0);
    hoist_loader_free(loader);

    FAILS(INVALID_ARGUMENT, hoist_symbols_define(symbols, "x", 0, 17, &error));
    FAILS(INVALID_ARGUMENT, hoist_symbols_add_callback(symbols, NULL, NULL, &error));
    hoist_symbols_free(symbols);

    /* rows where there are none have no last one; an empty name is one that was asked for */
    hoist_archive *archive = NULL;
    const char *name = NULL;
    const void *data = NULL;
    size_t size = 0;
    hoist_error_free(error);
    error = NULL;
    OK(hoist_archive_parse("none", "!<arch>\n", 8, &archive, &error));
    FAILS(OUT_OF_RANGE, hoist_archive_member(archive, 0, &name, &data, &size, &error));
    CHECK((info_of(error).fields & (HOIST_ERROR_HAS_LIMITS | HOIST_ERROR_HAS_VALUE)) == HOIST_ERROR_HAS_VALUE);
    hoist_archive_free(archive);
    hoist_error_free(error);
    error = NULL;
    OK(hoist_file_open(argv[1], &file, &error));
    FAILS(NOT_FOUND, hoist_file_find_section(file, "", &size, &error));
    CHECK(info_of(error).symbol != NULL && *info_of(error).symbol == '\0');
    hoist_file_free(file);

    /* archives: words and fields say which one, and which file it names */
    FAILS(BAD_FILE, hoist_objects_add_memory(objects, "cut.a", "!<arch>\nxx", 10, &error));
    CHECK(strncmp(hoist_error_message(error), "cut.a: ", 7) == 0 && strcmp(info_of(error).file, "cut.a") == 0);
    char path[] = "/tmp/hoist-thin-XXXXXX";
    const int thin = mkstemp(path);
    const char member[] = "!<thin>\nabsent.o/       0           0     0     644     4         `\n";
    CHECK(thin >= 0 && write(thin, member, sizeof member - 1) == (ssize_t)sizeof member - 1 && close(thin) == 0);
    FAILS(FILE, hoist_objects_add_file(objects, path, &error));
    CHECK((info_of(error).fields & HOIST_ERROR_HAS_OS_ERROR) != 0 && strstr(info_of(error).file, "absent.o") != NULL);
    CHECK(unlink(path) == 0);

    /* a list that is in use */
    own = hoist_symbols_new();
    hoist_error_free(error);
    error = NULL;
    OK(hoist_symbols_add_callback(own, reenter, NULL, &error));
    FAILS(UNDEFINED_SYMBOL, hoist_loader_load(NULL, objects, own, &module, &error));
    CHECK(was_busy > 0);
    hoist_symbols_free(own);
    hoist_objects_free(objects);
    hoist_error_free(error);
    puts("ok");
    return 0;
}
