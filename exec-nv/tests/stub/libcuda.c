/* A stub of the CUDA driver's library for tests: no GPU, no driver. SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * It records calls, keeps count of what was made and not given back, and can fail at the n-th call of any function. Device
 * memory is memory of the process; kernels do not run: a launch is recorded with its parameters, as the cubin describes them.
 *
 * A line is a function and its arguments in their order, but for places where it puts something; of an image, its size and a hash of its
 * bytes; of an option, its number and value. What was made has the number that it has
 * among its kind ("stream 2"), an address in it how far in it is ("memory 1+64"); null is "none", and any other address "host".
 *
 * Tests call stub_*; programs are steered by the environment:
 *   HOIST_STUB_FAIL=FUNCTION:CODE[:N]   HOIST_STUB_LOG=FILE   HOIST_STUB_VERSION=13000   HOIST_STUB_DEVICES=1   HOIST_STUB_SM=90
 *   HOIST_STUB_ABORT=FUNCTION, which ends the process   HOIST_STUB_HANG=FUNCTION, which never ends
 */
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;

/* ---- records ---- */

static char text[1 << 20];
static size_t used;
static char fail_name[64];
static int fail_code, fail_at, ready;

enum { CONTEXT, DEVICE_MEMORY, ASYNC_MEMORY, MANAGED_MEMORY, PINNED_MEMORY, REGISTERED, STREAM, EVENT, MODULE, LIBRARY, GRAPH, GRAPH_EXEC,
       PHYSICAL, RANGE, MAPPING, IPC_MEMORY, LINKER, KINDS };
static const char *const kinds[KINDS] = {"context", "device memory", "stream-ordered memory", "managed memory",
                                         "pinned memory", "registered memory", "stream", "event", "module",
                                         "library", "graph", "graph that is ready", "physical memory", "range of addresses",
                                         "mapping", "memory of another process", "linker"};
static const char *const words[KINDS] = {"context", "memory", "ordered", "managed", "pinned", "registered", "stream", "event", "module",
                                        "library", "graph", "ready", "physical", "range", "mapping", "ipc", "linker"};
static struct { void *what; int kind; size_t size; unsigned number, made; } live[1 << 16];
static size_t live_count;
static unsigned numbers[KINDS], all_made;
static int wrong; /* things given back that were not there */

void stub_fail(const char *name, int code, int at) {
    snprintf(fail_name, sizeof fail_name, "%s", name);
    fail_code = code, fail_at = at, ready = 1;
}
const char *stub_text(void) { return text; }
void stub_clear(void) { live_count = 0, wrong = 0; }
/* What was not given back, one a line, and what was given back wrongly. Empty if all is well. */
const char *stub_left(void) {
    static char left[1 << 12];
    size_t size = 0;
    left[0] = 0;
    for (size_t i = 0; i < live_count && size < sizeof left - 64; i++)
        size += snprintf(left + size, sizeof left - size, "%s\n", kinds[live[i].kind]);
    if (wrong) snprintf(left + size, sizeof left - size, "%d given back that were not there\n", wrong);
    return left;
}

/* What is called once, during the next call of a function. */
static char during_name[64];
static void (*during)(void *);
static void *during_data;
void stub_during(const char *name, void (*function)(void *), void *data) {
    snprintf(during_name, sizeof during_name, "%s", name);
    during = function, during_data = data;
}

static void from_environment(void) {
    const char *fail = getenv("HOIST_STUB_FAIL");
    ready = 1;
    if (fail && sscanf(fail, "%63[^:]:%d:%d", fail_name, &fail_code, &fail_at) == 2) fail_at = 1;
}
static int version, devices, sm; /* what a test wants; 0 leaves it to the environment */
void stub_be(int a_version, int some_devices, int an_sm) { version = a_version, devices = some_devices, sm = an_sm; }
static int number(const char *name, int otherwise) {
    int wanted = !strcmp(name, "HOIST_STUB_VERSION") ? version : !strcmp(name, "HOIST_STUB_DEVICES") ? devices : sm;
    const char *value = getenv(name);
    if (wanted) return wanted < 0 ? 0 : wanted;
    return value ? atoi(value) : otherwise;
}

static int is(const char *variable, const char *name) {
    const char *value = getenv(variable);
    return value && !strcmp(value, name);
}

