/*
 * Launches a kernel that adds arrays on the first NVIDIA GPU:
 *
 *     extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n)
 *
 *     nvcc -arch=native -cubin add.cu -o add.cubin
 *     cc launch.c $(pkg-config --cflags --libs hoist) -o launch
 *     ./launch add.cubin vector_add
 *
 * Nothing of CUDA is needed to build it. Where there is no driver, it says so.
 */
#include <hoist.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 4 };

/* Ends the program if something went wrong. */
static void must(hoist_status status, hoist_error **error) {
    if (status != HOIST_STATUS_OK) {
        fprintf(stderr, "launch: %s\n", hoist_error_message(*error));
        exit(1);
    }
}

/* Memory of the device with these numbers in it. */
static hoist_device_memory *copied(const hoist_device *device, const float *numbers) {
    hoist_error *error = NULL;
    hoist_device_memory *memory = NULL;
    must(hoist_device_memory_new(device, COUNT * sizeof *numbers, &memory, &error), &error);
    must(hoist_device_memory_write(memory, 0, numbers, COUNT * sizeof *numbers, &error), &error);
    return memory;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: launch CUBIN KERNEL\n");
        return 2;
    }
    hoist_error *error = NULL;
    hoist_device *device = NULL;
    hoist_device_code *code = NULL;
    hoist_kernel *kernel = NULL;
    must(hoist_device_open(0, &device, &error), &error);
    must(hoist_device_code_load_file(device, argv[1], 0, &code, &error), &error);
    must(hoist_kernel_open(code, argv[2], &kernel, &error), &error);

    const float x[COUNT] = {0, 1, 2, 3}, y[COUNT] = {10, 20, 30, 40};
    float sums[COUNT] = {0};
    const int count = COUNT;
    hoist_device_memory *a = copied(device, x), *b = copied(device, y), *c = copied(device, sums);
    const hoist_kernel_argument arguments[] = {
        {.memory = a}, {.memory = b}, {.memory = c}, {.data = &count, .size = sizeof count}};
    const hoist_launch launch = {.grid = {1}, .block = {COUNT}, .flags = HOIST_LAUNCH_WAIT};
    double seconds = 0;
    must(hoist_kernel_launch(kernel, &launch, arguments, 4, &seconds, &error), &error);
    must(hoist_device_memory_read(c, 0, sums, sizeof sums, &error), &error);
    for (int i = 0; i < COUNT; ++i) {
        printf("%g + %g = %g\n", x[i], y[i], sums[i]);
    }
    fprintf(stderr, "%.1f microseconds\n", seconds * 1e6);

    hoist_device_memory_free(a);
    hoist_device_memory_free(b);
    hoist_device_memory_free(c);
    hoist_kernel_free(kernel);
    hoist_device_code_free(code);
    hoist_device_free(device);
    return 0;
}
