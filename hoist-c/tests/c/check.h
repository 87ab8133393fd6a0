/* What the programs of the tests have in common. */
#ifndef CHECK_H
#define CHECK_H

#include <hoist.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

/* The call, which is given `&error`, gives none. Call and check are two steps: arguments have no order. */
#define OK(call)                                                                      \
    do {                                                                              \
        hoist_status status_ = (call);                                                \
        CHECK(succeeded(status_, error));                                             \
    } while (0)
/* The call gives an error of this kind, with a message, which is kept in `error` until the next one. */
#define FAILS(expected, call)                                                          \
    do {                                                                              \
        hoist_error_free(error);                                                      \
        error = NULL;                                                                 \
        hoist_status status_ = (call);                                                \
        CHECK(failed(HOIST_STATUS_##expected, status_, error));                       \
    } while (0)

static inline int succeeded(hoist_status status, const hoist_error *error) {
    if (status != HOIST_STATUS_OK) {
        fprintf(stderr, "%s\n", hoist_error_message(error));
    }
    return status == HOIST_STATUS_OK && error == NULL;
}

static inline int failed(hoist_status expected, hoist_status status, const hoist_error *error) {
    if (status != expected) {
        fprintf(stderr, "%s: %s\n", hoist_status_name(status), hoist_error_message(error));
    }
    return status == expected && error != NULL && hoist_error_kind(error) == status && *hoist_error_message(error) != '\0';
}

static inline void *read_all(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    CHECK(fseek(file, 0, SEEK_END) == 0);
    long length = ftell(file);
    CHECK(length > 0);
    rewind(file);
    void *data = malloc((size_t)length);
    CHECK(data != NULL);
    CHECK(fread(data, 1, (size_t)length, file) == (size_t)length);
    fclose(file);
    *size = (size_t)length;
    return data;
}

static inline hoist_error_info info_of(const hoist_error *error) {
    hoist_error_info info;
    CHECK(hoist_error_get_info(error, &info));
    return info;
}

#endif