/* Records a call; what it is to fail with, or 0. */
static CUresult call(const char *name, const char *format, ...) {
    char line[4096];
    int size = snprintf(line, sizeof line, "%s", name);
    va_list list;
    va_start(list, format);
    size += vsnprintf(line + size, sizeof line - size - 1, format, list);
    va_end(list);
    if (size > (int)sizeof line - 2) size = sizeof line - 2;
    line[size++] = '\n', line[size] = 0;
    if (used + size < sizeof text) memcpy(text + used, line, size + 1), used += size;
    const char *log = getenv("HOIST_STUB_LOG");
    if (log) {
        FILE *file = fopen(log, "a");
        if (file) fputs(line, file), fclose(file);
    }
    if (during && !strcmp(name, during_name)) {
        void (*function)(void *) = during;
        during = 0;
        function(during_data);
    }
    if (is("HOIST_STUB_ABORT", name)) abort();
    while (is("HOIST_STUB_HANG", name)) pause();
    if (!ready) from_environment();
    return fail_at && !strcmp(name, fail_name) && --fail_at == 0 ? fail_code : 0;
}
#define CALL(...) do { CUresult failed = call(__func__, __VA_ARGS__); if (failed) return failed; } while (0)

void stub_forget(void) {
    used = 0, text[0] = 0;
    if (!live_count) memset(numbers, 0, sizeof numbers);
}
static CUresult made_of(void *what, int kind, size_t size) {
    if (!what || live_count == sizeof live / sizeof *live) return 2;
    live[live_count].what = what, live[live_count].kind = kind, live[live_count].size = size ? size : 1;
    live[live_count].number = ++numbers[kind], live[live_count++].made = ++all_made;
    return 0;
}
static CUresult made(void *what, int kind) { return made_of(what, kind, 1); }
/* What an argument is: of several things at an address the one that was made last. */
static const char *of(const void *what) {
    static char lines[16][48];
    static unsigned next;
    char *line = lines[next++ % 16];
    unsigned newest = 0;
    if (!what) return "none";
    snprintf(line, sizeof lines[0], "host");
    for (size_t i = 0; i < live_count; i++) {
        size_t in = (size_t)what - (size_t)live[i].what;
        if (in >= live[i].size || live[i].made < newest) continue;
        newest = live[i].made;
        int size = snprintf(line, sizeof lines[0], "%s %u", words[live[i].kind], live[i].number);
        if (in) snprintf(line + size, sizeof lines[0] - size, "+%zu", in);
    }
    return line;
}
/* What went with a reset, and stays where it was: nobody may use it any more. */
static struct { size_t start, size; } dead[1 << 12];
static size_t dead_count;
static int is_dead(CUdeviceptr address) {
    for (size_t i = 0; i < dead_count; i++)
        if (address - dead[i].start < dead[i].size) return 1;
    return 0;
}
#define AT(address) of((const void *)(uintptr_t)(address))
static CUresult gone(void *what, int kind) {
    for (size_t i = 0; i < live_count; i++)
        if (live[i].what == what && live[i].kind == kind) {
            live[i] = live[--live_count];
            return 0;
        }
    wrong++;
    return 400; /* CUDA_ERROR_INVALID_HANDLE */
}

/* ---- driver and device ---- */

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
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    static const int table[][2] = {{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152},
        {10, 32}, {12, 65536}, {16, 132}, {38, 52428800}, {81, 233472}, {83, 1}, {95, 1}, {97, 232448}, {111, 1024}, {115, 1}, {120, 1}};
    CALL(" %d %d", attribute, device);
    int capability = number("HOIST_STUB_SM", 90);
    *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 0;
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

/* ---- memory ---- */

