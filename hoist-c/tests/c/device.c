/* device KERNELS_90a.cubin KERNELS_80.cubin: a GPU, which is the stub of exec-nv's tests: it records, and runs nothing. */
#include "check.h"

#include <dlfcn.h>

/* A function of the stub. */
static void *stub(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    CHECK(library != NULL);
    void *function = dlsym(library, name);
    CHECK(function != NULL);
    return function;
}

static int was_called(const char *text) {
    const char *(*calls)(void);
    *(void **)&calls = stub("stub_text");
    return strstr(calls(), text) != NULL;
}

/* The next call of a function of the driver fails. */
static void fail(const char *name, int code) {
    void (*failing)(const char *, int, int);
    *(void **)&failing = stub("stub_fail");
    failing(name, code, 1);
}

static void nothing(void) {
    hoist_error *error = NULL;
    hoist_device *device = NULL;
    uint32_t count = 9;
    setenv("HOIST_STUB_DEVICES", "0", 1);
    FAILS(NO_DEVICE, hoist_device_count(&count, &error));
    CHECK(count == 0 && strcmp(hoist_error_message(error), "the driver knows no GPU") == 0);
    FAILS(NO_DEVICE, hoist_device_open(0, &device, &error));
    CHECK(device == NULL);
    unsetenv("HOIST_STUB_DEVICES");
    setenv("HOIST_STUB_VERSION", "11040", 1);
    FAILS(NO_DEVICE, hoist_device_open(0, &device, &error));
    unsetenv("HOIST_STUB_VERSION");
    FAILS(NO_DEVICE, hoist_device_open(5, &device, &error));
    CHECK(info_of(error).value == 5 && info_of(error).maximum == 0);
    hoist_error_free(error);
    error = NULL;
    OK(hoist_device_count(&count, &error));
    CHECK(count == 1);
}

static void memory_of(hoist_device *device) {
    hoist_error *error = NULL;
    hoist_device_memory *one = NULL, *other = NULL;
    OK(hoist_device_memory_new(device, 4096, &one, &error));
    OK(hoist_device_memory_new(device, 64, &other, &error));
    CHECK(hoist_device_memory_size(one) == 4096 && hoist_device_memory_address(one) != 0);
    const char text[] = "to the device and back";
    char back[sizeof text] = "";
    OK(hoist_device_memory_write(one, 100, text, sizeof text, &error));
    OK(hoist_device_memory_read(one, 100, back, sizeof back, &error));
    CHECK(strcmp(back, text) == 0);
    OK(hoist_device_memory_copy(one, 103, other, 8, 10, &error));
    memset(back, 0, sizeof back);
    OK(hoist_device_memory_read(other, 8, back, 10, &error));
    CHECK(strcmp(back, "the device") == 0);
    OK(hoist_device_memory_copy(one, 0, one, 2048, 2048, &error));
    OK(hoist_device_memory_copy(one, 4096, other, 64, 0, &error));
    OK(hoist_device_memory_read(one, 0, NULL, 0, &error));
    FAILS(INVALID_ARGUMENT, hoist_device_memory_copy(one, 0, one, 2047, 2048, &error));
    FAILS(OUT_OF_RANGE, hoist_device_memory_copy(one, 0, other, 0, 65, &error));
    FAILS(OUT_OF_RANGE, hoist_device_memory_write(one, 4000, text, 97, &error));
    CHECK(info_of(error).value == 4097 && info_of(error).maximum == 4096);
    memset(back, 'x', sizeof back);
    FAILS(OUT_OF_RANGE, hoist_device_memory_read(one, UINT64_MAX, back, 2, &error));
    CHECK(back[0] == 0 && back[1] == 0 && back[2] == 'x');
    FAILS(INVALID_ARGUMENT, hoist_device_memory_read(one, 0, NULL, 1, &error));
    FAILS(INVALID_ARGUMENT, hoist_device_memory_write(NULL, 0, text, 1, &error));
    hoist_device_memory_free(one);
    FAILS(INVALID_ARGUMENT, hoist_device_memory_new(device, 0, &one, &error));
    CHECK(one == NULL && hoist_device_memory_size(NULL) == 0 && hoist_device_memory_address(NULL) == 0);
    FAILS(MEMORY, hoist_device_memory_new(device, UINT64_C(1) << 40, &one, &error));
    CHECK(info_of(error).value == UINT64_C(1) << 40);
    hoist_error_free(error);
    hoist_device_memory_free(other);
}

