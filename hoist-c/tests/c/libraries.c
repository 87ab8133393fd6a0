/* libraries LIBUSER.so LIBBASE.so BOTH.a LIBLAZY.so LIBVERSIONS.so NEAR.o BASE.o LIBORIGIN.so: libraries with options, observers, copy
 * relocations, files that are mapped. */
#include "check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*number)(int);

static hoist_function function_of(const hoist_library *library, const char *name) {
    hoist_error *error = NULL;
    hoist_function function = NULL;
    OK(hoist_library_function(library, name, &function, &error));
    return function;
}

/* What a program has inside of itself: members of an archive, or a library that was loaded. */
struct own {
    const hoist_archive *archive;
    const hoist_library *loaded;
    int asked, found;
};

static bool find(void *context, const char *name, hoist_needed_library *needed) {
    struct own *own = context;
    CHECK(needed->library == NULL && needed->data == NULL && needed->size == 0);
    ++own->asked;
    if (own->loaded != NULL && strcmp(name, "libbase.so") == 0) {
        needed->library = own->loaded;
        ++own->found;
        return true;
    }
    for (size_t index = 0; index < hoist_archive_member_count(own->archive); ++index) {
        hoist_error *error = NULL;
        const char *member = NULL;
        OK(hoist_archive_member(own->archive, index, &member, &needed->data, &needed->size, &error));
        if (strcmp(name, member) == 0) {
            ++own->found;
            return true;
        }
    }
    return false;
}

static bool find_nothing(void *context, const char *name, hoist_needed_library *needed) {
    (void)name;
    (void)needed;
    ++*(int *)context;
    /* found, it says, and writes nothing */
    return true;
}

struct told {
    int loaded, unloaded, functions, refused;
    char name[64];
    const void *base;
};

static bool loaded(void *context, const char *name, const hoist_observed_function_row *rows, size_t count, void **token) {
    struct told *told = context;
    CHECK(*token == NULL);
    ++told->loaded;
    snprintf(told->name, sizeof told->name, "%s", name);
    for (size_t index = 0; index < count; ++index) {
        CHECK(index == 0 || rows[index - 1].address <= rows[index].address);
        if (strcmp(rows[index].name, "base") == 0 && !rows[index].is_stub) {
            CHECK(rows[index].size > 0 && rows[index].object == 0);
            told->base = rows[index].address;
        }
    }
    told->functions += (int)count;
    *token = told;
    return !told->refused;
}

static void unloaded(void *context, void *token) {
    CHECK(token == context);
    ++((struct told *)context)->unloaded;
}

/* Members of an archive, one of which needs the other. */
static void inside_of_the_program(char **argv) {
    hoist_error *error = NULL;
    hoist_archive *archive = NULL;
    hoist_library *library = NULL, *base = NULL;
    hoist_library_loader *loader = hoist_library_loader_new();
    OK(hoist_archive_open(argv[3], &archive, &error));
    const char *name = NULL;
    const void *data = NULL;
    size_t size = 0;
    OK(hoist_archive_member(archive, 0, &name, &data, &size, &error));
    CHECK(strcmp(name, "libuser.so") == 0);
    struct own own = {archive, NULL, 0, 0};
    FAILS(LIBRARY, hoist_library_loader_open_memory(loader, data, size, NULL, &library, &error));
    CHECK(library == NULL && strstr(hoist_error_message(error), "libbase.so") != NULL);
    hoist_error_free(error);
    error = NULL;
    OK(hoist_library_loader_set_needed(loader, find, &own, &error));
    OK(hoist_library_loader_open_memory(loader, data, size, NULL, &library, &error));
    CHECK(own.found == 1 && ((number)function_of(library, "used"))(4) == 41);
    void *count = NULL;
    OK(hoist_library_address(library, "base_count", &count, &error));
    CHECK(*(int *)count == 1);
    hoist_library_free(library);

    /* one that is loaded already, which stays when its handle goes */
    OK(hoist_library_open_file(argv[2], NULL, 0, &base, &error));
    own.loaded = base;
    OK(hoist_library_address(base, "base_count", &count, &error));
    OK(hoist_library_loader_open_file(loader, argv[1], NULL, &library, &error));
    hoist_library_free(base);
    CHECK(own.found == 2 && ((number)function_of(library, "used"))(5) == 51 && *(int *)count == 1);
    hoist_library_free(library);

    int asked = 0;
    OK(hoist_library_loader_set_needed(loader, find_nothing, &asked, &error));
    FAILS(LIBRARY, hoist_library_loader_open_file(loader, argv[1], NULL, &library, &error));
    CHECK(asked == 1 && library == NULL);
    hoist_error_free(error);
    error = NULL;
    OK(hoist_library_loader_set_needed(loader, NULL, NULL, &error));
    FAILS(LIBRARY, hoist_library_loader_open_memory(loader, data, size, NULL, &library, &error));
    CHECK(asked == 1);
    hoist_error_free(error);
    hoist_library_loader_free(loader);
    hoist_archive_free(archive);
}

