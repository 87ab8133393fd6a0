/* Part of the stub: the driver, devices and contexts.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */

CUresult cuInit(unsigned flags) { CALL(" %u", flags); return number("HOIST_STUB_DEVICES", 1) ? 0 : 100; }
CUresult cuDriverGetVersion(int *found) { CALL(""); *found = number("HOIST_STUB_VERSION", 13000); return 0; }
CUresult cuGetErrorName(CUresult code, const char **name) {
    CALL(" %d", code);
    if (code > 999) return *name = 0, 1;
    *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_STUB";
    return 0;
}
CUresult cuGetErrorString(CUresult code, const char **string) { CALL(" %d", code); return *string = code > 999 ? 0 : "as the test wants it", code > 999; }
CUresult cuDeviceGetCount(int *count) { CALL(""); *count = number("HOIST_STUB_DEVICES", 1); return 0; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) { CALL(" %d", ordinal); *device = ordinal; return 0; }
CUresult cuDeviceGetName(char *name, int size, CUdevice device) { CALL(" %d %d", size, device); snprintf(name, size, "Stub of a GPU %d", device); return 0; }
CUresult cuDeviceGetUuid_v2(unsigned char *uuid, CUdevice device) { CALL(" %d", device); memset(uuid, device + 1, 16); return 0; }
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) { CALL(" %d", device); *bytes = 1ull << 30; return 0; }
/* Whether the host may touch managed memory while kernels run: not on Windows. */
static int concurrent = 1;
void stub_concurrent(int is) { concurrent = is; }
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    static const int table[][2] = {{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152},
        {10, 32}, {12, 65536}, {16, 132}, {38, 52428800}, {81, 233472}, {83, 1}, {95, 1}, {97, 232448}, {111, 1024}, {115, 1}, {120, 1}};
    CALL(" %d %d", attribute, device);
    int capability = number("HOIST_STUB_SM", 90);
    *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : attribute == 89 ? concurrent : 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i][0] == attribute) *value = table[i][1];
    return 0;
}
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) { CALL(" %d %d", device, peer); *can = 1; return 0; }
CUresult cuDevicePrimaryCtxRetain(void **context, CUdevice device) {
    CALL(" %d", device);
    *context = (void *)(intptr_t)(0xc0 + device);
    return made(*context, CONTEXT);
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { CALL(" %d", device); return gone((void *)(intptr_t)(0xc0 + device), CONTEXT); }
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    CALL(" %d", device);
    size_t kept = 0;
    for (size_t i = 0; i < live_count; i++)
        if (live[i].kind == CONTEXT || live[i].kind == LIBRARY) live[kept++] = live[i];
        else if (dead_count < sizeof dead / sizeof *dead) dead[dead_count].start = (size_t)live[i].what, dead[dead_count++].size = live[i].size;
    live_count = kept;
    return 0;
}
static __thread void *current;
CUresult cuCtxGetCurrent(void **context) { CALL(""); *context = current; return 0; }
CUresult cuCtxSetCurrent(void *context) { CALL(" %s", of(context)); current = context; return 0; }
CUresult cuCtxSynchronize(void) { CALL(""); return 0; }
CUresult cuCtxGetLimit(size_t *value, int limit) { CALL(" %d", limit); *value = 1024; return 0; }
CUresult cuCtxSetLimit(int limit, size_t value) { CALL(" %d %zu", limit, value); return 0; }
CUresult cuCtxEnablePeerAccess(void *peer, unsigned flags) { CALL(" %s %u", of(peer), flags); return 0; }
