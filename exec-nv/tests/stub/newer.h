/* Parts of the stub that libcuda.c includes at its end: pools, graphs, virtual memory, other processes, libraries, tensor maps.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */

struct access { unsigned location, device, flags; };

/* ---- pools ---- */

static unsigned long long pool[9];
static const char *pool_word(const void *of) { return of == pool ? "default" : "other"; }

CUresult cuDeviceGetDefaultMemPool(void **found, CUdevice device) { CALL(" %d", device); *found = pool; return 0; }
CUresult cuMemPoolGetAttribute(unsigned long long *of, int attribute, unsigned long long *value) {
    CALL(" %s %d", pool_word(of), attribute);
    *value = of[attribute];
    return 0;
}
CUresult cuMemPoolSetAttribute(unsigned long long *of, int attribute, unsigned long long *value) {
    CALL(" %s %d %llu", pool_word(of), attribute, *value);
    of[attribute] = *value;
    return 0;
}
CUresult cuMemPoolTrimTo(void *of, size_t keep) { CALL(" %s %zu", pool_word(of), keep); return 0; }

CUresult cuMemPoolSetAccess(void *of, const struct access *all, size_t count) {
    CALL(" %s device %u:%u may %u, %zu", pool_word(of), all->location, all->device, all->flags, count);
    return 0;
}

/* ---- several devices ---- */

CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice from, CUdevice to) { CALL(" %d %d %d", attribute, from, to); *value = attribute != 3; return 0; }
CUresult cuCtxDisablePeerAccess(void *peer) { CALL(" %s", of(peer)); return 0; }

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, void *stream) { CALL(" %s %s %zu %s", AT(to), of(from), size, of(stream)); if (is_dead(to)) return 700; memcpy((void *)(uintptr_t)to, from, size); return 0; }
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, void *stream) { CALL(" %s %s %zu %s", of(to), AT(from), size, of(stream)); if (is_dead(from)) return 700; memcpy(to, (void *)(uintptr_t)from, size); return 0; }

/* ---- the driver's linker: gives back what it was given ---- */

struct link { void *bytes; size_t size; };

CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, struct link **state) { CALL(" %u", count); *state = calloc(1, sizeof **state); return made(*state, LINKER); }
CUresult cuLinkAddData_v2(struct link *state, unsigned kind, void *data, size_t size, const char *name, unsigned count, int *options, void **values) {
    CALL(" %s %u %zu %s %u", of(state), kind, size, name, count);
    state->bytes = data, state->size = size;
    return 0;
}
CUresult cuLinkComplete(struct link *state, void **cubin, size_t *size) { CALL(" %s", of(state)); *cubin = state->bytes, *size = state->size; return 0; }
CUresult cuLinkDestroy(void *state) { CALL(" %s", of(state)); return drop(state, LINKER); }

/* ---- graphs ---- */

struct graph { int nodes; };
typedef void *CUgraphNode;
/* Nodes of all graphs are told apart by their address. */
static char nodes[1 << 16];
static int node_count;
static const char *node_word(CUgraphNode node) {
    static char words[8][24];
    static unsigned next;
    char *line = words[next++ % 8];
    snprintf(line, sizeof words[0], "node %d", (int)((char *)node - nodes));
    return line;
}
/* A graph and the nodes that a node comes after. */
static const char *after_words(void *graph, CUgraphNode *after, size_t count) {
    static char line[256];
    size_t end = snprintf(line, sizeof line, "%s after", of(graph));
    if (!count) snprintf(line + end, sizeof line - end, " none");
    for (size_t i = 0; i < count && end < sizeof line; i++) end += snprintf(line + end, sizeof line - end, " %d", (int)((char *)after[i] - nodes));
    return line;
}

