/* Part of the stub: what was called, what there is, and what is to fail.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */

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

/* Threads of a test may call beside each other: what is recorded is one's at a time. */
static int busy;
static void lock(void) { while (__sync_lock_test_and_set(&busy, 1)) usleep(10); }
static void unlock(void) { __sync_lock_release(&busy); }

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
    lock();
    if (used + size < sizeof text) memcpy(text + used, line, size + 1), used += size;
    unlock();
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
    lock();
    live[live_count].what = what, live[live_count].kind = kind, live[live_count].size = size ? size : 1;
    live[live_count].number = ++numbers[kind], live[live_count++].made = ++all_made;
    unlock();
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
    int found = 0;
    lock();
    for (size_t i = 0; i < live_count && !found; i++)
        if (live[i].what == what && live[i].kind == kind) live[i] = live[--live_count], found = 1;
    if (!found) wrong++;
    unlock();
    return found ? 0 : 400; /* CUDA_ERROR_INVALID_HANDLE */
}