/* Addresses are the same in every run, as code is made for them; where they are taken, any. */
static void *memory(size_t size) {
    static uintptr_t next = 0x200000000000;
    size_t whole = (size + 0xffff) & ~(size_t)0xffff;
    if (size > 1 << 28) return 0;
    void *found = mmap((void *)next, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    next += whole + 0x10000;
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
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags) { CALL(" %zu %u", size, flags); return take(address, size, MANAGED_MEMORY); }
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

/* ---- streams and events ---- */

static CUresult handle(void **place, int kind) { *place = malloc(1); return made(*place, kind); }
static CUresult drop(void *what, int kind) {
    CUresult result = gone(what, kind);
    if (!result) free(what);
    return result;
}
/* What a graph has: of each node its kind, which nodes of the graph it comes after, as a sum of numbers, and its address when it has one. */
enum { EMPTY_NODE, KERNEL_NODE, COPY_NODE, FILL_NODE, GRAPH_NODE };
#define MOST_NODES 1024
struct graph { int nodes; struct { int kind; unsigned after; char *address; } of[MOST_NODES]; };
static unsigned node_number(int index) { return (index + 1) * 2654435761u; }
/* A stream. Its calls may go into the graph of one that captures: each comes after the one before, and after what the stream has waited for.
 * Those that joined have to be waited for before the capture ends. */
struct stream { struct stream *captures, *joined[8]; int others, is_apart; unsigned last; struct graph graph; };
/* An event, and where it was recorded in a capture. */
struct event { struct stream *captures, *stream; unsigned after; };
static int captured(void *stream, int kind) {
    struct stream *one = stream, *first = one ? one->captures : 0;
    if (!first || first->graph.nodes == MOST_NODES) return 0;
    int index = first->graph.nodes++;
    first->graph.of[index].kind = kind, first->graph.of[index].after = one->last;
    one->last = node_number(index), one->is_apart = one != first;
    return 1;
}
CUresult cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    CALL(" %u %d", flags, priority);
    *stream = calloc(1, sizeof(struct stream));
    return made(*stream, STREAM);
}
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) { CALL(""); *least = 0, *greatest = -5; return 0; }
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, void *stream) {
    CALL(" %s %s %zu %s", AT(to), AT(from), size, of(stream));
    if (is_dead(to) || is_dead(from)) return 700;
    if (!captured(stream, COPY_NODE)) memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, size);
    return 0;
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, void *to_context, CUdeviceptr from, void *from_context, size_t size, void *stream) {
    CALL(" %s %s %s %s %zu %s", AT(to), of(to_context), AT(from), of(from_context), size, of(stream));
    if (!captured(stream, COPY_NODE)) memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, size);
    return 0;
}
CUresult cuStreamDestroy_v2(void *stream) { CALL(" %s", of(stream)); return drop(stream, STREAM); }
CUresult cuStreamSynchronize(void *stream) { CALL(" %s", of(stream)); return 0; }
CUresult cuStreamWaitEvent(struct stream *stream, struct event *event, unsigned flags) {
    CALL(" %s %s %u", of(stream), of(event), flags);
    if (stream->captures != event->captures) {
        if (stream->captures || event->captures->others == 8) return 905; /* CUDA_ERROR_STREAM_CAPTURE_ISOLATION */
        stream->captures = event->captures, stream->last = 0;
        event->captures->joined[event->captures->others++] = stream;
    }
    if (!event->captures) return 0;
    stream->last += event->after, stream->is_apart = stream != event->captures;
    if (event->stream->last == event->after) event->stream->is_apart = 0;
    return 0;
}
CUresult cuEventCreate(void **event, unsigned flags) { CALL(" %u", flags); return made(*event = calloc(1, sizeof(struct event)), EVENT); }
CUresult cuEventDestroy_v2(void *event) { CALL(" %s", of(event)); return drop(event, EVENT); }
CUresult cuEventRecord(struct event *event, struct stream *stream) {
    CALL(" %s %s", of(event), of(stream));
    event->captures = stream->captures, event->stream = stream, event->after = stream->last;
    return 0;
}
CUresult cuEventQuery(void *event) { CALL(" %s", of(event)); return 0; }
CUresult cuEventSynchronize(void *event) { CALL(" %s", of(event)); return 0; }
CUresult cuEventElapsedTime(float *milliseconds, void *start, void *end) { CALL(" %s %s", of(start), of(end)); *milliseconds = 1.5f; return 0; }

/* ---- modules ---- */

struct function { char name[512]; const unsigned char *info; size_t size; unsigned registers, rows[64]; };
static const char *name_of(const struct function *function) { return function ? function->name : "none"; }
struct module { unsigned char *image; size_t size; struct function functions[64]; int count; };

