/* Parts of the stub for what came to the driver later: pools, graphs, virtual memory, other processes, libraries, tensor maps.
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
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, void *of_pool, void *stream) {
    CALL(" %zu %s %s", size, pool_word(of_pool), of(stream));
    return take(address, size, ASYNC_MEMORY);
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

CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, struct link **state) { CALL("%s", options_words(count, options, values)); *state = calloc(1, sizeof **state); return made(*state, LINKER); }
CUresult cuLinkAddData_v2(struct link *state, unsigned kind, void *data, size_t size, const char *name, unsigned count, int *options, void **values) {
    CALL(" %s %u %s %s%s", of(state), kind, image_words(data, size), name, options_words(count, options, values));
    state->bytes = data, state->size = size;
    return 0;
}
CUresult cuLinkComplete(struct link *state, void **cubin, size_t *size) { CALL(" %s", of(state)); *cubin = state->bytes, *size = state->size; return 0; }
CUresult cuLinkDestroy(void *state) { CALL(" %s", of(state)); return drop(state, LINKER); }

/* ---- graphs ---- */

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

CUresult cuStreamBeginCapture_v2(struct stream *stream, unsigned mode) { CALL(" %s %u", of(stream), mode); stream->captures = stream, stream->last = stream->others = stream->graph.nodes = 0; return 0; }
static CUresult new_graph(struct graph **graph, const struct graph *as) {
    *graph = calloc(1, sizeof **graph);
    if (as) **graph = *as;
    return made(*graph, GRAPH);
}
CUresult cuStreamEndCapture(struct stream *stream, struct graph **graph) {
    int apart = 0;
    for (int i = 0; i < stream->others; i++) apart |= stream->joined[i]->is_apart, stream->joined[i]->captures = 0, stream->joined[i]->is_apart = 0;
    stream->captures = 0, stream->others = 0;
    CALL(" %s", of(stream));
    return apart ? 904 /* CUDA_ERROR_STREAM_CAPTURE_UNJOINED */ : new_graph(graph, &stream->graph);
}
CUresult cuGraphCreate(struct graph **graph, unsigned flags) { CALL(" %u", flags); return new_graph(graph, 0); }
CUresult cuGraphDestroy(void *graph) { CALL(" %s", of(graph)); return drop(graph, GRAPH); }
/* CU_GRAPH_NODE_TYPE_KERNEL, _MEMCPY, _MEMSET, _GRAPH, _EMPTY, by the kinds above. */
static unsigned char node_kinds[sizeof nodes];
static const unsigned node_types[] = {5, 0, 1, 2, 4};
CUresult cuGraphNodeGetType(char *node, unsigned *type) { CALL(" %s", node_word(node)); *type = node_types[node_kinds[node - nodes]]; return 0; }
CUresult cuGraphDestroyNode(CUgraphNode node) { CALL(" %s", node_word(node)); return 0; }
CUresult cuGraphGetNodes(struct graph *graph, CUgraphNode *found, size_t *count) {
    CALL(" %s %s", of(graph), found ? "all" : "number");
    if (!found) { *count = graph->nodes; return 0; }
    for (size_t i = 0; i < *count && i < graph->nodes; i++) {
        if (!graph->of[i].address) graph->of[i].address = nodes + node_count, node_kinds[node_count++] = graph->of[i].kind;
        found[i] = graph->of[i].address;
    }
    return 0;
}
static CUresult add_node(CUgraphNode *node, struct graph *graph, CUgraphNode *after, size_t count, int kind) {
    int index = graph->nodes;
    if (index == MOST_NODES) return 2;
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++) {
        int found = 0;
        for (int other = 0; other < index; other++)
            if (graph->of[other].address == after[i]) sum += node_number(other), found = 1;
        if (!found) return 1; /* CUDA_ERROR_INVALID_VALUE: a node of another graph */
    }
    graph->of[index].kind = kind, graph->of[index].after = sum, *node = graph->of[index].address = nodes + node_count, node_kinds[node_count++] = kind;
    graph->nodes++;
    return 0;
}
CUresult cuGraphAddEmptyNode(CUgraphNode *node, struct graph *graph, CUgraphNode *after, size_t count) { CALL(" %s", after_words(graph, after, count)); return add_node(node, graph, after, count, EMPTY_NODE); }
struct kernel_node { struct function *function; unsigned grid[3], block[3], shared; void **values, **extra; void *kernel, *context; };
static void kernel_words(char *line, size_t size, const struct kernel_node *one) {
    snprintf(line, size, " %s %ux%ux%u %ux%ux%u %u%s extra %s kernel %s %s", one->function->name, one->grid[0], one->grid[1], one->grid[2],
             one->block[0], one->block[1], one->block[2], one->shared, parameters(one->function, one->values), of(one->extra), of(one->kernel),
             one->context ? of(one->context) : "no context");
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, struct graph *graph, CUgraphNode *after, size_t count, const struct kernel_node *one) {
    char line[3500];
    kernel_words(line, sizeof line, one);
    CALL(" %s%s", after_words(graph, after, count), line);
    return add_node(node, graph, after, count, KERNEL_NODE);
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int attribute, const unsigned *value) { CALL(" %s %s", node_word(node), attribute_words(attribute, value)); return 0; }
/* CUDA_MEMCPY3D: twice x, y, z, level, type, host, device, array, reserved, pitch, height; then the size. */
struct copy_end { size_t x, y, z, level; unsigned type; void *host; CUdeviceptr device; void *array, *reserved; size_t pitch, height; };
struct copy_node { struct copy_end from, to; size_t width, height, depth; };
static int copy_end_words(char *line, size_t size, const struct copy_end *end) {
    return snprintf(line, size, " %zu,%zu,%zu level %zu type %u host %s device %s array %s%s pitch %zu height %zu", end->x, end->y, end->z, end->level, end->type,
                    of(end->host), AT(end->device), of(end->array), end->reserved ? " RESERVED" : "", end->pitch, end->height);
}
CUresult cuGraphAddMemcpyNode(CUgraphNode *node, struct graph *graph, CUgraphNode *after, size_t count, const struct copy_node *one, void *context) {
    char line[1024];
    size_t end = copy_end_words(line, sizeof line, &one->from);
    end += snprintf(line + end, sizeof line - end, " to"), end += copy_end_words(line + end, sizeof line - end, &one->to);
    snprintf(line + end, sizeof line - end, " size %zux%zux%zu %s", one->width, one->height, one->depth, of(context));
    CALL(" %s%s", after_words(graph, after, count), line);
    return add_node(node, graph, after, count, COPY_NODE);
}
struct fill_node { CUdeviceptr to; size_t pitch; unsigned value, size; size_t width, height; };
CUresult cuGraphAddMemsetNode(CUgraphNode *node, struct graph *graph, CUgraphNode *after, size_t count, const struct fill_node *one, void *context) {
    char line[128];
    snprintf(line, sizeof line, " %s pitch %zu value %u of %u, %zux%zu %s", AT(one->to), one->pitch, one->value, one->size, one->width, one->height, of(context));
    CALL(" %s%s", after_words(graph, after, count), line);
    return add_node(node, graph, after, count, FILL_NODE);
}
CUresult cuGraphInstantiateWithFlags(struct graph **ready, struct graph *graph, unsigned long long flags) {
    CALL(" %s %llu", of(graph), flags);
    *ready = malloc(sizeof **ready);
    **ready = *graph;
    return made(*ready, GRAPH_EXEC);
}
CUresult cuGraphExecDestroy(void *ready) { CALL(" %s", of(ready)); return drop(ready, GRAPH_EXEC); }
CUresult cuGraphUpload(void *ready, void *stream) { CALL(" %s %s", of(ready), of(stream)); return 0; }
CUresult cuGraphLaunch(void *ready, void *stream) { CALL(" %s %s", of(ready), of(stream)); captured(stream, GRAPH_NODE); return 0; }
CUresult cuGraphExecKernelNodeSetParams_v2(void *ready, CUgraphNode node, const struct kernel_node *one) {
    char line[3500];
    kernel_words(line, sizeof line, one);
    CALL(" %s %s%s", of(ready), node_word(node), line);
    return 0;
}
struct outcome { unsigned result; CUgraphNode node, from; };
CUresult cuGraphExecUpdate_v2(struct graph *ready, struct graph *graph, struct outcome *outcome) {
    CALL(" %s %s", of(ready), of(graph));
    int least = ready->nodes < graph->nodes ? ready->nodes : graph->nodes, at = 0;
    while (at < least && ready->of[at].kind == graph->of[at].kind && ready->of[at].after == graph->of[at].after) at++;
    if (at == ready->nodes && at == graph->nodes) return 0;
    /* CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, or _TOPOLOGY_CHANGED */
    outcome->result = ready->nodes == graph->nodes && ready->of[at].kind != graph->of[at].kind ? 3 : 2;
    outcome->node = at < graph->nodes ? graph->of[at].address : 0, outcome->from = 0;
    return 910; /* CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE */
}

