/* Part of the stub: streams, what they capture, and events.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */

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
struct stream { struct stream *captures, *joined[8]; int others, is_apart; unsigned last; void *context; struct graph graph; };
/* An event, and where it was recorded in a capture. */
struct event { struct stream *captures, *stream; unsigned after; void *context; };
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
    struct stream *one = *stream = calloc(1, sizeof(struct stream));
    one->context = current;
    return made(one, STREAM);
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
    int is_apart = stream->captures != event->captures && (stream->captures || event->captures->others == 8);
    /* what others do during the call comes after it */
    if (stream->captures != event->captures && !is_apart) {
        stream->captures = event->captures, stream->last = 0;
        event->captures->joined[event->captures->others++] = stream;
    }
    CALL(" %s %s %u", of(stream), of(event), flags);
    if (is_apart) return 905; /* CUDA_ERROR_STREAM_CAPTURE_ISOLATION */
    if (!event->captures) return 0;
    stream->last += event->after, stream->is_apart = stream != event->captures;
    if (event->stream->last == event->after) event->stream->is_apart = 0;
    return 0;
}
CUresult cuEventCreate(struct event **event, unsigned flags) {
    CALL(" %u", flags);
    *event = calloc(1, sizeof **event);
    (*event)->context = current;
    return made(*event, EVENT);
}
CUresult cuEventDestroy_v2(void *event) { CALL(" %s", of(event)); return drop(event, EVENT); }
CUresult cuEventRecord(struct event *event, struct stream *stream) {
    CALL(" %s %s", of(event), of(stream));
    if (event->context && event->context != stream->context) return 400; /* CUDA_ERROR_INVALID_HANDLE */
    event->captures = stream->captures, event->stream = stream, event->after = stream->last;
    return 0;
}
CUresult cuEventQuery(void *event) { CALL(" %s", of(event)); return 0; }
CUresult cuEventSynchronize(void *event) { CALL(" %s", of(event)); return 0; }
CUresult cuEventElapsedTime(float *milliseconds, void *start, void *end) { CALL(" %s %s", of(start), of(end)); *milliseconds = 1.5f; return 0; }
