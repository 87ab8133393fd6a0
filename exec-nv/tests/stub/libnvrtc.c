/* A stub of NVRTC for tests: it compiles nothing. SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A source that has the word "wrong" does not compile. Code for an architecture with "sm_" is the file HOIST_STUB_CUBIN, or the word CUBIN;
 * for one with "compute_" it is PTX. HOIST_STUB_NVRTC_FAIL=FUNCTION has a function fail; HOIST_STUB_LOG=FILE is told of calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program { int number; char *source; char *code; size_t size; int ptx; char log[256]; char lowered[8][64]; int names; };

static char fail_name[64];
static char text[1 << 16];
static int made, all_made;

void stub_nvrtc_fail(const char *name) { snprintf(fail_name, sizeof fail_name, "%s", name); }
const char *stub_nvrtc_text(void) { return text; }
void stub_nvrtc_forget(void) { text[0] = 0; }
int stub_nvrtc_left(void) { return made; }

static int call(const char *name, const char *more) {
    size_t used = strlen(text);
    if (used + strlen(name) + strlen(more) + 3 < sizeof text) sprintf(text + used, "%s%s\n", name, more);
    const char *log = getenv("HOIST_STUB_LOG"), *fail = getenv("HOIST_STUB_NVRTC_FAIL");
    if (log) {
        FILE *file = fopen(log, "a");
        if (file) fprintf(file, "%s%s\n", name, more), fclose(file);
    }
    return !strcmp(name, fail_name) || fail && !strcmp(name, fail) ? 11 : 0;
}
/* A call that is about a program, by its number. */
static int about(const char *name, const struct program *program, const char *more) {
    char line[600];
    snprintf(line, sizeof line, " program %d%s%s", program ? program->number : 0, *more ? " " : "", more);
    return call(name, line);
}
#define ABOUT(program, more) do { int failed = about(__func__, program, more); if (failed) return failed; } while (0)
#define CALL(more) do { int failed = call(__func__, more); if (failed) return failed; } while (0)

const char *nvrtcGetErrorString(int code) { return code == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INTERNAL_ERROR"; }
int nvrtcVersion(int *major, int *minor) { CALL(""); *major = 13, *minor = 0; return 0; }
int nvrtcGetNumSupportedArchs(int *count) { CALL(""); *count = 3; return 0; }
int nvrtcGetSupportedArchs(int *all) { CALL(""); all[0] = 75, all[1] = 80, all[2] = 90; return 0; }
int nvrtcCreateProgram(struct program **place, const char *source, const char *name, int count, const char **headers, const char **names) {
    char more[128];
    snprintf(more, sizeof more, " %s %d", name, count);
    CALL(more);
    struct program *program = *place = calloc(1, sizeof *program);
    program->source = strdup(source), program->number = ++all_made, made++;
    return 0;
}
int nvrtcDestroyProgram(struct program **place) {
    ABOUT(*place, "");
    free((*place)->source), free((*place)->code), free(*place), made--;
    return 0;
}
int nvrtcAddNameExpression(struct program *program, const char *name) {
    ABOUT(program, name);
    snprintf(program->lowered[program->names++ % 8], 64, "%s", name);
    return 0;
}
int nvrtcGetLoweredName(struct program *program, const char *name, const char **lowered) {
    ABOUT(program, name);
    for (int i = 0; i < program->names; i++)
        if (!strcmp(program->lowered[i], name)) {
            char *bracket = strchr(program->lowered[i], '<');
            if (bracket) *bracket = 'I';
            return *lowered = program->lowered[i], 0;
        }
    return 10;
}
int nvrtcCompileProgram(struct program *program, int count, const char **options) {
    char more[512] = "";
    for (int i = 0; i < count; i++) {
        snprintf(more + strlen(more), sizeof more - strlen(more), "%s%s", i ? " " : "", options[i]);
        if (strstr(options[i], "compute_")) program->ptx = 1;
    }
    ABOUT(program, more);
    if (strstr(program->source, "wrong")) {
        snprintf(program->log, sizeof program->log, "kernels.cu(1): error: what is wrong\n\n1 error detected\n");
        return 6;
    }
    const char *path = getenv("HOIST_STUB_CUBIN");
    FILE *file = path && !program->ptx ? fopen(path, "rb") : 0;
    program->code = calloc(1, 1 << 20);
    if (file) program->size = fread(program->code, 1, 1 << 20, file), fclose(file);
    else program->size = snprintf(program->code, 64, program->ptx ? ".version 8.0" : "CUBIN");
    return 0;
}
int nvrtcGetProgramLogSize(struct program *program, size_t *size) { ABOUT(program, ""); *size = strlen(program->log) + 1; return 0; }
int nvrtcGetProgramLog(struct program *program, char *log) { ABOUT(program, ""); strcpy(log, program->log); return 0; }
int nvrtcGetCUBINSize(struct program *program, size_t *size) { ABOUT(program, ""); *size = program->ptx ? 0 : program->size; return 0; }
int nvrtcGetCUBIN(struct program *program, char *code) { ABOUT(program, ""); memcpy(code, program->code, program->ptx ? 0 : program->size); return 0; }
int nvrtcGetPTXSize(struct program *program, size_t *size) { ABOUT(program, ""); *size = program->size + 1; return 0; }
int nvrtcGetPTX(struct program *program, char *code) { ABOUT(program, ""); memcpy(code, program->code, program->size + 1); return 0; }
