/*
 * Hides what a static library has inside: symbols that its members define for each other, and whose names do not begin with PREFIX, become
 * hidden (`STV_HIDDEN`), so that programs and shared libraries which take the library in do not export them. `make` of hoist-c does so with
 * libhoist.a.
 *
 *     cc hide_symbols.c $(pkg-config --cflags --libs hoist) -o hide_symbols
 *     ./hide_symbols libsomething.a something_
 */
#include <hoist.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHT_SYMTAB = 2, STB_GLOBAL = 1, STB_WEAK = 2, STV_DEFAULT = 0, STV_HIDDEN = 2 };
/* `st_other` in the rows of both classes: of 24 and of 16 bytes. */
enum { OTHER_64 = 5, OTHER_32 = 13 };

static int fail(const char *what, hoist_error *error) {
    fprintf(stderr, "hide_symbols: %s: %s\n", what, error != NULL ? hoist_error_message(error) : "cannot be read or written");
    hoist_error_free(error);
    return 1;
}

/* Hides symbols of an object; how many, or -1. */
static long hide(unsigned char *object, size_t size, const char *prefix, hoist_error **error) {
    hoist_file *file = NULL;
    long hidden = 0;
    if (hoist_file_parse("member", object, size, &file, error) != HOIST_STATUS_OK) {
        return -1;
    }
    hoist_file_section_row table = {0};
    for (size_t index = 0; index < hoist_file_section_count(file) && table.kind != SHT_SYMTAB; ++index) {
        if (hoist_file_section(file, index, &table, error) != HOIST_STATUS_OK) {
            hidden = -1;
        }
    }
    const size_t other = table.entry_size == 24 ? OTHER_64 : OTHER_32;
    const size_t count = table.kind == SHT_SYMTAB && table.entry_size > other ? (size_t)(table.size / table.entry_size) : 0;
    for (size_t index = 1; hidden >= 0 && index < count; ++index) {
        hoist_file_symbol_row symbol;
        if (hoist_file_symbol(file, HOIST_SYMBOL_TABLE, index, &symbol, error) != HOIST_STATUS_OK) {
            hidden = -1;
            break;
        }
        const int is_shown = (symbol.binding == STB_GLOBAL || symbol.binding == STB_WEAK) && symbol.visibility == STV_DEFAULT;
        const size_t place = (size_t)table.offset + index * (size_t)table.entry_size + other;
        if (is_shown && symbol.definition != HOIST_SYMBOL_UNDEFINED && strncmp(symbol.name, prefix, strlen(prefix)) != 0 && place < size) {
            object[place] = (unsigned char)(symbol.other | STV_HIDDEN);
            ++hidden;
        }
    }
    hoist_file_free(file);
    return hidden;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: hide_symbols LIBRARY.a PREFIX\n");
        return 2;
    }
    FILE *file = fopen(argv[1], "r+b");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        return fail(argv[1], NULL);
    }
    const long size = ftell(file);
    rewind(file);
    unsigned char *data = size > 0 ? malloc((size_t)size) : NULL;
    if (data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size || memcmp(data, "!<arch>\n", 8) != 0) {
        return fail(argv[1], NULL);
    }
    long all = 0;
    /* a header of 60 bytes, its size at 48; members begin at even offsets */
    for (long at = 8; at + 60 <= size;) {
        char digits[11] = {0};
        memcpy(digits, data + at + 48, 10);
        const long length = strtol(digits, NULL, 10);
        if (length < 0 || length > size - at - 60) {
            return fail(argv[1], NULL);
        }
        hoist_error *error = NULL;
        unsigned char *member = data + at + 60;
        const int is_object = length > 4 && memcmp(member, "\177ELF", 4) == 0;
        const long hidden = is_object ? hide(member, (size_t)length, argv[2], &error) : 0;
        if (hidden < 0) {
            return fail(argv[1], error);
        }
        all += hidden;
        at += 60 + length + (length & 1);
    }
    rewind(file);
    if (fwrite(data, 1, (size_t)size, file) != (size_t)size || fclose(file) != 0) {
        return fail(argv[1], NULL);
    }
    free(data);
    printf("%ld symbols hidden\n", all);
    return 0;
}
