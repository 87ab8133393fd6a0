/* link PLUGIN.o FAR.o FOREIGN.o: images for other addresses and machines; files, to look at. FAR.o cannot be where addresses are
 * wide; FOREIGN.o is for AArch64. */
#include "check.h"

static void images(char **argv) {
    hoist_error *error = NULL;
    hoist_image *image = NULL;
    hoist_objects *objects = hoist_objects_new();
    OK(hoist_objects_add_file(objects, argv[1], &error));
    FAILS(UNDEFINED_SYMBOL, hoist_link(objects, NULL, 0x400000, 0, 0, &image, &error));
    CHECK(image == NULL && strstr(hoist_error_message(error), "host_value") != NULL);
    CHECK(strstr(hoist_error_message(error), "snprintf") != NULL);
    hoist_error_free(error);
    error = NULL;
    OK(hoist_link(objects, NULL, 0x400000, HOIST_LINK_ALLOW_UNDEFINED, 0, &image, &error));
    hoist_image_free(image);

    hoist_symbols *symbols = hoist_symbols_new();
    OK(hoist_symbols_define(symbols, "host_value", 0x410000, HOIST_DEFINITION_FUNCTION, &error));
    OK(hoist_symbols_define(symbols, "snprintf", 0x7fff00001234, HOIST_DEFINITION_FUNCTION, &error));
    OK(hoist_link(objects, symbols, 0x400000, HOIST_LINK_NO_RELAX, 0, &image, &error));
    const unsigned char *bytes = hoist_image_data(image);
    size_t size = hoist_image_size(image);
    CHECK(bytes != NULL && size > 4000 && hoist_image_base(image) == 0x400000);
    uint64_t count = 0;
    OK(hoist_image_address(image, "count", &count, &error));
    CHECK(count >= 0x400000 && count + 4 <= 0x400000 + size && bytes[count - 0x400000] == 3);
    FAILS(NOT_FOUND, hoist_image_address(image, "hidden", &count, &error));
    hoist_error_free(error);
    error = NULL;
    int found = 0;
    for (size_t i = 0; i < hoist_image_symbol_count(image); ++i) {
        hoist_image_symbol_row symbol;
        OK(hoist_image_symbol(image, i, &symbol, &error));
        if (strcmp(symbol.name, "hidden") == 0) {
            ++found;
            CHECK(symbol.binding == 0 && symbol.size == 4 && bytes[symbol.address - 0x400000] == 4);
        }
    }
    CHECK(found == 1);
    uint32_t flags = 0;
    for (size_t i = 0; i < hoist_image_segment_count(image); ++i) {
        hoist_image_segment_row segment;
        OK(hoist_image_segment(image, i, &segment, &error));
        CHECK(segment.offset + segment.size <= size && segment.address == 0x400000 + segment.offset);
        CHECK((segment.flags & 3) != 3);
        flags |= segment.flags;
    }
    CHECK(flags == 7);
    hoist_image_free(image);
    FAILS(TOO_LARGE, hoist_link(objects, symbols, 0x400000, 0, 100, &image, &error));
    CHECK(info_of(error).maximum == 100 && info_of(error).value > 4000);
    FAILS(LAYOUT, hoist_link(objects, symbols, 0x400001, 0, 0, &image, &error));
    hoist_symbols_free(symbols);
    hoist_objects_free(objects);

    /* out of reach: value and limits */
    objects = hoist_objects_new();
    hoist_error_free(error);
    error = NULL;
    OK(hoist_objects_add_file(objects, argv[2], &error));
    symbols = hoist_symbols_new();
    OK(hoist_symbols_define(symbols, "away", UINT64_C(0x123456789000), HOIST_DEFINITION_UNKNOWN, &error));
    FAILS(RELOCATION, hoist_link(objects, symbols, 0x10000, 0, 0, &image, &error));
    hoist_error_info info = info_of(error);
    CHECK(info.relocation != NULL && strncmp(info.relocation, "R_", 2) == 0);
    CHECK((info.fields & HOIST_ERROR_HAS_RELOCATION_TYPE) != 0 && info.relocation_type != 0);
    CHECK(strcmp(info.symbol, "away") == 0 && strcmp(info.section, ".data") == 0 && strcmp(info.file, argv[2]) == 0);
    CHECK((info.fields & HOIST_ERROR_HAS_VALUE) != 0 && info.value > info.maximum);
    CHECK((info.fields & HOIST_ERROR_HAS_LIMITS) != 0 && info.minimum < 0 && info.maximum >= INT32_MAX);
    CHECK((info.fields & HOIST_ERROR_HAS_OFFSET) != 0 && info.offset == 8);
    hoist_symbols_free(symbols);
    hoist_objects_free(objects);
    hoist_error_free(error);
    error = NULL;

    /* another machine */
    objects = hoist_objects_new();
    OK(hoist_objects_add_file(objects, argv[3], &error));
    OK(hoist_link(objects, NULL, 0x80000000, HOIST_LINK_ALLOW_UNDEFINED, 0, &image, &error));
    CHECK(hoist_image_size(image) > 0 && hoist_image_symbol_count(image) > 0);
    hoist_image_free(image);
    OK(hoist_objects_add_file(objects, argv[1], &error));
    FAILS(UNSUPPORTED, hoist_link(objects, NULL, 0x80000000, HOIST_LINK_ALLOW_UNDEFINED, 0, &image, &error));
    CHECK(info_of(error).object == 1 && strcmp(info_of(error).file, argv[1]) == 0);
    hoist_objects_free(objects);
    hoist_error_free(error);
}