static void launches(hoist_device *device, const char *path, const char *foreign, uint32_t flags) {
    hoist_error *error = NULL;
    hoist_device_code *code = NULL;
    hoist_kernel *kernel = NULL;
    hoist_device_memory *memory = NULL;
    FAILS(NO_FIT, hoist_device_code_load_file(device, foreign, flags, &code, &error));
    CHECK(code == NULL && strcmp(info_of(error).file, foreign) == 0);
    FAILS(FILE, hoist_device_code_load_file(device, "/absent", flags, &code, &error));
    FAILS(INVALID_ARGUMENT, hoist_device_code_load_file(device, path, 2, &code, &error));
    hoist_error_free(error);
    error = NULL;
    size_t size = 0;
    void *data = read_all(path, &size);
    OK(hoist_device_code_load_memory(device, "kernels", data, size, flags, &code, &error));
    free(data);
    FAILS(NOT_FOUND, hoist_kernel_open(code, "absent", &kernel, &error));
    CHECK(strcmp(info_of(error).symbol, "absent") == 0 && strcmp(info_of(error).file, "kernels") == 0);
    uint64_t address = 1, length = 1;
    FAILS(NOT_FOUND, hoist_device_code_variable(code, "absent", &address, &length, &error));
    CHECK(address == 0 && length == 0);
    hoist_error_free(error);
    error = NULL;
    OK(hoist_kernel_open(code, "local_memory", &kernel, &error));
    hoist_device_code_free(code);
    OK(hoist_device_memory_new(device, 4096, &memory, &error));

    const uint32_t number = 7;
    hoist_kernel_argument arguments[2] = {{.memory = memory, .offset = 16}, {.data = &number, .size = sizeof number}};
    hoist_launch launch = {.grid = {4, 2}, .block = {32}, .dynamic_shared = 1024, .flags = HOIST_LAUNCH_WAIT};
    double seconds = -1;
    OK(hoist_kernel_launch(kernel, &launch, arguments, 2, &seconds, &error));
    CHECK(seconds > 0.0014 && seconds < 0.0016);
    CHECK(was_called("cuLaunchKernel local_memory 4x2x1 32x1x1 1024 stream 1 0:(memory ") && was_called(" 8:07000000\n"));
    launch = (hoist_launch){.grid = {2}, .block = {32}, .cluster = {2}, .flags = HOIST_LAUNCH_COOPERATIVE};
    OK(hoist_kernel_launch(kernel, &launch, arguments, 2, &seconds, &error));
    CHECK(seconds == 0 && was_called("cuLaunchKernelEx local_memory 2x1x1 32x1x1 0 stream 1 attribute 2 cluster 2x1x1"));
    /* a launch that nobody has waited for uses the memory */
    FAILS(BUSY, hoist_device_memory_write(memory, 0, &number, sizeof number, &error));
    hoist_error_free(error);
    error = NULL;
    OK(hoist_device_synchronize(device, &error));
    OK(hoist_device_memory_write(memory, 0, &number, sizeof number, &error));

    launch = (hoist_launch){.grid = {1}, .block = {32}};
    FAILS(LAUNCH, hoist_kernel_launch(kernel, &launch, arguments, 1, &seconds, &error));
    CHECK(info_of(error).value == 1 && info_of(error).minimum == 2 && info_of(error).maximum == 2);
    arguments[1].size = 2;
    FAILS(LAUNCH, hoist_kernel_launch(kernel, &launch, arguments, 2, NULL, &error));
    arguments[1].size = sizeof number;
    launch.block[0] = 2000;
    FAILS(LAUNCH, hoist_kernel_launch(kernel, &launch, arguments, 2, NULL, &error));
    launch.block[0] = 0;
    FAILS(LAUNCH, hoist_kernel_launch(kernel, &launch, arguments, 2, NULL, &error));
    launch = (hoist_launch){.grid = {1}, .block = {32}, .flags = 4};
    FAILS(INVALID_ARGUMENT, hoist_kernel_launch(kernel, &launch, arguments, 2, NULL, &error));
    launch.flags = 0;
    arguments[0].offset = 4097;
    FAILS(OUT_OF_RANGE, hoist_kernel_launch(kernel, &launch, arguments, 2, NULL, &error));
    arguments[0].offset = 0;
    FAILS(INVALID_ARGUMENT, hoist_kernel_launch(kernel, &launch, NULL, 2, NULL, &error));
    FAILS(INVALID_ARGUMENT, hoist_kernel_launch(kernel, NULL, arguments, 2, NULL, &error));
    FAILS(INVALID_ARGUMENT, hoist_kernel_launch(NULL, &launch, arguments, 2, NULL, &error));
    hoist_error_free(error);
    hoist_kernel_free(kernel);
    hoist_device_memory_free(memory);
}

/* A kernel fails: everything does, until the device is reset. */
static void failed_kernel(hoist_device *device) {
    hoist_error *error = NULL;
    hoist_device_memory *memory = NULL, *later = NULL;
    OK(hoist_device_memory_new(device, 64, &memory, &error));
    fail("cuStreamSynchronize", 700);
    FAILS(DEVICE, hoist_device_synchronize(device, &error));
    CHECK(info_of(error).value == 700 && strcmp(info_of(error).symbol, "cuStreamSynchronize") == 0);
    FAILS(DEVICE, hoist_device_memory_new(device, 64, &later, &error));
    hoist_error_free(error);
    error = NULL;
    OK(hoist_device_reset(device, &error));
    hoist_device_memory_free(memory);
    OK(hoist_device_memory_new(device, 64, &later, &error));
    OK(hoist_device_reset(device, &error));
    hoist_device_memory_free(later);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    nothing();
    hoist_error *error = NULL;
    hoist_device *device = NULL;
    OK(hoist_device_open(0, &device, &error));
    hoist_device_info info;
    OK(hoist_device_get_info(device, &info, &error));
    CHECK(strcmp(info.name, "Stub of a GPU 0") == 0 && info.sm == 90 && info.driver_major == 13 && info.driver_minor == 0);
    CHECK(info.max_threads == 1024 && info.max_shared == 232448 && info.warp_size == 32 && info.has_clusters);
    memory_of(device);
    launches(device, argv[1], argv[2], 0);
    launches(device, argv[1], argv[2], HOIST_DEVICE_CODE_OWN_LOADER);
    failed_kernel(device);
    hoist_device_free(device);
    const char *(*left)(void);
    *(void **)&left = stub("stub_left");
    CHECK(strcmp(left(), "") == 0);
    puts("ok");
    return 0;
}
