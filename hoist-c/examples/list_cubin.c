/*
 * Lists the kernels of cubins, and of the cubins in fatbins, objects, programs and libraries.
 *
 *     cc list_cubin.c $(pkg-config --cflags --libs hoist) -o list_cubin
 *     ./list_cubin libsomething.so kernels.cubin
 */
#include <hoist.h>

#include <stdio.h>

/* Prints what went wrong, and frees it. */
static int complain(hoist_error *error) {
    fprintf(stderr, "list_cubin: %s\n", hoist_error_message(error));
    hoist_error_free(error);
    return 1;
}

static int list(const hoist_cubin *cubin, const char *where) {
    hoist_error *error = NULL;
    hoist_cubin_info info;
    if (hoist_cubin_get_info(cubin, &info, &error) != HOIST_STATUS_OK) {
        return complain(error);
    }
    for (size_t i = 0; i < hoist_cubin_kernel_count(cubin); ++i) {
        hoist_cubin_kernel_row kernel;
        if (hoist_cubin_kernel(cubin, i, &kernel, &error) != HOIST_STATUS_OK) {
            return complain(error);
        }
        printf("%s: %s %s: ", where, info.architecture, kernel.name);
        if (kernel.registers != HOIST_NOT_RECORDED) {
            printf("%u registers, ", kernel.registers);
        }
        printf("%llu bytes shared, (", (unsigned long long)kernel.shared);
        for (size_t j = 0; j < kernel.parameter_count; ++j) {
            hoist_cubin_parameter_row parameter;
            if (hoist_cubin_parameter(cubin, i, j, &parameter, &error) != HOIST_STATUS_OK) {
                return complain(error);
            }
            printf("%s%u", j > 0 ? ", " : "", parameter.size);
        }
        hoist_cubin_occupancy_row occupancy;
        if (hoist_cubin_occupancy(cubin, i, 256, 0, &occupancy, NULL) == HOIST_STATUS_OK) {
            printf("), %u of %u warps at 256 threads", occupancy.warps, occupancy.of_warps);
        } else {
            printf(")");
        }
        putchar('\n');
    }
    return 0;
}

/* Every cubin that the file has, unpacked. */
static int list_all(const hoist_fatbin *fatbin, const char *path) {
    int failed = 0;
    for (size_t i = 0; i < hoist_fatbin_entry_count(fatbin); ++i) {
        hoist_error *error = NULL;
        hoist_fatbin_entry_row entry;
        hoist_buffer *image = NULL;
        hoist_cubin *cubin = NULL;
        if (hoist_fatbin_entry(fatbin, i, &entry, &error) != HOIST_STATUS_OK) {
            failed |= complain(error);
        } else if (entry.kind != 2) {
            printf("%s: image %zu: %s %s\n", path, i, entry.kind_name, entry.architecture);
        } else if (hoist_fatbin_unpack(fatbin, i, 0, &image, &error) != HOIST_STATUS_OK ||
                   hoist_cubin_parse(path, hoist_buffer_data(image), hoist_buffer_size(image), &cubin, &error) != HOIST_STATUS_OK) {
            failed |= complain(error);
        } else {
            failed |= list(cubin, path);
        }
        hoist_cubin_free(cubin);
        hoist_buffer_free(image);
    }
    return failed;
}

int main(int argc, char **argv) {
    int failed = 0;
    for (int i = 1; i < argc; ++i) {
        hoist_error *error = NULL;
        hoist_cubin *cubin = NULL;
        hoist_fatbin *fatbin = NULL;
        if (hoist_cubin_open(argv[i], &cubin, NULL) == HOIST_STATUS_OK) {
            failed |= list(cubin, argv[i]);
        } else if (hoist_fatbin_open(argv[i], &fatbin, &error) == HOIST_STATUS_OK) {
            failed |= list_all(fatbin, argv[i]);
        } else {
            failed |= complain(error);
        }
        hoist_fatbin_free(fatbin);
        hoist_cubin_free(cubin);
    }
    return failed;
}
