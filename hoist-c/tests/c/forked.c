/* forked THROWS.o: children of a process whose threads throw in loaded code take backtraces. */
#include "check.h"

#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*caught)(int);
static atomic_bool is_over;

static void *throw(void *unused) {
    while (!is_over) {
        CHECK(caught(5) < 0);
    }
    return unused;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    hoist_error *error = NULL;
    hoist_module *module = NULL;
    hoist_objects *objects = hoist_objects_new();
    hoist_symbols *symbols = hoist_symbols_new();
    OK(hoist_objects_add_file(objects, argv[1], &error));
    OK(hoist_symbols_add_system_library(symbols, "libstdc++.so.6", &error));
    OK(hoist_loader_load(NULL, objects, symbols, &module, &error));
    OK(hoist_module_initialize(module, &error));
    hoist_function function = NULL;
    OK(hoist_module_function(module, "caught", &function, &error));
    caught = (int (*)(int))function;
    void *frames[64];
    CHECK(backtrace(frames, 64) > 1);
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) {
        CHECK(pthread_create(&threads[i], NULL, throw, NULL) == 0);
    }
    for (int i = 0; i < 300; ++i) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            /* one that waits for a thread which is not there ends by this */
            alarm(10);
            _exit(backtrace(frames, 64) > 1 && caught(5) == -105 ? 0 : 1);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    is_over = true;
    for (int i = 0; i < 4; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    hoist_module_free(module);
    hoist_objects_free(objects);
    hoist_symbols_free(symbols);
    puts("ok");
    return 0;
}
