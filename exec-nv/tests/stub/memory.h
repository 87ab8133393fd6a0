/* Part of the stub: memory, and copies that wait.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */

/* Addresses are the same in every run, as code is made for them; where they are taken, any. */
static void *memory(size_t size) {
    static uintptr_t next = 0x200000000000;
    size_t whole = (size + 0xffff) & ~(size_t)0xffff;
    if (size > 1 << 28) return 0;
    uintptr_t place = __sync_fetch_and_add(&next, whole + 0x10000);
    void *found = mmap((void *)place, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return found == MAP_FAILED ? 0 : found;
}
static CUresult give(void *what, int kind) {
    size_t size = 0;
    for (size_t i = 0; i < live_count; i++)
        if (live[i].what == what && live[i].kind == kind) size = live[i].size;
    CUresult result = gone(what, kind);
    if (!result) munmap(what, (size + 0xffff) & ~(size_t)0xffff);
    return result;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) { CALL(""); *free = 1 << 29, *total = 1 << 30; return 0; }
static CUresult take(CUdeviceptr *address, size_t size, int kind) {
    void *what = memory(size);
    *address = (CUdeviceptr)(uintptr_t)what;
    return made_of(what, kind, size);
}
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) { CALL(" %zu", size); return take(address, size, DEVICE_MEMORY); }
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, void *stream) { CALL(" %zu %s", size, of(stream)); return take(address, size, ASYNC_MEMORY); }
CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *size, CUdeviceptr address) {
    CALL(" %s", AT(address));
    for (size_t i = 0; i < live_count; i++)
        if (live[i].kind <= PINNED_MEMORY && address - (size_t)live[i].what < live[i].size) {
            *start = (size_t)live[i].what, *size = live[i].size;
            return 0;
        }
    return 500; /* CUDA_ERROR_NOT_FOUND */
}
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags) { CALL(" %zu %u", size, flags); return take(address, size, MANAGED_MEMORY); }
/* Whether memory is managed at an address: CUDA_ERROR_INVALID_VALUE if it is not. */
static CUresult managed_at(CUdeviceptr address) {
    for (size_t i = 0; i < live_count; i++)
        if (live[i].kind == MANAGED_MEMORY && address - (size_t)live[i].what < live[i].size) return 0;
    return 1;
}
CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice device, void *stream) { CALL(" %s %zu %d %s", AT(address), size, device, of(stream)); return managed_at(address); }
CUresult cuMemAdvise(CUdeviceptr address, size_t size, unsigned advice, CUdevice device) { CALL(" %s %zu %u %d", AT(address), size, advice, device); return managed_at(address); }
CUresult cuMemFree_v2(CUdeviceptr address) {
    void *what = (void *)(uintptr_t)address;
    int managed = 0;
    for (size_t i = 0; i < live_count; i++)
        if (live[i].what == what && live[i].kind == MANAGED_MEMORY) managed = 1;
    CALL(" %s", of(what));
    return give(what, managed ? MANAGED_MEMORY : DEVICE_MEMORY);
}
CUresult cuMemFreeAsync(CUdeviceptr address, void *stream) {
    CALL(" %s %s", AT(address), of(stream));
    return give((void *)(uintptr_t)address, ASYNC_MEMORY);
}
CUresult cuMemHostAlloc(void **address, size_t size, unsigned flags) { CALL(" %zu %u", size, flags); *address = memory(size); return made_of(*address, PINNED_MEMORY, size); }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned flags) { CALL(" %s %u", of(host), flags); *device = (CUdeviceptr)(uintptr_t)host; return 0; }
CUresult cuMemFreeHost(void *address) {
    CALL(" %s", of(address));
    return give(address, PINNED_MEMORY);
}
CUresult cuMemHostRegister_v2(void *address, size_t size, unsigned flags) { CALL(" %s %zu %u", of(address), size, flags); return made_of(address, REGISTERED, size); }
CUresult cuMemHostUnregister(void *address) { CALL(" %s", of(address)); return gone(address, REGISTERED); }
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) { CALL(" %s %s %zu", AT(to), of(from), size); memcpy((void *)(uintptr_t)to, from, size); return 0; }
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) { CALL(" %s %s %zu", of(to), AT(from), size); memcpy(to, (void *)(uintptr_t)from, size); return 0; }
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) { CALL(" %s %s %zu", AT(to), AT(from), size); memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, size); return 0; }
CUresult cuMemcpyPeer(CUdeviceptr to, void *to_context, CUdeviceptr from, void *from_context, size_t size) {
    CALL(" %s %s %s %s %zu", AT(to), of(to_context), AT(from), of(from_context), size);
    memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, size);
    return 0;
}
CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count) { CALL(" %s %u %zu", AT(address), value, count); memset((void *)(uintptr_t)address, value, count); return 0; }

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, void *stream) {
    CALL(" %s %u %zu %s", AT(address), value, count, of(stream));
    if (is_dead(address)) return 700;
    memset((void *)(uintptr_t)address, value, count);
    return 0;
}