static void lazily(char **argv) {
    hoist_error *error = NULL;
    hoist_library *library = NULL;
    hoist_library_loader *loader = hoist_library_loader_new();
    FAILS(UNDEFINED_SYMBOL, hoist_library_loader_open_file(loader, argv[4], NULL, &library, &error));
    hoist_error_free(error);
    error = NULL;
    OK(hoist_library_loader_set_lazy(loader, true, &error));
    OK(hoist_library_loader_open_file(loader, argv[4], NULL, &library, &error));
    CHECK(((int (*)(void))function_of(library, "now"))() == 7);
    fflush(NULL);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(2);
        ((int (*)(void))function_of(library, "later"))();
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 127);
    hoist_library_free(library);

    OK(hoist_library_loader_set_limit(loader, 64, &error));
    FAILS(TOO_LARGE, hoist_library_loader_open_file(loader, argv[4], NULL, &library, &error));
    CHECK(info_of(error).maximum == 64);
    FAILS(INVALID_ARGUMENT, hoist_library_loader_open_file(NULL, argv[4], NULL, &library, &error));
    FAILS(INVALID_ARGUMENT, hoist_library_loader_set_origin(loader, NULL, &error));
    FAILS(FILE, hoist_library_loader_tell_jitdump(loader, "/absent/folder", &error));
    hoist_error_free(error);
    hoist_library_loader_free(loader);
}

static void by_version(char **argv) {
    hoist_error *error = NULL;
    hoist_library *library = NULL;
    hoist_function function = NULL;
    OK(hoist_library_open_file(argv[5], NULL, 0, &library, &error));
    CHECK(((int (*)(void))function_of(library, "value"))() == 2);
    OK(hoist_library_function_version(library, "value", "V_1", &function, &error));
    CHECK(((int (*)(void))function)() == 1);
    OK(hoist_library_function_version(library, "value", "V_2", &function, &error));
    CHECK(((int (*)(void))function)() == 2);
    FAILS(NOT_FOUND, hoist_library_function_version(library, "value", "V_3", &function, &error));
    CHECK(function == NULL);
    FAILS(INVALID_ARGUMENT, hoist_library_function_version(library, "value", NULL, &function, &error));
    hoist_error_free(error);
    hoist_library_free(library);
}

static void told(char **argv) {
    hoist_error *error = NULL;
    hoist_library *library = NULL;
    hoist_module *module = NULL;
    struct told all = {0};
    hoist_observer observer = {&all, loaded, unloaded};
    hoist_library_loader *libraries = hoist_library_loader_new();
    OK(hoist_library_loader_tell(libraries, &observer, &error));
    OK(hoist_library_loader_tell_gdb(libraries, &error));
    OK(hoist_library_loader_open_file(libraries, argv[2], NULL, &library, &error));
    CHECK(all.loaded == 1 && all.unloaded == 0 && all.functions >= 2 && strcmp(all.name, "libbase.so") == 0);
    CHECK(all.base == (const void *)(uintptr_t)function_of(library, "base"));
    hoist_library_free(library);
    CHECK(all.unloaded == 1);
    all.refused = 1;
    FAILS(OTHER, hoist_library_loader_open_file(libraries, argv[2], NULL, &library, &error));
    CHECK(library == NULL && all.loaded == 2 && strstr(hoist_error_message(error), "refuses") != NULL);
    hoist_error_free(error);
    error = NULL;
    hoist_library_loader_free(libraries);

    struct told objects = {0};
    observer.context = &objects;
    hoist_loader *loader = hoist_loader_new();
    OK(hoist_loader_tell(loader, &observer, &error));
    observer.loaded = NULL;
    FAILS(INVALID_ARGUMENT, hoist_loader_tell(loader, &observer, &error));
    FAILS(INVALID_ARGUMENT, hoist_loader_tell(loader, NULL, &error));
    hoist_error_free(error);
    error = NULL;
    hoist_objects *list = hoist_objects_new();
    OK(hoist_objects_add_file(list, argv[7], &error));
    OK(hoist_loader_load(loader, list, NULL, &module, &error));
    hoist_objects_free(list);
    hoist_loader_free(loader);
    hoist_function function = NULL;
    OK(hoist_module_function(module, "base", &function, &error));
    CHECK(objects.loaded == 1 && objects.base == (const void *)(uintptr_t)function && *objects.name == '\0');
    hoist_module_free(module);
    CHECK(objects.unloaded == 1);
}

