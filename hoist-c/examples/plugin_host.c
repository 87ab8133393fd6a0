/*
 * A host whose plug-in changes while it runs: the plug-in is compiled anew and takes the place of the old one, whose variables stay.
 *
 *     cc plugin_host.c $(pkg-config --cflags --libs hoist) -o plugin_host
 *     ./plugin_host
 *
 * It prints:
 *
 *     count 1: 10 + 1
 *     count 2: 10 + 2
 *     changed
 *     count 3: 10 * 3
 *     count 4: 10 * 4
 */
#include <hoist.h>

#include <stdio.h>
#include <stdlib.h>

/* What the plug-in calls of the host. */
static int ten(void) { return 10; }

/* The plug-in, before and after. */
static const char *const sources[] = {
    "int ten(void); int count; int step(char *t, int n) { ++count; return snprintf(t, n, \"%d + %d\", ten(), count); }",
    "int ten(void); int count; int step(char *t, int n) { ++count; return snprintf(t, n, \"%d * %d\", ten(), count); }",
};

/* Ends the program if something went wrong. */
static void must(hoist_status status, hoist_error **error) {
    if (status != HOIST_STATUS_OK) {
        fprintf(stderr, "plugin_host: %s\n", hoist_error_message(*error));
        exit(1);
    }
}

/* Compiles a source, and reads the object. The caller frees the bytes. */
static void *compile(const char *source, const char *folder, size_t *size) {
    char path[4096], command[8300];
    snprintf(path, sizeof path, "%s/plugin.o", folder);
    snprintf(command, sizeof command, "cc -O1 -fPIC -include stdio.h -x c -c -o '%s' -", path);
    FILE *compiler = popen(command, "w");
    if (compiler == NULL || fputs(source, compiler) == EOF || pclose(compiler) != 0) {
        fprintf(stderr, "plugin_host: the plug-in does not compile\n");
        exit(1);
    }
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    void *data = malloc(1 << 20);
    *size = data != NULL ? fread(data, 1, 1 << 20, file) : 0;
    fclose(file);
    return data;
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "/tmp";
    hoist_error *error = NULL;
    size_t size = 0;

    /* calls go through stubs, which can be led elsewhere */
    hoist_loader *loader = hoist_loader_new();
    must(hoist_loader_set_replaceable(loader, true, &error), &error);
    hoist_symbols *symbols = hoist_symbols_new();
    must(hoist_symbols_define(symbols, "ten", (uint64_t)(uintptr_t)ten, HOIST_DEFINITION_FUNCTION, &error), &error);
    must(hoist_symbols_add_process(symbols, &error), &error);

    hoist_objects *objects = hoist_objects_new();
    void *data = compile(sources[0], folder, &size);
    must(hoist_objects_add_memory(objects, "plugin.c", data, size, &error), &error);
    free(data);
    hoist_module *plugin = NULL;
    must(hoist_loader_load(loader, objects, symbols, &plugin, &error), &error);
    hoist_function function = NULL;
    must(hoist_module_function(plugin, "step", &function, &error), &error);
    int (*step)(char *, int) = (int (*)(char *, int))function;

    hoist_module *changed = NULL;
    hoist_replacement *replacement = NULL;
    for (int turn = 1; turn <= 4; ++turn) {
        if (turn == 3) {
            /* the new code uses the variables of the old one: they come first among its symbols */
            hoist_objects *anew = hoist_objects_new();
            hoist_symbols *kept = hoist_symbols_new();
            data = compile(sources[1], folder, &size);
            must(hoist_objects_add_keeping_data(anew, "plugin.c", data, size, plugin, &error), &error);
            free(data);
            must(hoist_symbols_add_module(kept, plugin, &error), &error);
            must(hoist_symbols_define(kept, "ten", (uint64_t)(uintptr_t)ten, HOIST_DEFINITION_FUNCTION, &error), &error);
            must(hoist_symbols_add_process(kept, &error), &error);
            must(hoist_loader_load(loader, anew, kept, &changed, &error), &error);
            must(hoist_module_replace(plugin, "step", changed, &replacement, &error), &error);
            hoist_objects_free(anew);
            hoist_symbols_free(kept);
            puts("changed");
        }
        char text[64];
        step(text, sizeof text);
        printf("count %d: %s\n", turn, text);
    }

    hoist_replacement_free(replacement);
    hoist_module_free(changed);
    hoist_module_free(plugin);
    hoist_objects_free(objects);
    hoist_symbols_free(symbols);
    hoist_loader_free(loader);
    return 0;
}