/* ---- virtual memory: handles are numbers, and memory is there as soon as its addresses ---- */

static unsigned long long next_handle = 0x1000;
struct properties { unsigned kind, handles, location, device; void *metadata; unsigned char compression, direct; unsigned short usage; unsigned char reserved[4]; };
static const char *properties_words(const struct properties *of) {
    static char line[256];
    unsigned reserved = of->reserved[0] | of->reserved[1] | of->reserved[2] | of->reserved[3];
    snprintf(line, sizeof line, "kind %u handles %u location %u device %u metadata %s compression %u direct %u usage %u%s", of->kind, of->handles, of->location,
             of->device, of->metadata ? "some" : "none", of->compression, of->direct, of->usage, reserved ? " RESERVED" : "");
    return line;
}

CUresult cuMemGetAllocationGranularity(size_t *size, const struct properties *of, unsigned option) {
    CALL(" %s option %u", properties_words(of), option);
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
    CALL(" %zu %s flags %llu", size, properties_words(of), flags);
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
    char words[48];
    snprintf(words, sizeof words, "physical memory of a stub: %s", AT(handle));
    *file = memfd_create("physical", MFD_CLOEXEC);
    return *file < 0 || write(*file, words, sizeof words) < 0 ? 1 : 0;
}
CUresult cuMemImportFromShareableHandle(unsigned long long *handle, void *file, unsigned kind) {
    char words[48] = "";
    const char *start = "physical memory of a stub: ";
    pread((int)(intptr_t)file, words, sizeof words - 1, 0);
    int known = !strncmp(words, start, strlen(start));
    CALL(" %s %u", known ? words + strlen(start) : "what is no memory", kind);
    if (!known) return 1; /* CUDA_ERROR_INVALID_VALUE */
    *handle = next_handle++;
    return made((void *)(uintptr_t)*handle, PHYSICAL);
}