static size_t image_size(const unsigned char *image) {
    const Elf64_Ehdr *header = (const void *)image;
    if (memcmp(image, "\177ELF", 4)) return strlen((const char *)image) + 1;
    size_t end = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    const Elf64_Shdr *sections = (const void *)(image + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type != SHT_NOBITS && sections[i].sh_type < 0x70000000 && sections[i].sh_offset + sections[i].sh_size > end)
            end = sections[i].sh_offset + sections[i].sh_size;
    return end;
}
/* Size and bytes of an image, as a line has them: a hash (FNV-1a) for the bytes. */
static const char *image_words(const unsigned char *image, size_t size) {
    static char line[64];
    unsigned long long hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++) hash = (hash ^ image[i]) * 0x100000001b3;
    snprintf(line, sizeof line, "%zu bytes %016llx", size, hash);
    return line;
}
/* Options of the driver's compiler, number and value of each: logs (3, 5) are places, the rest is numbers. */
static const char *options_words(unsigned count, const int *options, void **values) {
    static char lines[4][256];
    static unsigned next;
    char *line = lines[next++ % 4];
    size_t end = snprintf(line, sizeof lines[0], " %u options", count);
    for (unsigned i = 0; i < count && end < sizeof lines[0]; i++) {
        if (options[i] == 3 || options[i] == 5) end += snprintf(line + end, sizeof lines[0] - end, " %d:%s", options[i], of(values[i]));
        else end += snprintf(line + end, sizeof lines[0] - end, " %d:%zu", options[i], (size_t)values[i]);
    }
    return line;
}
static CUresult load(void **place, const void *image, size_t size, int kind) {
    struct module *module = calloc(1, sizeof *module);
    module->image = malloc(size), module->size = size;
    memcpy(module->image, image, size);
    *place = module;
    return made_of(module, kind, sizeof *module);
}
CUresult cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    size_t size = image_size(image);
    CUresult failed = call(__func__, " %s%s", image_words(image, size), options_words(count, options, values));
    if (failed) {
        if (count == 2 && options[0] == 5) snprintf(values[0], (size_t)values[1], "ptxas stub: line 1; what is wrong\n");
        return failed;
    }
    return load(module, image, size, MODULE);
}
CUresult cuModuleLoadData(void **module, const void *image) {
    size_t size = image_size(image);
    CALL(" %s", image_words(image, size));
    return load(module, image, size, MODULE);
}
CUresult cuModuleUnload(void *handle) {
    CALL(" %s", of(handle));
    struct module *module = handle;
    CUresult result = gone(module, MODULE);
    if (!result) free(module->image), free(module);
    return result;
}
/* Rows of EIATTR_KPARAM_INFO of a kernel in PTX, which is not compiled: what is between the parentheses behind its name. */
static size_t ptx_parameters(const char *text, const char *name, unsigned *rows) {
    char entry[600];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    const char *at = strstr(text, entry), *end = at ? strchr(at, ')') : 0;
    unsigned count = 0, place = 0;
    while (end && (at = strstr(at + 1, ".param ")) && at < end && count < 16) {
        unsigned bits = 8, align = 0, many = 1;
        char type[16], word[600];
        at += 7;
        if (sscanf(at, ".align %u", &align) == 1) at = strchr(at + 1, '.');
        sscanf(at, ".%15[a-z0-9]", type), sscanf(type, "%*c%u", &bits);
        if (sscanf(at, "%*s %599[^,)]", word) == 1 && strchr(word, '[')) many = atoi(strchr(word, '[') + 1);
        unsigned size = bits / 8 * many;
        if (!align) align = size;
        place = (place + align - 1) / align * align;
        rows[4 * count] = 4 | 0x17 << 8 | 12 << 16, rows[4 * count + 1] = 0;
        rows[4 * count + 2] = count | place << 16, rows[4 * count + 3] = size << 18;
        count++, place += size;
    }
    return 16 * count;
}

static CUresult function_of(void **found, void *handle, const char *name) {
    struct module *module = handle;
    if (!memmem(module->image, module->size, name, strlen(name)) || module->count == 64) return 500;
    struct function *function = &module->functions[module->count++];
    memset(function, 0, sizeof *function);
    snprintf(function->name, sizeof function->name, "%s", name);
    if (memcmp(module->image, "\177ELF", 4)) {
        function->size = ptx_parameters((const char *)module->image, name, function->rows), function->info = (const void *)function->rows;
    } else {
        const Elf64_Ehdr *header = (const void *)module->image;
        const Elf64_Shdr *sections = (const void *)(module->image + header->e_shoff);
        const char *names = (const char *)module->image + sections[header->e_shstrndx].sh_offset;
        for (int i = 0; i < header->e_shnum; i++)
            if (!strncmp(names + sections[i].sh_name, ".nv.info.", 9) && !strcmp(names + sections[i].sh_name + 9, name))
                function->info = module->image + sections[i].sh_offset, function->size = sections[i].sh_size;
    }
    *found = function;
    return 0;
}
CUresult cuModuleGetFunction(void **found, void *handle, const char *name) {
    CALL(" %s %s", of(handle), name);
    return function_of(found, handle, name);
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, void *handle, const char *name) {
    CALL(" %s %s", of(handle), name);
    struct module *module = handle;
    if (!memmem(module->image, module->size, name, strlen(name))) return 500;
    *address = (CUdeviceptr)(uintptr_t)module->image, *size = 16;
    return 0;
}

