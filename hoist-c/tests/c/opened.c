/* opened LIBHOIST.so OBJECT.o LIBRARY.so NAME...: the library, opened as plug-ins are, has its unwinder for itself. What throws by that of the library
 * of C++ NAME, whose unwinder is another one, is caught: an object, one in an arena, and a library. */
#include "check.h"

#include <dlfcn.h>

static void *hoist;

/* A function of the library by its name; its type is that of the one in the header. */
#define OF(name) ((__typeof__(&name))(uintptr_t)dlsym(hoist, #name))

int main(int argc, char **argv) {
    CHECK(argc > 3);
    hoist = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(hoist != NULL);
    hoist_symbols *symbols = OF(hoist_symbols_new)();
    for (int i = 4; i < argc; ++i) {
        CHECK(OF(hoist_symbols_add_system_library)(symbols, argv[i], NULL) == HOIST_STATUS_OK);
    }
    hoist_objects *objects = OF(hoist_objects_new)();
    CHECK(OF(hoist_objects_add_file)(objects, argv[2], NULL) == HOIST_STATUS_OK);
    hoist_loader *loader = OF(hoist_loader_new)();
    for (int in_arena = 0; in_arena < 2; ++in_arena) {
        CHECK(!in_arena || OF(hoist_loader_use_arena)(loader, NULL) == HOIST_STATUS_OK);
        hoist_module *module = NULL;
        hoist_function caught = NULL;
        CHECK(OF(hoist_loader_load)(loader, objects, symbols, &module, NULL) == HOIST_STATUS_OK);
        CHECK(OF(hoist_module_initialize)(module, NULL) == HOIST_STATUS_OK);
        CHECK(OF(hoist_module_function)(module, "caught", &caught, NULL) == HOIST_STATUS_OK);
        CHECK(((int (*)(int))caught)(4) == 5 && ((int (*)(int))caught)(5) == -105);
        OF(hoist_module_free)(module);
    }
    hoist_library *library = NULL;
    hoist_function caught = NULL;
    CHECK(OF(hoist_library_open_file)(argv[3], NULL, 0, &library, NULL) == HOIST_STATUS_OK);
    CHECK(OF(hoist_library_function)(library, "caught", &caught, NULL) == HOIST_STATUS_OK);
    CHECK(((int (*)(int))caught)(4) == 5 && ((int (*)(int))caught)(5) == -105);
    OF(hoist_library_free)(library);
    OF(hoist_loader_free)(loader);
    OF(hoist_objects_free)(objects);
    OF(hoist_symbols_free)(symbols);
    puts("ok");
    return 0;
}