static void files(const char *object) {
    hoist_error *error = NULL;
    hoist_file *file = NULL;
    OK(hoist_file_open(object, &file, &error));
    hoist_file_info info;
    OK(hoist_file_get_info(file, &info, &error));
    CHECK(info.kind == 1 && info.is_64 && !info.is_big_endian && info.machine != 0);
    CHECK(hoist_file_segment_count(file) == 0);
    hoist_file_segment_row segment;
    FAILS(OUT_OF_RANGE, hoist_file_segment(file, 0, &segment, &error));
    hoist_error_free(error);
    error = NULL;

    size_t index = 0;
    OK(hoist_file_find_section(file, ".rodata", &index, &error));
    hoist_file_section_row section;
    OK(hoist_file_section(file, index, &section, &error));
    CHECK(strcmp(section.name, ".rodata") == 0 && section.kind == 1);
    const void *data = NULL;
    size_t size = 0;
    OK(hoist_file_section_data(file, index, &data, &size, &error));
    CHECK(size == section.size && memcmp(data, "hello", 5) == 0);
    OK(hoist_file_find_section(file, ".bss", &index, &error));
    OK(hoist_file_section_data(file, index, &data, &size, &error));
    CHECK(data == NULL && size == 0);
    OK(hoist_file_section(file, 0, &section, &error));
    CHECK(strcmp(section.name, "") == 0 && section.kind == 0);
    FAILS(NOT_FOUND, hoist_file_find_section(file, ".absent", &index, &error));
    FAILS(OUT_OF_RANGE, hoist_file_section(file, hoist_file_section_count(file), &section, &error));
    FAILS(OUT_OF_RANGE, hoist_file_section(file, SIZE_MAX, &section, &error));
    hoist_error_free(error);
    error = NULL;

    size_t symbols = 0, dynamic = 9;
    OK(hoist_file_symbol_count(file, HOIST_SYMBOL_TABLE, &symbols, &error));
    OK(hoist_file_symbol_count(file, HOIST_DYNAMIC_SYMBOL_TABLE, &dynamic, &error));
    CHECK(symbols > 8 && dynamic == 0);
    hoist_file_symbol_row symbol;
    OK(hoist_file_find_symbol(file, HOIST_SYMBOL_TABLE, "host_value", &index, &error));
    OK(hoist_file_symbol(file, HOIST_SYMBOL_TABLE, index, &symbol, &error));
    CHECK(symbol.definition == HOIST_SYMBOL_UNDEFINED && strcmp(symbol.name, "host_value") == 0);
    OK(hoist_file_find_symbol(file, HOIST_SYMBOL_TABLE, "twice", &index, &error));
    OK(hoist_file_symbol(file, HOIST_SYMBOL_TABLE, index, &symbol, &error));
    CHECK(symbol.definition == HOIST_SYMBOL_IN_SECTION && symbol.kind == 2 && symbol.binding == 1 && symbol.section != 0);
    OK(hoist_file_symbol(file, HOIST_SYMBOL_TABLE, 0, &symbol, &error));
    CHECK(strcmp(symbol.name, "") == 0);
    FAILS(OUT_OF_RANGE, hoist_file_symbol(file, HOIST_SYMBOL_TABLE, symbols, &symbol, &error));
    FAILS(INVALID_ARGUMENT, hoist_file_symbol(file, 7, 0, &symbol, &error));
    FAILS(NOT_FOUND, hoist_file_find_symbol(file, HOIST_SYMBOL_TABLE, "absent", &index, &error));
    hoist_error_free(error);
    error = NULL;

    /* relocations of all sections: one of them is the call of host_value */
    size_t calls = 0, all = 0;
    for (size_t i = 0; i < hoist_file_section_count(file); ++i) {
        size_t count = 0;
        OK(hoist_file_relocation_count(file, i, &count, &error));
        for (size_t j = 0; j < count; ++j) {
            hoist_file_relocation_row relocation;
            OK(hoist_file_relocation(file, i, j, &relocation, &error));
            CHECK(strncmp(relocation.type_name, "R_", 2) == 0 && relocation.has_addend && relocation.symbol < symbols);
            calls += strcmp(relocation.symbol_name, "host_value") == 0;
            ++all;
        }
        hoist_file_relocation_row relocation;
        FAILS(OUT_OF_RANGE, hoist_file_relocation(file, i, count, &relocation, &error));
        hoist_error_free(error);
        error = NULL;
    }
    CHECK(calls >= 1 && all > 5);
    hoist_file_free(file);

    /* a program: segments, dynamic symbols */
    OK(hoist_file_open("/proc/self/exe", &file, &error));
    CHECK(hoist_file_segment_count(file) > 3);
    size_t loaded = 0;
    for (size_t i = 0; i < hoist_file_segment_count(file); ++i) {
        OK(hoist_file_segment(file, i, &segment, &error));
        loaded += segment.kind == 1;
    }
    OK(hoist_file_symbol_count(file, HOIST_DYNAMIC_SYMBOL_TABLE, &dynamic, &error));
    CHECK(loaded >= 2 && dynamic > 5);
    OK(hoist_file_find_symbol(file, HOIST_DYNAMIC_SYMBOL_TABLE, "exit", &index, &error));
    hoist_file_free(file);
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    images(argv);
    files(argv[1]);
    puts("ok");
    return 0;
}