CUresult cuStreamBeginCapture_v2(struct stream *stream, unsigned mode) { CALL(" %s %u", of(stream), mode); stream->capturing = 1, stream->nodes = 0; return 0; }
static CUresult new_graph(struct graph **graph, int count) {
    *graph = calloc(1, sizeof **graph);
    (*graph)->nodes = count;
    return made(*graph, GRAPH);
}
CUresult cuStreamEndCapture(struct stream *stream, struct graph **graph) {
    int count = stream->nodes;
    stream->capturing = 0;
    CALL(" %s", of(stream));
    return new_graph(graph, count);
}
CUresult cuGraphCreate(struct graph **graph, unsigned flags) { CALL(" %u", flags); return new_graph(graph, 0); }
CUresult cuGraphDestroy(void *graph) { CALL(" %s", of(graph)); return drop(graph, GRAPH); }
CUresult cuGraphDestroyNode(CUgraphNode node) { CALL(" %s", node_word(node)); return 0; }
CUresult cuGraphGetNodes(struct graph *graph, CUgraphNode *found, size_t *count) {
    CALL(" %s %s", of(graph), found ? "all" : "number");
    if (!found) { *count = graph->nodes; return 0; }
    for (size_t i = 0; i < *count; i++) found[i] = nodes + node_count++;
    return 0;
}
static CUresult add_node(CUgraphNode *node, struct graph *graph) { graph->nodes++, *node = nodes + node_count++; return 0; }
CUresult cuGraphAddEmptyNode(CUgraphNode *node, struct graph *graph, CUgraphNode *after, size_t count) { CALL(" %s", after_words(graph, after, count)); return add_node(node, graph); }
struct kernel_node { struct function *function; unsigned grid[3], block[3], shared; void **values, **extra; void *kernel, *context; };
static void kernel_words(char *line, size_t size, const struct kernel_node *one) {
    snprintf(line, size, " %s %ux%ux%u %ux%ux%u %u%s", one->function->name, one->grid[0], one->grid[1], one->grid[2], one->block[0],
             one->block[1], one->block[2], one->shared, parameters(one->function, one->values));
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, struct graph *graph, CUgraphNode *after, size_t count, const struct kernel_node *one) {
    char line[4096];
    kernel_words(line, sizeof line, one);
    CALL(" %s%s", after_words(graph, after, count), line);
    return add_node(node, graph);
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int attribute, const unsigned *value) { CALL(" %s %d %u", node_word(node), attribute, value[0]); return 0; }
/* CUDA_MEMCPY3D: twice x, y, z, level, type, host, device, array, reserved, pitch, height; then the size. */
struct copy_end { size_t x, y, z, level; unsigned type; void *host; CUdeviceptr device; void *array, *reserved; size_t pitch, height; };
struct copy_node { struct copy_end from, to; size_t width, height, depth; };
CUresult cuGraphAddMemcpyNode(CUgraphNode *node, struct graph *graph, CUgraphNode *after, size_t count, const struct copy_node *one, void *context) {
    char line[256];
    snprintf(line, sizeof line, " %zux%zux%zu type %u %s to type %u %s %s", one->width, one->height, one->depth, one->from.type, AT(one->from.device),
             one->to.type, AT(one->to.device), of(context));
    CALL(" %s%s", after_words(graph, after, count), line);
    return add_node(node, graph);
}
struct fill_node { CUdeviceptr to; size_t pitch; unsigned value, size; size_t width, height; };
CUresult cuGraphAddMemsetNode(CUgraphNode *node, struct graph *graph, CUgraphNode *after, size_t count, const struct fill_node *one, void *context) {
    char line[128];
    snprintf(line, sizeof line, " %s %u of %u, %zux%zu %s", AT(one->to), one->value, one->size, one->width, one->height, of(context));
    CALL(" %s%s", after_words(graph, after, count), line);
    return add_node(node, graph);
}
CUresult cuGraphInstantiateWithFlags(struct graph **ready, struct graph *graph, unsigned long long flags) {
    CALL(" %s %llu", of(graph), flags);
    *ready = malloc(sizeof **ready);
    **ready = *graph;
    return made(*ready, GRAPH_EXEC);
}
CUresult cuGraphExecDestroy(void *ready) { CALL(" %s", of(ready)); return drop(ready, GRAPH_EXEC); }
CUresult cuGraphUpload(void *ready, void *stream) { CALL(" %s %s", of(ready), of(stream)); return 0; }
CUresult cuGraphLaunch(void *ready, void *stream) { CALL(" %s %s", of(ready), of(stream)); captured(stream); return 0; }
CUresult cuGraphExecKernelNodeSetParams_v2(void *ready, CUgraphNode node, const struct kernel_node *one) {
    char line[4096];
    kernel_words(line, sizeof line, one);
    CALL(" %s %s%s", of(ready), node_word(node), line);
    return 0;
}
struct outcome { unsigned result; CUgraphNode node, from; };
CUresult cuGraphExecUpdate_v2(struct graph *ready, struct graph *graph, struct outcome *outcome) {
    CALL(" %s %s", of(ready), of(graph));
    if (ready->nodes == graph->nodes) return 0;
    outcome->result = 2, outcome->node = nodes + node_count - 1;
    return 910; /* CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE */
}

