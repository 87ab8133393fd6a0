/* gpu KERNELS.cubin A.cubin B.cubin FATBIN LIBRARY: cubins and fatbins. */
#include "check.h"

static void kernels(const char *path) {
    hoist_error *error = NULL;
    hoist_cubin *cubin = NULL;
    OK(hoist_cubin_open(path, &cubin, &error));
    hoist_cubin_info info;
    OK(hoist_cubin_get_info(cubin, &info, &error));
    CHECK(strcmp(info.architecture, "sm_80") == 0 && info.sm == 80 && info.is_64 && !info.is_relocatable);
    CHECK(info.toolkit_major == 13);
    size_t count = hoist_cubin_kernel_count(cubin), parameters = 0, attributes = 0;
    CHECK(count > 3);
    for (size_t i = 0; i < count; ++i) {
        hoist_cubin_kernel_row kernel;
        OK(hoist_cubin_kernel(cubin, i, &kernel, &error));
        CHECK(*kernel.name != '\0' && kernel.code_size > 0 && kernel.registers > 0 && kernel.registers <= 255);
        size_t index = count;
        OK(hoist_cubin_find_kernel(cubin, kernel.name, &index, &error));
        CHECK(index == i);
        uint32_t end = 0;
        for (size_t j = 0; j < kernel.parameter_count; ++j) {
            hoist_cubin_parameter_row parameter;
            OK(hoist_cubin_parameter(cubin, i, j, &parameter, &error));
            CHECK(parameter.ordinal == j && parameter.offset >= end && parameter.size > 0);
            end = parameter.offset + parameter.size;
            ++parameters;
        }
        CHECK(kernel.parameter_size == HOIST_NOT_RECORDED || end <= kernel.parameter_size);
        int known = 0;
        for (size_t j = 0; j < kernel.attribute_count; ++j) {
            hoist_cubin_attribute_row attribute;
            OK(hoist_cubin_attribute(cubin, i, j, &attribute, &error));
            CHECK(attribute.format >= 1 && attribute.format <= 4 && (attribute.data != NULL) == (attribute.data_size != 0));
            known += strncmp(attribute.name, "EIATTR_", 7) == 0;
            ++attributes;
        }
        CHECK(known > 0);
        hoist_cubin_occupancy_row occupancy;
        OK(hoist_cubin_occupancy(cubin, i, 128, 0, &occupancy, &error));
        CHECK(occupancy.warps <= occupancy.of_warps && occupancy.of_warps == 64 && *occupancy.limiter != '\0');
        FAILS(INVALID_ARGUMENT, hoist_cubin_occupancy(cubin, i, 0, 0, &occupancy, &error));
        hoist_error_free(error);
        error = NULL;
        CHECK(occupancy.blocks == 0 && *occupancy.limiter == '\0');
    }
    CHECK(parameters > 5 && attributes > 20);
    hoist_cubin_kernel_row kernel;
    size_t index = 0;
    OK(hoist_cubin_find_kernel(cubin, "shared_memory", &index, &error));
    OK(hoist_cubin_kernel(cubin, index, &kernel, &error));
    CHECK(kernel.shared > 0);
    FAILS(NOT_FOUND, hoist_cubin_find_kernel(cubin, "absent", &index, &error));
    FAILS(OUT_OF_RANGE, hoist_cubin_kernel(cubin, count, &kernel, &error));
    CHECK(kernel.name == NULL);
    hoist_cubin_parameter_row parameter;
    FAILS(OUT_OF_RANGE, hoist_cubin_parameter(cubin, 0, 1000, &parameter, &error));
    hoist_error_free(error);
    hoist_cubin_free(cubin);
}

static void linked(const char *a, const char *b) {
    hoist_error *error = NULL;
    hoist_buffer *buffer = NULL;
    hoist_cubin *cubin = NULL;
    hoist_objects *objects = hoist_objects_new();
    OK(hoist_objects_add_file(objects, a, &error));
    FAILS(UNDEFINED_SYMBOL, hoist_cubin_link(objects, 0, &buffer, &error));
    CHECK(buffer == NULL && info_of(error).symbol != NULL);
    hoist_error_free(error);
    error = NULL;
    OK(hoist_objects_add_file(objects, b, &error));
    OK(hoist_cubin_link(objects, 0, &buffer, &error));
    OK(hoist_cubin_parse("linked", hoist_buffer_data(buffer), hoist_buffer_size(buffer), &cubin, &error));
    hoist_buffer_free(buffer);
    hoist_cubin_info info;
    OK(hoist_cubin_get_info(cubin, &info, &error));
    CHECK(!info.is_relocatable && hoist_cubin_kernel_count(cubin) > 0);
    hoist_cubin_free(cubin);
    hoist_objects *twice = hoist_objects_new();
    hoist_error_free(error);
    error = NULL;
    OK(hoist_objects_add_file(twice, a, &error));
    OK(hoist_objects_add_file(twice, a, &error));
    FAILS(LAYOUT, hoist_cubin_link(twice, 0, &buffer, &error));
    CHECK(strstr(hoist_error_message(error), "object 0") == NULL && strstr(hoist_error_message(error), "is defined in ") != NULL);
    hoist_objects_free(twice);
    FAILS(UNSUPPORTED, hoist_cubin_link(objects, 90, &buffer, &error));
    hoist_error_free(error);
    error = NULL;
    /* some kernels, or none */
    const char *absent[] = {"absent"};
    OK(hoist_cubin_link_kernels(objects, 0, absent, 1, &buffer, &error));
    OK(hoist_cubin_parse("none", hoist_buffer_data(buffer), hoist_buffer_size(buffer), &cubin, &error));
    hoist_buffer_free(buffer);
    CHECK(hoist_cubin_kernel_count(cubin) == 0);
    hoist_cubin_free(cubin);
    absent[0] = NULL;
    FAILS(INVALID_ARGUMENT, hoist_cubin_link_kernels(objects, 0, absent, 1, &buffer, &error));
    hoist_error_free(error);
    error = NULL;
    /* first to one that is relocatable, then to one that can be loaded */
    OK(hoist_cubin_link_relocatable(objects, 0, &buffer, &error));
    hoist_objects_free(objects);
    objects = hoist_objects_new();
    OK(hoist_objects_add_memory(objects, "joined", hoist_buffer_data(buffer), hoist_buffer_size(buffer), &error));
    hoist_buffer_free(buffer);
    OK(hoist_cubin_link(objects, 0, &buffer, &error));
    OK(hoist_cubin_parse("linked", hoist_buffer_data(buffer), hoist_buffer_size(buffer), &cubin, &error));
    hoist_buffer_free(buffer);
    CHECK(hoist_cubin_kernel_count(cubin) > 0);
    hoist_cubin_free(cubin);
    hoist_objects_free(objects);
    hoist_error_free(error);
}

