// A driver for tests: no GPU, but cudart of CUDA 10 takes it for one. What cudart hands over goes to standard output (regions),
// what it asks for by name to standard error. Functions that are not here are made by the test, and do nothing.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void region(const void *wrapper) {
    const char *data;
    uint64_t size;
    memcpy(&data, (const char *)wrapper + 8, 8);
    memcpy(&size, data + 8, 8);
    fwrite(data, 1, size + 16, stdout);
    fflush(stdout);
}

static int context(void **made, int device) { *made = (void *)0x1000; return 0; }
static int module(void **made, const void *wrapper) { *made = (void *)0x2000; region(wrapper); return 0; }
static int nothing(void) { return 0; }
static void *cudart[16] = {(void *)sizeof cudart, module, context, nothing, nothing, nothing, module, nothing,
                           nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing};

static char room[2][8192];
static void first(void **at, size_t *size) { *at = room[0]; *size = 1024; }
static void second(void **at, size_t *size) { *at = room[1]; *size = 14; }
static void *hooks[7] = {(void *)sizeof hooks, nothing, first, nothing, nothing, nothing, second};
static void *threads[4] = {(void *)sizeof threads, nothing, nothing, nothing};

static void *kept;
static int keep(void *of, void *key, void *state) { kept = state; return 0; }
static int kept_state(void **state, void *of, void *key) { *state = kept; return kept ? 0 : 400; }
static void *states[4] = {keep, nothing, kept_state, nothing};

int cuGetExportTable(const void **table, const unsigned char *id) {
    *table = id[0] == 0x6b ? cudart : id[0] == 0xa0 ? hooks : id[0] == 0x42 ? threads : id[0] == 0xc6 ? states : NULL;
    return *table ? 0 : 500;
}
int cuDriverGetVersion(int *version) { *version = 10010; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? 8 : attribute == 76 ? 0 : 1; // compute capability
    return 0;
}
int cuDeviceGetName(char *name, int size, int device) { strncpy(name, "none", size); return 0; }
int cuDeviceTotalMem_v2(size_t *size, int device) { *size = 1 << 30; return 0; }
int cuDevicePrimaryCtxRetain(void **made, int device) { return context(made, device); }
static void *current;
int cuCtxGetCurrent(void **made) { *made = current; return 0; }
int cuCtxSetCurrent(void *made) { current = made; return 0; }
int cuCtxGetDevice(int *device) { *device = 0; return 0; }
int cuModuleGetFunction(void **found, void *of, const char *name) {
    fprintf(stderr, "function %s\n", name);
    *found = (void *)0x3000;
    return 0;
}
int cuModuleGetGlobal_v2(void **found, size_t *size, void *of, const char *name) {
    fprintf(stderr, "variable %s\n", name);
    *found = (void *)0x4000;
    if (size) *size = 4;
    return 0;
}
int cuLaunchKernel(void *function) { fprintf(stderr, "launch\n"); return 0; }
