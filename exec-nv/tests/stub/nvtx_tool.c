/* A tool for NVTX 3, for tests: writes what it is told into HOIST_STUB_LOG. SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * With HOIST_STUB_NVTX=domains it takes functions with a domain only, as some tools do; with none it wants no ranges.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct attributes { uint16_t version, size; uint32_t category; int32_t color_type; uint32_t color; int32_t payload_type, reserved;
                    uint64_t payload; int32_t message_type; const char *message; };

static void say(const char *what, const char *name) {
    FILE *file = fopen(getenv("HOIST_STUB_LOG"), "a");
    if (file) fprintf(file, "nvtx %s %s\n", what, name), fclose(file);
}
static int push(const char *name) { say("push", name); return 0; }
static int pop(void) { say("pop", ""); return 0; }
static void mark(const char *name) { say("mark", name); }
static int domain_push(void *domain, const struct attributes *all) {
    int fine = !domain && all->version == 3 && all->size == sizeof *all && all->message_type == 1;
    say(fine ? "domain push" : "BAD", all->message);
    return 0;
}
static int domain_pop(void *domain) { say("domain pop", ""); return 0; }
static void begin(const void *reserved) { say("begin", ""); }

typedef void (*function)(void);
struct version_info { size_t size; uint32_t version, reserved; void (*tell)(uint32_t version); };
struct callbacks { size_t size; int (*table)(int module, function ***table, unsigned *size); };

int InitializeInjectionNvtx2(const void *(*export)(uint32_t)) {
    const char *kind = getenv("HOIST_STUB_NVTX");
    const struct callbacks *callbacks = export(1);
    function **core = 0, **core2 = 0;
    unsigned size = 0;
    if (kind && !strcmp(kind, "none")) return 0;
    if (!callbacks || export(77) || callbacks->size < sizeof *callbacks || callbacks->table(2, &core, &size)) return 0;
    const struct version_info *versions = export(3);
    if (!versions || versions->size < sizeof *versions || versions->version != 3) return 0;
    versions->tell(3);
    if (!callbacks->table(5, &core2, &size) || size < 16) return 0;
    *core2[15] = (function)begin;
    if (kind && !strcmp(kind, "domains")) {
        *core2[4] = (function)domain_push, *core2[5] = (function)domain_pop;
        return 1;
    }
    if (!callbacks->table(1, &core, &size) || size < 16) return 0;
    *core[2] = (function)mark, *core[9] = (function)push, *core[11] = (function)pop;
    return 1;
}