static void fatbins(const char *path) {
    hoist_error *error = NULL;
    hoist_fatbin *fatbin = NULL;
    OK(hoist_fatbin_open(path, &fatbin, &error));
    size_t regions = hoist_fatbin_region_count(fatbin), entries = hoist_fatbin_entry_count(fatbin);
    CHECK(regions > 0 && entries > 0);
    for (size_t i = 0; i < entries; ++i) {
        hoist_fatbin_entry_row entry;
        OK(hoist_fatbin_entry(fatbin, i, &entry, &error));
        CHECK(entry.region < regions && entry.sm >= 35 && *entry.kind_name != '\0' && *entry.architecture != '\0');
        hoist_buffer *image = NULL;
        OK(hoist_fatbin_unpack(fatbin, i, 0, &image, &error));
        CHECK(hoist_buffer_size(image) == entry.unpacked_size);
        if (entry.kind == 2) {
            hoist_cubin *cubin = NULL;
            OK(hoist_cubin_parse(NULL, hoist_buffer_data(image), hoist_buffer_size(image), &cubin, &error));
            hoist_cubin_info info;
            OK(hoist_cubin_get_info(cubin, &info, &error));
            CHECK(info.sm == entry.sm);
            hoist_cubin_free(cubin);
        }
        hoist_buffer_free(image);
        if (*entry.compression != '\0') {
            FAILS(TOO_LARGE, hoist_fatbin_unpack(fatbin, i, 1, &image, &error));
            CHECK(image == NULL && info_of(error).maximum == 1);
            hoist_error_free(error);
            error = NULL;
        }
    }
    hoist_fatbin_entry_row first, again;
    OK(hoist_fatbin_entry(fatbin, 0, &first, &error));
    size_t index = 99;
    hoist_buffer *image = NULL;
    OK(hoist_fatbin_select(fatbin, 0, 90, 13, 0, &index, &image, &error));
    CHECK(index < entries && hoist_buffer_size(image) > 0);
    hoist_buffer_free(image);
    OK(hoist_fatbin_select(fatbin, 0, 90, 13, 0, &index, NULL, &error));
    FAILS(NO_FIT, hoist_fatbin_select(fatbin, 0, 20, 13, 0, &index, &image, &error));
    CHECK(image == NULL && index == 0);
    FAILS(OUT_OF_RANGE, hoist_fatbin_select(fatbin, regions, 90, 13, 0, &index, NULL, &error));
    hoist_error_free(error);
    error = NULL;

    /* a region of the first image twice */
    const size_t kept[] = {0, 0};
    OK(hoist_fatbin_build(fatbin, kept, 2, &image, &error));
    hoist_fatbin *built = NULL;
    OK(hoist_fatbin_parse("built", hoist_buffer_data(image), hoist_buffer_size(image), &built, &error));
    CHECK(hoist_fatbin_region_count(built) == 1 && hoist_fatbin_entry_count(built) == 2);
    OK(hoist_fatbin_entry(built, 1, &again, &error));
    CHECK(again.unpacked_size == first.unpacked_size && again.sm == first.sm && strcmp(again.kind_name, first.kind_name) == 0);
    hoist_fatbin_free(built);
    hoist_buffer_free(image);
    FAILS(OUT_OF_RANGE, hoist_fatbin_build(fatbin, (const size_t[]){entries}, 1, &image, &error));
    FAILS(INVALID_ARGUMENT, hoist_fatbin_build(fatbin, kept, SIZE_MAX, &image, &error));
    hoist_error_free(error);
    hoist_fatbin_free(fatbin);
}

int main(int argc, char **argv) {
    CHECK(argc == 6);
    hoist_error *error = NULL;
    hoist_cubin *cubin = NULL;
    kernels(argv[1]);
    linked(argv[2], argv[3]);
    fatbins(argv[4]);
    FAILS(BAD_FILE, hoist_cubin_open("/proc/self/exe", &cubin, &error));
    CHECK(cubin == NULL);
    hoist_error_free(error);
    error = NULL;
    hoist_fatbin *fatbin = NULL;
    OK(hoist_fatbin_open(argv[5], &fatbin, &error));
    CHECK(hoist_fatbin_region_count(fatbin) == 0 && hoist_fatbin_entry_count(fatbin) == 0);
    hoist_fatbin_free(fatbin);
    puts("ok");
    return 0;
}
