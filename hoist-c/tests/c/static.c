/* static PLUGIN.o UNWOUND.o THREADS.o NEAR.o PLAIN.so NEEDS.so: in a program that is linked statically. What is loaded gets its symbols from
 * the program, which names them; NEAR.o wants its thread-local variables near the thread pointer. */
#include "check.h"

#include <pthread.h>
#include <setjmp.h>
#include <unwind.h>

static int host_value(int which) { return which * 100; }

static jmp_buf back;
static int frames;

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                struct _Unwind_Exception *exception, struct _Unwind_Context *context, void *here) {
    (void)version, (void)actions, (void)class, (void)exception;
    ++frames;
    if (_Unwind_GetCFA(context) > (_Unwind_Word)here) {
        longjmp(back, 1);
    }
    return _URC_NO_REASON;
}

static uintptr_t wanted_start, wanted_end, seen;

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *main_seen) {
    uintptr_t address = _Unwind_GetIP(context);
    seen += address >= wanted_start && address < wanted_end;
    *(int *)main_seen += seen != 0;
    return _URC_NO_REASON;
}

static void *landing;

/* Unwinds to the frame of `main`, through whatever called this. */
static void unwind(void) {
    static struct _Unwind_Exception exception;
    int frames_from_load = 0;
    _Unwind_Backtrace(look, &frames_from_load);
    CHECK(seen == 1 && frames_from_load >= 2);
    _Unwind_ForcedUnwind(&exception, stop, landing);
    CHECK(!"the end of the stack was met first");
}

extern void __gcc_personality_v0(void);

typedef void (*function)(void);

/* What the program has, by name. */
static hoist_symbols *own(void) {
    hoist_error *error = NULL;
    hoist_symbols *symbols = hoist_symbols_new();
    /* a program without a dynamic loader shows nothing by itself */
    OK(hoist_symbols_add_process(symbols, &error));
    const struct {
        const char *name;
        function at;
    } all[] = {
        {"host_value", (function)host_value},
        {"snprintf", (function)snprintf},
        {"unwind", unwind},
        {"_Unwind_Resume", (function)_Unwind_Resume},
        {"__gcc_personality_v0", __gcc_personality_v0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        OK(hoist_symbols_define(symbols, all[i].name, (uint64_t)(uintptr_t)all[i].at, HOIST_DEFINITION_FUNCTION, &error));
    }
    return symbols;
}

static hoist_status load(const char *path, hoist_module **module, hoist_error **error) {
    hoist_objects *objects = hoist_objects_new();
    hoist_symbols *symbols = own();
    hoist_status status = hoist_objects_add_file(objects, path, error);
    CHECK(status == HOIST_STATUS_OK);
    status = hoist_loader_load(NULL, objects, symbols, module, error);
    hoist_objects_free(objects);
    hoist_symbols_free(symbols);
    return status;
}

static void *bump(void *function) {
    int (*call)(void) = *(int (**)(void))function;
    return (void *)(intptr_t)(call() * 100 + call());
}

/* Each thread has variables of its own, those that were there before the load, too; or the error says what there is not. */
static int threads(const char *path) {
    hoist_error *error = NULL;
    hoist_module *module = NULL;
    hoist_function function = NULL;
    hoist_status status = load(path, &module, &error);
    if (status != HOIST_STATUS_OK) {
        CHECK(failed(HOIST_STATUS_THREAD_LOCAL, status, error));
        fprintf(stderr, "%s\n", hoist_error_message(error));
        hoist_error_free(error);
        return 0;
    }
    OK(hoist_module_function(module, "bump", &function, &error));
    int (*call)(void) = (int (*)(void))function;
    for (int round = 0; round < 3; ++round) {
        pthread_t thread;
        void *result = NULL;
        CHECK(pthread_create(&thread, NULL, bump, &call) == 0 && pthread_join(thread, &result) == 0);
        CHECK((intptr_t)result == 608);
        CHECK(call() == 6 + 2 * round);
    }
    hoist_module_free(module);
    return 1;
}

/* Whether a message names what cannot be had, and why. */
static void is_honest(const hoist_error *error, const char *name) {
    const char *message = hoist_error_message(error);
    fprintf(stderr, "%s\n", message);
    CHECK(strstr(message, name) != NULL && strstr(message, "linked statically") != NULL);
}

int main(int argc, char **argv) {
    CHECK(argc == 7);
    hoist_error *error = NULL;
    hoist_module *module = NULL;
    hoist_function function = NULL;
    OK(load(argv[1], &module, &error));
    OK(hoist_module_function(module, "of_host", &function, &error));
    CHECK(((int (*)(void))function)() == 704);
    char text[16];
    OK(hoist_module_function(module, "printed", &function, &error));
    CHECK(((int (*)(char *, int, int))function)(text, sizeof text, -5) == 4 && strcmp(text, "<-5>") == 0);
    hoist_module_free(module);

    OK(load(argv[2], &module, &error));
    OK(hoist_module_function(module, "through", &function, &error));
    wanted_start = (uintptr_t)function;
    wanted_end = wanted_start + 64;
    int counter = 0;
    landing = __builtin_frame_address(0);
    if (setjmp(back) == 0) {
        ((int (*)(int *))function)(&counter);
        CHECK(!"unwound");
    }
    CHECK(counter == 1 && frames >= 3);
    hoist_module_free(module);

    int kinds = threads(argv[3]);
    kinds += threads(argv[4]);

    /* a library that needs nothing */
    hoist_library *library = NULL;
    OK(hoist_library_open_file(argv[5], NULL, 0, &library, &error));
    OK(hoist_library_function(library, "base", &function, &error));
    CHECK(((int (*)(int))function)(4) == 40);
    hoist_library_free(library);
    FAILS(LIBRARY, hoist_library_open_file(argv[6], NULL, 0, &library, &error));
    is_honest(error, "libc.so");
    hoist_symbols *symbols = hoist_symbols_new();
    FAILS(LIBRARY, hoist_symbols_add_system_library(symbols, "libm.so.6", &error));
    is_honest(error, "libm.so.6");
    hoist_symbols_free(symbols);
    hoist_error_free(error);
    printf("%d kinds of thread-local variables\nok\n", kinds);
    return 0;
}