static void copied(char **argv) {
#ifdef __x86_64__
    hoist_error *error = NULL;
    hoist_module *module = NULL;
    hoist_objects *objects = hoist_objects_new();
    hoist_symbols *symbols = hoist_symbols_new();
    OK(hoist_objects_add_file(objects, argv[6], &error));
    OK(hoist_symbols_add_system_library(symbols, argv[2], &error));
    void *handle = dlopen(argv[2], RTLD_NOW);
    CHECK(handle != NULL);
    /* under valgrind libraries are so low that it is reached where it is */
    if ((uintptr_t)dlsym(handle, "base_table") >> 31 == 0) {
        OK(hoist_loader_load(NULL, objects, symbols, &module, &error));
        hoist_module_free(module);
    } else {
        FAILS(RELOCATION, hoist_loader_load(NULL, objects, symbols, &module, &error));
        CHECK(strcmp(info_of(error).relocation, "R_X86_64_32S") == 0);
        hoist_error_free(error);
        error = NULL;
    }
    dlclose(handle);
    OK(hoist_symbols_set_copy_relocations(symbols, true, &error));
    OK(hoist_loader_load(NULL, objects, symbols, &module, &error));
    hoist_function set = NULL, at = NULL;
    OK(hoist_module_function(module, "near_set", &set, &error));
    OK(hoist_module_function(module, "near_at", &at, &error));
    CHECK(((number)at)(3) == 4);
    ((void (*)(int, int))set)(3, 40);
    CHECK(((number)at)(3) == 40);
    hoist_module_free(module);
    hoist_symbols_free(symbols);
    hoist_objects_free(objects);
#else
    (void)argv;
#endif
}

/* Whether pages of a file are in memory. */
static int is_mapped(const char *path) {
    char line[PATH_MAX + 128];
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    int is_there = 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        is_there |= strstr(line, path) != NULL;
    }
    fclose(maps);
    return is_there;
}

/* A library's pages are the file's, and stay when it is removed; what it needs is found beside it, whatever its path is. */
static void in_its_file(char **argv) {
    hoist_error *error = NULL;
    hoist_library *library = NULL;
    size_t size = 0;
    void *data = read_all(argv[2], &size);
    char path[] = "/tmp/hoist-mapped-XXXXXX";
    const int file = mkstemp(path);
    CHECK(file >= 0 && write(file, data, size) == (ssize_t)size && close(file) == 0);
    OK(hoist_library_open_file(path, NULL, 0, &library, &error));
    CHECK(is_mapped(path));
    CHECK(unlink(path) == 0 && ((number)function_of(library, "base"))(3) == 30);
    hoist_library_free(library);
    CHECK(!is_mapped(path));
    OK(hoist_library_open_memory(data, size, NULL, 0, &library, &error));
    free(data);
    hoist_library_free(library);

    char before[PATH_MAX], folder[PATH_MAX];
    CHECK(getcwd(before, sizeof before) != NULL && strlen(argv[8]) < sizeof folder);
    strcpy(folder, argv[8]);
    char *name = strrchr(folder, '/');
    CHECK(name != NULL);
    *name++ = '\0';
    CHECK(chdir(folder) == 0);
    OK(hoist_library_open_file(name, NULL, 0, &library, &error));
    CHECK(((number)function_of(library, "used"))(4) == 41);
    hoist_library_free(library);
    hoist_library_loader *loader = hoist_library_loader_new();
    OK(hoist_library_loader_set_origin(loader, ".", &error));
    CHECK(chdir(before) == 0);
    data = read_all(argv[8], &size);
    OK(hoist_library_loader_open_memory(loader, data, size, NULL, &library, &error));
    hoist_library_free(library);
    FAILS(FILE, hoist_library_loader_set_origin(loader, "", &error));
    FAILS(LIBRARY, hoist_library_open_file(argv[1], NULL, 0, &library, &error));
    CHECK(strstr(hoist_error_message(error), argv[1]) != NULL && strcmp(info_of(error).file, "libbase.so") == 0);
    hoist_error_free(error);
    free(data);
    hoist_library_loader_free(loader);
}

int main(int argc, char **argv) {
    CHECK(argc == 9);
    in_its_file(argv);
    inside_of_the_program(argv);
    lazily(argv);
    by_version(argv);
    told(argv);
    copied(argv);
    puts("ok");
    return 0;
}