/* ---- virtual memory: handles are numbers, and memory is there as soon as its addresses ---- */

static unsigned long long next_handle = 0x1000;
struct properties { unsigned kind, handles, location, device; };

CUresult cuMemGetAllocationGranularity(size_t *size, const struct properties *of, unsigned option) {
    CALL(" kind %u handles %u location %u device %u option %u", of->kind, of->handles, of->location, of->device, option);
    *size = option ? 2 << 20 : 64 << 10;
    return 0;
}
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr wanted, unsigned long long flags) {
    CALL(" %zu %zu %llu %llu", size, alignment, wanted, flags);
    *address = (uintptr_t)aligned_alloc(64 << 10, size);
    return made_of((void *)(uintptr_t)*address, RANGE, size);
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
    CALL(" %s %zu", AT(address), size);
    CUresult result = gone((void *)(uintptr_t)address, RANGE);
    if (!result) free((void *)(uintptr_t)address);
    return result;
}
CUresult cuMemCreate(unsigned long long *handle, size_t size, const struct properties *of, unsigned long long flags) {
    CALL(" %zu kind %u handles %u location %u device %u flags %llu", size, of->kind, of->handles, of->location, of->device, flags);
    if (size > 1 << 28) return 2;
    *handle = next_handle++;
    return made((void *)(uintptr_t)*handle, PHYSICAL);
}
CUresult cuMemRelease(unsigned long long handle) { CALL(" %s", AT(handle)); return gone((void *)(uintptr_t)handle, PHYSICAL); }
CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, unsigned long long handle, unsigned long long flags) {
    CALL(" %s %zu %zu %s %llu", AT(address), size, offset, AT(handle), flags);
    return made_of((void *)(uintptr_t)address, MAPPING, size);
}
CUresult cuMemUnmap(CUdeviceptr address, size_t size) { CALL(" %s %zu", AT(address), size); return gone((void *)(uintptr_t)address, MAPPING); }
CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const struct access *all, size_t count) {
    char line[128] = "";
    for (size_t i = 0, end = 0; i < count; i++)
        end += snprintf(line + end, sizeof line - end, " device %u:%u may %u", all[i].location, all[i].device, all[i].flags);
    CALL(" %s %zu%s", AT(address), size, line);
    return 0;
}
CUresult cuMemExportToShareableHandle(int *file, unsigned long long handle, unsigned kind, unsigned long long flags) {
    CALL(" %s %u %llu", AT(handle), kind, flags);
    *file = dup(0);
    return *file < 0 ? 1 : 0;
}
CUresult cuMemImportFromShareableHandle(unsigned long long *handle, void *file, unsigned kind) {
    CALL(" %u", kind);
    if (lseek((int)(intptr_t)file, 0, SEEK_CUR) < 0 && !isatty((int)(intptr_t)file) && dup2((int)(intptr_t)file, (int)(intptr_t)file) < 0) return 1;
    *handle = next_handle++;
    return made((void *)(uintptr_t)*handle, PHYSICAL);
}

/* ---- other processes ---- */

struct name { char bytes[64]; };

CUresult cuIpcGetMemHandle(struct name *name, CUdeviceptr address) { CALL(" %s", AT(address)); memset(name, 0, 64), memcpy(name, &address, 8); return 0; }
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, struct name name, unsigned flags) {
    CALL(" %s %u", AT(*(CUdeviceptr *)name.bytes), flags);
    memcpy(address, &name, 8);
    return made((void *)(uintptr_t)*address, IPC_MEMORY);
}
CUresult cuIpcCloseMemHandle(CUdeviceptr address) { CALL(" %s", AT(address)); return gone((void *)(uintptr_t)address, IPC_MEMORY); }
CUresult cuIpcGetEventHandle(struct name *name, void *event) { CALL(" %s", of(event)); memset(name, 0xee, 64); return 0; }
CUresult cuIpcOpenEventHandle(void **event, struct name name) { CALL(" %02x", (unsigned char)name.bytes[63]); return handle(event, EVENT); }

/* ---- libraries ---- */

