/* places: what the places of results hold after failure, those that may be NULL and those beside one that is NULL: nothing, whatever they held. */
#include "check.h"

/* A place holds what it may not, before; after the call, which fails, it is empty. */
#define EMPTY(place, call)                                                            \
    do {                                                                              \
        memset(&(place), 0xa5, sizeof(place));                                        \
        FAILS(INVALID_ARGUMENT, call);                                                \
        CHECK(is_empty(&(place), sizeof(place)));                                     \
    } while (0)

static int is_empty(const void *place, size_t size) {
    for (size_t at = 0; at < size; ++at) {
        if (((const unsigned char *)place)[at] != 0) {
            return 0;
        }
    }
    return 1;
}

int main(void) {
    hoist_error *error = NULL;
    hoist_module_symbol_row symbol;
    hoist_buffer *image = NULL;
    const char *name = NULL;
    const void *data = NULL;
    void *address = NULL;
    uint64_t number = 0;
    size_t size = 0;
    double seconds = 0;
    unsigned char bytes[8];

    EMPTY(address, hoist_module_extent(NULL, &address, NULL, &error));
    EMPTY(number, hoist_module_extent(NULL, NULL, &number, &error));
    EMPTY(address, hoist_library_extent(NULL, &address, NULL, &error));
    EMPTY(number, hoist_library_extent(NULL, NULL, &number, &error));
    EMPTY(number, hoist_module_symbol_at(NULL, NULL, &symbol, &number, &error));
    EMPTY(number, hoist_module_symbol_at(NULL, NULL, NULL, &number, &error));
    EMPTY(number, hoist_library_symbol_at(NULL, NULL, &name, &number, &error));
    EMPTY(number, hoist_library_symbol_at(NULL, NULL, NULL, &number, &error));
    EMPTY(size, hoist_file_section_data(NULL, 0, NULL, &size, &error));
    EMPTY(data, hoist_archive_member(NULL, 0, NULL, &data, &size, &error));
    EMPTY(size, hoist_archive_member(NULL, 0, &name, NULL, &size, &error));
    EMPTY(image, hoist_fatbin_select(NULL, 0, 90, 13, 0, NULL, &image, &error));
    EMPTY(number, hoist_device_code_variable(NULL, "x", NULL, &number, &error));
    EMPTY(seconds, hoist_kernel_launch(NULL, NULL, NULL, 0, &seconds, &error));
    EMPTY(bytes, hoist_device_memory_read(NULL, 0, bytes, sizeof bytes, &error));
    hoist_error_free(error);
    puts("ok");
    return 0;
}