/* The parameter of this ordinal in .nv.info.K: EIATTR_KPARAM_INFO, EIATTR_KPARAM_INFO_V2. */
static int parameter(const struct function *function, unsigned ordinal, unsigned *offset, unsigned *size) {
    for (size_t at = 0; at + 4 <= function->size;) {
        const unsigned char *row = function->info + at;
        unsigned length = row[0] == 4 ? row[2] | row[3] << 8 : 0, words[3];
        if ((row[1] == 0x17 || row[1] == 0x45) && length == 12) {
            memcpy(words, row + 4, 12);
            *offset = words[1] >> 16, *size = row[1] == 0x17 ? words[2] >> 18 : words[2] & 0xffff;
            if ((words[1] & 0xffff) == ordinal) return 1;
        }
        at += 4 + length;
    }
    return 0;
}
CUresult cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *size) {
    unsigned at, bytes;
    CALL(" %s %zu", name_of(function), index);
    if (!parameter(function, index, &at, &bytes)) return 1;
    *offset = at, *size = bytes;
    return 0;
}
CUresult cuFuncGetAttribute(int *value, int attribute, void *function) { CALL(" %d %s", attribute, name_of(function)); *value = 7; return 0; }
CUresult cuFuncSetAttribute(void *function, int attribute, int value) { CALL(" %s %d %d", name_of(function), attribute, value); return 0; }

/* Parameters as "OFFSET:HEX", an address of what was made as "OFFSET:(memory 1)". */
static char *parameters(const struct function *function, void **values) {
    static char line[3072];
    size_t end = 0;
    unsigned at, size;
    line[0] = 0;
    for (unsigned i = 0; parameter(function, i, &at, &size) && end < sizeof line - 64; i++) {
        end += snprintf(line + end, sizeof line - end, " %u:", at);
        void *address = 0;
        if (size == 8) memcpy(&address, values[i], 8);
        if (address && strcmp(of(address), "host")) {
            end += snprintf(line + end, sizeof line - end, "(%s)", of(address));
            continue;
        }
        for (unsigned byte = 0; byte < size && end < sizeof line - 64; byte++)
            end += snprintf(line + end, sizeof line - end, "%02x", ((unsigned char *)values[i])[byte]);
    }
    return line;
}
CUresult cuLaunchKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, void *stream, void **values, void **extra) {
    CALL(" %s %ux%ux%u %ux%ux%u %u %s%s%s", function->name, gx, gy, gz, bx, by, bz, shared, of(stream), parameters(function, values),
         extra ? " extra" : "");
    captured(stream, KERNEL_NODE);
    return 0;
}
struct attribute { int id; char pad[4]; unsigned value[16]; };
struct config { unsigned grid[3], block[3], shared; void *stream; struct attribute *attributes; unsigned count; };
/* Attributes of a launch: the words of each as far as they are not zero, of which a priority is signed; a cooperative launch (2) is 1. */
static const char *attribute_words(int id, const unsigned *value) {
    static char line[256];
    int count = 16, end = snprintf(line, sizeof line, id == 2 && value[0] == 1 ? "%d" : "%d %d", id, (int)value[0]);
    if (id == 4) end = snprintf(line, sizeof line, "cluster %ux%ux%u", value[0], value[1], value[2]);
    while (count > (id == 4 ? 3 : 1) && !value[count - 1]) count--;
    for (int i = id == 4 ? 3 : 1; i < count; i++) end += snprintf(line + end, sizeof line - end, ",%u", value[i]);
    return line;
}
static const char *config_words(const struct config *config) {
    static char line[1024];
    size_t end = snprintf(line, sizeof line, "%ux%ux%u %ux%ux%u %u %s", config->grid[0], config->grid[1], config->grid[2], config->block[0],
                          config->block[1], config->block[2], config->shared, of(config->stream));
    for (unsigned i = 0; i < config->count && end < sizeof line; i++) {
        const struct attribute *one = &config->attributes[i];
        end += snprintf(line + end, sizeof line - end, "%s%s", one->id == 4 ? " " : " attribute ", attribute_words(one->id, one->value));
    }
    return line;
}
CUresult cuLaunchKernelEx(const struct config *config, struct function *function, void **values, void **extra) {
    CALL(" %s %s%s%s", function->name, config_words(config), parameters(function, values), extra ? " extra" : "");
    captured(config->stream, KERNEL_NODE);
    return 0;
}

#include "newer.h"