CUresult cuLibraryLoadData(void **library, const void *image, int *options, void **values, unsigned count, int *more, void **others, unsigned number) {
    size_t size = image_size(image);
    CUresult failed = call(__func__, " %zu %u %u", size, count, number);
    if (failed) {
        if (count == 2 && options[0] == 5) snprintf(values[0], (size_t)values[1], "ptxas stub: line 1; what is wrong\n");
        return failed;
    }
    return load(library, image, size, LIBRARY);
}
CUresult cuLibraryUnload(void *handle) {
    CALL(" %s", of(handle));
    struct module *module = handle;
    CUresult result = gone(module, LIBRARY);
    if (!result) free(module->image), free(module);
    return result;
}
CUresult cuLibraryGetKernel(void **kernel, void *library, const char *name) { CALL(" %s %s", of(library), name); return function_of(kernel, library, name); }
CUresult cuKernelGetFunction(void **function, void *kernel) { CALL(" %s", name_of(kernel)); *function = kernel; return 0; }
CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, struct module *library, const char *name) {
    CALL(" %s %s", of(library), name);
    if (!memmem(library->image, library->size, name, strlen(name))) return 500;
    *address = (CUdeviceptr)(uintptr_t)library->image, *size = 16;
    return 0;
}

/* ---- occupancy ---- */

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared) { CALL(" %s %d %zu", name_of(function), threads, shared); *blocks = 8; return 0; }
CUresult cuOccupancyMaxPotentialBlockSize(int *blocks, int *threads, void *function, void *shared_of, size_t shared, int limit) {
    CALL(" %s %zu %d%s", name_of(function), shared, limit, shared_of ? " function" : "");
    *blocks = 264, *threads = 768;
    return 0;
}
CUresult cuOccupancyMaxActiveClusters(int *clusters, void *function, const struct config *config) { CALL(" %s %ux%ux%u %ux%ux%u %u, %u attributes", name_of(function), config->grid[0], config->grid[1], config->grid[2], config->block[0],
         config->block[1], config->block[2], config->shared, config->count); *clusters = 66; return 0; }

/* ---- tensor maps: what was asked for, as far as it can be counted ---- */

static void words64(char *line, size_t size, const char *what, const unsigned long long *all, unsigned count) {
    size_t end = snprintf(line, size, " %s", what);
    for (unsigned i = 0; i < count && end < size; i++) end += snprintf(line + end, size - end, "%c%llu", i ? ',' : ' ', all[i]);
}
static void words32(char *line, size_t size, const char *what, const int *all, unsigned count) {
    size_t end = snprintf(line, size, " %s", what);
    for (unsigned i = 0; i < count && end < size; i++) end += snprintf(line + end, size - end, "%c%d", i ? ',' : ' ', all[i]);
}
CUresult cuTensorMapEncodeTiled(unsigned long long *map, unsigned kind, unsigned rank, void *address, unsigned long long *sizes, unsigned long long *strides,
                                int *tile, int *steps, unsigned interleave, unsigned swizzle, unsigned promotion, unsigned fill) {
    char a[256], b[256], c[256], d[256];
    words64(a, 256, "sizes", sizes, rank), words64(b, 256, "strides", strides, rank - 1), words32(c, 256, "box", tile, rank), words32(d, 256, "steps", steps, rank);
    CALL(" type %u %s%s%s%s%s interleave %u swizzle %u promotion %u fill %u%s", kind, of(address), a, b, c, d, interleave, swizzle, promotion, fill,
         (uintptr_t)map % 64 ? " NOT ALIGNED" : "");
    memset(map, 0x77, 128), map[0] = (uintptr_t)address;
    return 0;
}
CUresult cuTensorMapEncodeIm2col(unsigned long long *map, unsigned kind, unsigned rank, void *address, unsigned long long *sizes, unsigned long long *strides,
                                 int *lower, int *upper, unsigned channels, unsigned pixels, int *steps, unsigned interleave, unsigned swizzle,
                                 unsigned promotion, unsigned fill) {
    char a[256], b[256], c[256], d[256], e[256];
    words64(a, 256, "sizes", sizes, rank), words64(b, 256, "strides", strides, rank - 1), words32(c, 256, "lower", lower, rank - 2);
    words32(d, 256, "upper", upper, rank - 2), words32(e, 256, "steps", steps, rank);
    CALL(" type %u %s%s%s%s%s%s channels %u pixels %u interleave %u swizzle %u promotion %u fill %u", kind, of(address), a, b, c, d, e, channels, pixels, interleave,
         swizzle, promotion, fill);
    memset(map, 0x66, 128), map[0] = (uintptr_t)address;
    return 0;
}
CUresult cuTensorMapReplaceAddress(unsigned long long *map, void *address) { CALL(" %s", of(address)); map[0] = (uintptr_t)address; return 0; }
