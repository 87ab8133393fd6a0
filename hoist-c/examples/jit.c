/*
 * A JIT compiler for expressions: a C compiler makes an object of one, hoist loads it, and it is a function of this program.
 *
 *     cc jit.c $(pkg-config --cflags --libs hoist) -lm -o jit
 *     ./jit 'x * x + sqrt(x)' 1 4 9
 *
 * It prints 2, 18 and 84.
 */
#include <hoist.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Compiles an expression of `x` to an object at `path`. */
static int compile(const char *expression, const char *path) {
    char command[4400];
    snprintf(command, sizeof command, "cc -O2 -fPIC -x c -c -o '%s' -", path);
    FILE *compiler = popen(command, "w");
    if (compiler == NULL) {
        return 1;
    }
    fprintf(compiler, "#include <math.h>\ndouble f(double x) { return %s; }\n", expression);
    return pclose(compiler);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: jit EXPRESSION [X...]\n");
        return 2;
    }
    char path[] = "/tmp/hoist-jit-XXXXXX";
    int file = mkstemp(path);
    if (file < 0 || compile(argv[1], path) != 0) {
        fprintf(stderr, "jit: the expression does not compile\n");
        return 1;
    }
    hoist_error *error = NULL;
    hoist_module *module = NULL;
    hoist_function function = NULL;
    hoist_status status = hoist_load_file(path, &module, &error);
    close(file);
    unlink(path);
    if (status == HOIST_STATUS_OK) {
        status = hoist_module_function(module, "f", &function, &error);
    }
    if (status != HOIST_STATUS_OK) {
        fprintf(stderr, "jit: %s\n", hoist_error_message(error));
        hoist_error_free(error);
        return 1;
    }
    double (*f)(double) = (double (*)(double))function;
    for (int i = 2; i < argc; ++i) {
        printf("%g\n", f(atof(argv[i])));
    }
    hoist_module_free(module);
    return 0;
}
