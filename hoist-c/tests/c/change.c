/* change FATBIN LIBRARY K75.cubin K80.cubin K.ptx: files whose device code is replaced or removed. */
#include "check.h"

static hoist_fatbin *parsed(hoist_buffer *file) {
    hoist_error *error = NULL;
    hoist_fatbin *fatbin = NULL;
    OK(hoist_fatbin_parse("changed", hoist_buffer_data(file), hoist_buffer_size(file), &fatbin, &error));
    hoist_buffer_free(file);
    return fatbin;
}

/* Image `index` is these bytes. */
static void is(const hoist_fatbin *fatbin, size_t index, const void *data, size_t size) {
    hoist_error *error = NULL;
    hoist_buffer *image = NULL;
    OK(hoist_fatbin_unpack(fatbin, index, 0, &image, &error));
    CHECK(hoist_buffer_size(image) == size && memcmp(hoist_buffer_data(image), data, size) == 0);
    hoist_buffer_free(image);
}

static hoist_fatbin_entry_row entry(const hoist_fatbin *fatbin, size_t index) {
    hoist_error *error = NULL;
    hoist_fatbin_entry_row row;
    OK(hoist_fatbin_entry(fatbin, index, &row, &error));
    return row;
}

static void replaced(const char *path, const void *k75, size_t size75, const void *k80, size_t size80, const char *ptx) {
    hoist_error *error = NULL;
    hoist_buffer *file = NULL;
    hoist_fatbin *fatbin = NULL, *new = NULL;
    OK(hoist_fatbin_open(path, &fatbin, &error));
    CHECK(hoist_fatbin_entry_count(fatbin) == 2);
    const char *const methods[] = {NULL, "none", "zlib", "lz4", "lz4 frame", "zstd"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; ++i) {
        OK(hoist_fatbin_replace(fatbin, 0, k75, size75, methods[i], 0, &file, &error));
        new = parsed(file);
        const char *method = methods[i] == NULL ? "zstd" : strcmp(methods[i], "none") == 0 ? "" : methods[i];
        CHECK(hoist_fatbin_entry_count(new) == 2 && strcmp(entry(new, 0).compression, method) == 0);
        CHECK(strcmp(entry(new, 0).identifier, "k.cu") == 0 && entry(new, 0).flags != 0);
        is(new, 0, k75, size75);
        CHECK(entry(new, 1).stored_size == entry(fatbin, 1).stored_size);
        hoist_fatbin_free(new);
    }
    FAILS(NO_FIT, hoist_fatbin_replace(fatbin, 0, k80, size80, NULL, 0, &file, &error));
    CHECK(file == NULL && strcmp(info_of(error).file, path) == 0);
    FAILS(NO_FIT, hoist_fatbin_replace(fatbin, 1, k75, size75, NULL, 0, &file, &error));
    hoist_error_free(error);
    error = NULL;
    OK(hoist_fatbin_replace(fatbin, 0, k80, size80, NULL, HOIST_FATBIN_ANY_CODE, &file, &error));
    new = parsed(file);
    CHECK(entry(new, 0).sm == 80);
    is(new, 0, k80, size80);
    hoist_fatbin_free(new);
    /* PTX is text: the NUL behind it comes by itself */
    OK(hoist_fatbin_replace(fatbin, 1, ptx, strlen(ptx), "none", 0, &file, &error));
    new = parsed(file);
    is(new, 1, ptx, strlen(ptx) + 1);
    hoist_fatbin_free(new);
    FAILS(BAD_FILE, hoist_fatbin_replace(fatbin, 0, "text", 4, NULL, 0, &file, &error));
    FAILS(OUT_OF_RANGE, hoist_fatbin_replace(fatbin, 2, k75, size75, NULL, 0, &file, &error));
    FAILS(INVALID_ARGUMENT, hoist_fatbin_replace(fatbin, 0, k75, size75, "best", 0, &file, &error));
    FAILS(INVALID_ARGUMENT, hoist_fatbin_replace(fatbin, 0, k75, size75, NULL, 8, &file, &error));
    FAILS(INVALID_ARGUMENT, hoist_fatbin_replace(NULL, 0, k75, size75, NULL, 0, &file, &error));
    hoist_error_free(error);
    hoist_fatbin_free(fatbin);
}

static void pruned(const char *path) {
    hoist_error *error = NULL;
    hoist_buffer *file = NULL;
    hoist_fatbin *fatbin = NULL, *new = NULL;
    OK(hoist_fatbin_open(path, &fatbin, &error));
    OK(hoist_fatbin_prune(fatbin, (const size_t[]){1}, 1, &file, &error));
    new = parsed(file);
    CHECK(hoist_fatbin_entry_count(new) == 1 && strcmp(entry(new, 0).kind_name, "ptx") == 0);
    hoist_fatbin_free(new);
    /* all of it, in any order and twice: the file as it is */
    size_t size = 0;
    void *before = read_all(path, &size);
    OK(hoist_fatbin_prune(fatbin, (const size_t[]){1, 0, 1}, 3, &file, &error));
    CHECK(hoist_buffer_size(file) == size && memcmp(hoist_buffer_data(file), before, size) == 0);
    hoist_buffer_free(file);
    free(before);
    FAILS(INVALID_ARGUMENT, hoist_fatbin_prune(fatbin, NULL, 0, &file, &error));
    FAILS(OUT_OF_RANGE, hoist_fatbin_prune(fatbin, (const size_t[]){2}, 1, &file, &error));
    CHECK(file == NULL);
    hoist_error_free(error);
    hoist_fatbin_free(fatbin);
}

/* A shared library: a region that grows moves, and the library is one still. */
static void library(const char *path, const void *k75, size_t size75) {
    hoist_error *error = NULL;
    hoist_buffer *file = NULL;
    hoist_fatbin *fatbin = NULL, *new = NULL;
    hoist_file *elf = NULL;
    OK(hoist_fatbin_open(path, &fatbin, &error));
    CHECK(hoist_fatbin_region_count(fatbin) == 2 && entry(fatbin, 1).stored_size < size75);
    OK(hoist_fatbin_replace(fatbin, 1, k75, size75, "none", 0, &file, &error));
    OK(hoist_file_parse("changed", hoist_buffer_data(file), hoist_buffer_size(file), &elf, &error));
    CHECK(hoist_file_section_count(elf) > 10);
    hoist_file_free(elf);
    new = parsed(file);
    CHECK(hoist_fatbin_region_count(new) == 2 && hoist_fatbin_entry_count(new) == 2);
    int found = 0;
    for (size_t i = 0; i < 2; ++i) {
        found += entry(new, i).unpacked_size == size75;
    }
    CHECK(found == 1);
    hoist_fatbin_free(new);
    OK(hoist_fatbin_prune(fatbin, (const size_t[]){1}, 1, &file, &error));
    new = parsed(file);
    CHECK(hoist_fatbin_entry_count(new) == 1);
    hoist_fatbin_free(new);
    hoist_fatbin_free(fatbin);
}

int main(int argc, char **argv) {
    CHECK(argc == 6);
    size_t size75 = 0, size80 = 0, size = 0;
    void *k75 = read_all(argv[3], &size75), *k80 = read_all(argv[4], &size80), *text = read_all(argv[5], &size);
    char *ptx = malloc(size + 1);
    CHECK(ptx != NULL);
    memcpy(ptx, text, size);
    ptx[size] = '\0';
    replaced(argv[1], k75, size75, k80, size80, ptx);
    pruned(argv[1]);
    library(argv[2], k75, size75);
    free(k75);
    free(k80);
    free(text);
    free(ptx);
    puts("ok");
    return 0;
}