/* ---- other processes ---- */

/* A name is whose it is, what it is, and in words what has it. What is one's own cannot be opened: CUDA_ERROR_INVALID_CONTEXT. */
struct name { int process, kind; char words[56]; };
static void name_it(struct name *name, int kind, const char *words) {
    memset(name, 0, sizeof *name);
    name->process = getpid(), name->kind = kind;
    snprintf(name->words, sizeof name->words, "%s", words);
}
static CUresult check_name(const struct name *name, int kind) { return name->kind != kind ? 1 : name->process == getpid() ? 201 : 0; }

CUresult cuIpcGetMemHandle(struct name *name, CUdeviceptr address) { CALL(" %s", AT(address)); name_it(name, IPC_MEMORY, AT(address)); return 0; }
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, struct name name, unsigned flags) {
    CALL(" %s %u", name.words, flags);
    CUresult refused = check_name(&name, IPC_MEMORY);
    return refused ? refused : take(address, 1 << 16, IPC_MEMORY);
}
CUresult cuIpcCloseMemHandle(CUdeviceptr address) { CALL(" %s", AT(address)); return give((void *)(uintptr_t)address, IPC_MEMORY); }
CUresult cuIpcGetEventHandle(struct name *name, void *event) { CALL(" %s", of(event)); name_it(name, EVENT, of(event)); return 0; }
CUresult cuIpcOpenEventHandle(void **event, struct name name) {
    CALL(" %s", name.words);
    CUresult refused = check_name(&name, EVENT);
    return refused ? refused : made(*event = calloc(1, sizeof(struct event)), EVENT);
}

/* ---- libraries ---- */

CUresult cuLibraryLoadData(void **library, const void *image, int *options, void **values, unsigned count, int *more, void **others, unsigned number) {
    size_t size = image_size(image);
    CUresult failed = call(__func__, " %s%s%s", image_words(image, size), options_words(count, options, values), options_words(number, more, others));
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
CUresult cuOccupancyMaxActiveClusters(int *clusters, void *function, const struct config *config) { CALL(" %s %s", name_of(function), config_words(config)); *clusters = 66; return 0; }

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
CUresult cuTensorMapEncodeIm2colWide(unsigned long long *map, unsigned kind, unsigned rank, void *address, unsigned long long *sizes, unsigned long long *strides,
                                     int lower, int upper, unsigned channels, unsigned pixels, int *steps, unsigned interleave, unsigned mode,
                                     unsigned swizzle, unsigned promotion, unsigned fill) {
    char a[256], b[256], c[256];
    words64(a, 256, "sizes", sizes, rank), words64(b, 256, "strides", strides, rank - 1), words32(c, 256, "steps", steps, rank);
    CALL(" type %u %s%s%s lower %d upper %d%s channels %u pixels %u interleave %u mode %u swizzle %u promotion %u fill %u", kind, of(address), a, b, lower,
         upper, c, channels, pixels, interleave, mode, swizzle, promotion, fill);
    memset(map, 0x55, 128), map[0] = (uintptr_t)address;
    return 0;
}
CUresult cuTensorMapReplaceAddress(unsigned long long *map, void *address) { CALL(" %s", of(address)); map[0] = (uintptr_t)address; return 0; }
