/* Part of the stub: modules, and launches of their functions.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */

/* `dynamic` is how much shared memory a launch may ask for (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES); of a library's it has no context. */
struct function { char name[512]; const unsigned char *info; size_t size; unsigned registers, rows[64], dynamic; void *context; };
static const char *name_of(const struct function *function) { return function ? function->name : "none"; }
struct module { unsigned char *image; size_t size; void *context; struct function functions[64]; int count; };

static size_t image_size(const unsigned char *image) {
    const Elf64_Ehdr *header = (const void *)image;
    if (memcmp(image, "\177ELF", 4)) return strlen((const char *)image) + 1;
    size_t end = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    const Elf64_Shdr *sections = (const void *)(image + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type != SHT_NOBITS && sections[i].sh_type < 0x70000000 && sections[i].sh_offset + sections[i].sh_size > end)
            end = sections[i].sh_offset + sections[i].sh_size;
    return end;
}
/* Size and bytes of an image, as a line has them: a hash (FNV-1a) for the bytes. */
static const char *image_words(const unsigned char *image, size_t size) {
    static char line[64];
    unsigned long long hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++) hash = (hash ^ image[i]) * 0x100000001b3;
    snprintf(line, sizeof line, "%zu bytes %016llx", size, hash);
    return line;
}
/* Options of the driver's compiler, number and value of each: logs (3, 5) are places, the rest is numbers. */
static const char *options_words(unsigned count, const int *options, void **values) {
    static char lines[4][256];
    static unsigned next;
    char *line = lines[next++ % 4];
    size_t end = snprintf(line, sizeof lines[0], " %u options", count);
    for (unsigned i = 0; i < count && end < sizeof lines[0]; i++) {
        if (options[i] == 3 || options[i] == 5) end += snprintf(line + end, sizeof lines[0] - end, " %d:%s", options[i], of(values[i]));
        else end += snprintf(line + end, sizeof lines[0] - end, " %d:%zu", options[i], (size_t)values[i]);
    }
    return line;
}
static CUresult load(void **place, const void *image, size_t size, int kind) {
    struct module *module = calloc(1, sizeof *module);
    module->image = malloc(size), module->size = size;
    memcpy(module->image, image, size);
    module->context = kind == MODULE ? current : 0;
    *place = module;
    return made_of(module, kind, sizeof *module);
}
CUresult cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    size_t size = image_size(image);
    CUresult failed = call(__func__, " %s%s", image_words(image, size), options_words(count, options, values));
    if (failed) {
        if (count == 2 && options[0] == 5) snprintf(values[0], (size_t)values[1], "ptxas stub: line 1; what is wrong\n");
        return failed;
    }
    return load(module, image, size, MODULE);
}
CUresult cuModuleLoadData(void **module, const void *image) {
    size_t size = image_size(image);
    CALL(" %s", image_words(image, size));
    return load(module, image, size, MODULE);
}
CUresult cuModuleUnload(void *handle) {
    CALL(" %s", of(handle));
    struct module *module = handle;
    CUresult result = gone(module, MODULE);
    if (!result) free(module->image), free(module);
    return result;
}
/* Rows of EIATTR_KPARAM_INFO of a kernel in PTX, which is not compiled: what is between the parentheses behind its name. */
static size_t ptx_parameters(const char *text, const char *name, unsigned *rows) {
    char entry[600];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    const char *at = strstr(text, entry), *end = at ? strchr(at, ')') : 0;
    unsigned count = 0, place = 0;
    while (end && (at = strstr(at + 1, ".param ")) && at < end && count < 16) {
        unsigned bits = 8, align = 0, many = 1;
        char type[16], word[600];
        at += 7;
        if (sscanf(at, ".align %u", &align) == 1) at = strchr(at + 1, '.');
        sscanf(at, ".%15[a-z0-9]", type), sscanf(type, "%*c%u", &bits);
        if (sscanf(at, "%*s %599[^,)]", word) == 1 && strchr(word, '[')) many = atoi(strchr(word, '[') + 1);
        unsigned size = bits / 8 * many;
        if (!align) align = size;
        place = (place + align - 1) / align * align;
        rows[4 * count] = 4 | 0x17 << 8 | 12 << 16, rows[4 * count + 1] = 0;
        rows[4 * count + 2] = count | place << 16, rows[4 * count + 3] = size << 18;
        count++, place += size;
    }
    return 16 * count;
}

static CUresult function_of(void **found, void *handle, const char *name) {
    struct module *module = handle;
    /* who asks again gets the same */
    for (int i = 0; i < module->count; i++)
        if (!strcmp(module->functions[i].name, name)) return *found = &module->functions[i], 0;
    if (!memmem(module->image, module->size, name, strlen(name)) || module->count == 64) return 500;
    struct function *function = &module->functions[module->count++];
    memset(function, 0, sizeof *function);
    snprintf(function->name, sizeof function->name, "%s", name);
    function->dynamic = 48 << 10, function->context = module->context;
    if (memcmp(module->image, "\177ELF", 4)) {
        function->size = ptx_parameters((const char *)module->image, name, function->rows), function->info = (const void *)function->rows;
    } else {
        const Elf64_Ehdr *header = (const void *)module->image;
        const Elf64_Shdr *sections = (const void *)(module->image + header->e_shoff);
        const char *names = (const char *)module->image + sections[header->e_shstrndx].sh_offset;
        for (int i = 0; i < header->e_shnum; i++)
            if (!strncmp(names + sections[i].sh_name, ".nv.info.", 9) && !strcmp(names + sections[i].sh_name + 9, name))
                function->info = module->image + sections[i].sh_offset, function->size = sections[i].sh_size;
    }
    *found = function;
    return 0;
}
CUresult cuModuleGetFunction(void **found, void *handle, const char *name) {
    CALL(" %s %s", of(handle), name);
    return function_of(found, handle, name);
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, void *handle, const char *name) {
    CALL(" %s %s", of(handle), name);
    struct module *module = handle;
    if (!memmem(module->image, module->size, name, strlen(name))) return 500;
    *address = (CUdeviceptr)(uintptr_t)module->image, *size = 16;
    return 0;
}

/* The parameter of this ordinal in .nv.info.K: EIATTR_KPARAM_INFO, EIATTR_KPARAM_INFO_V2. */
static int parameter(const struct function *function, unsigned ordinal, unsigned *offset, unsigned *size) {
    for (size_t at = 0; at + 4 <= function->size;) {
        const unsigned char *row = function->info + at;
        unsigned length = row[0] == 4 ? row[2] | row[3] << 8 : 0, words[3];
        if ((row[1] == 0x17 || row[1] == 0x45) && length == 12) {
            memcpy(words, row + 4, 12);
            *offset = words[1] >> 16, *size = row[1] == 0x17 ? words[2] >> 18 : words[2] & 0xffff;
            if ((words[1] & 0xffff) == ordinal) return 1;
        }
        at += 4 + length;
    }
    return 0;
}
CUresult cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *size) {
    unsigned at, bytes;
    CALL(" %s %zu", name_of(function), index);
    if (!parameter(function, index, &at, &bytes)) return 1;
    *offset = at, *size = bytes;
    return 0;
}
CUresult cuFuncGetAttribute(int *value, int attribute, void *function) { CALL(" %d %s", attribute, name_of(function)); *value = 7; return 0; }
CUresult cuFuncSetAttribute(struct function *function, int attribute, int value) {
    CALL(" %s %d %d", name_of(function), attribute, value);
    if (attribute == 8) function->dynamic = value;
    return 0;
}
/* Whether a function can be launched so: in a stream of its context, with no more shared memory than it may have. */
static CUresult launchable(const struct function *function, const struct stream *stream, unsigned shared) {
    if (function->context && stream && stream->context != function->context) return 400; /* CUDA_ERROR_INVALID_HANDLE */
    return shared > function->dynamic ? 1 : 0; /* CUDA_ERROR_INVALID_VALUE */
}

/* Parameters as "OFFSET:HEX", an address of what was made as "OFFSET:(memory 1)". */
static char *parameters(const struct function *function, void **values) {
    static char line[3072];
    size_t end = 0;
    unsigned at, size;
    line[0] = 0;
    for (unsigned i = 0; parameter(function, i, &at, &size) && end < sizeof line - 64; i++) {
        end += snprintf(line + end, sizeof line - end, " %u:", at);
        void *address = 0;
        if (size == 8) memcpy(&address, values[i], 8);
        if (address && strcmp(of(address), "host")) {
            end += snprintf(line + end, sizeof line - end, "(%s)", of(address));
            continue;
        }
        for (unsigned byte = 0; byte < size && end < sizeof line - 64; byte++)
            end += snprintf(line + end, sizeof line - end, "%02x", ((unsigned char *)values[i])[byte]);
    }
    return line;
}
CUresult cuLaunchKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, void *stream, void **values, void **extra) {
    CALL(" %s %ux%ux%u %ux%ux%u %u %s%s%s", function->name, gx, gy, gz, bx, by, bz, shared, of(stream), parameters(function, values),
         extra ? " extra" : "");
    CUresult refused = launchable(function, stream, shared);
    if (!refused) captured(stream, KERNEL_NODE);
    return refused;
}
struct attribute { int id; char pad[4]; unsigned value[16]; };
struct config { unsigned grid[3], block[3], shared; void *stream; struct attribute *attributes; unsigned count; };
/* Attributes of a launch: the words of each as far as they are not zero, of which a priority is signed; a cooperative launch (2) is 1. */
static const char *attribute_words(int id, const unsigned *value) {
    static char line[256];
    int count = 16, end = snprintf(line, sizeof line, id == 2 && value[0] == 1 ? "%d" : "%d %d", id, (int)value[0]);
    if (id == 4) end = snprintf(line, sizeof line, "cluster %ux%ux%u", value[0], value[1], value[2]);
    while (count > (id == 4 ? 3 : 1) && !value[count - 1]) count--;
    for (int i = id == 4 ? 3 : 1; i < count; i++) end += snprintf(line + end, sizeof line - end, ",%u", value[i]);
    return line;
}
static const char *config_words(const struct config *config) {
    static char line[1024];
    size_t end = snprintf(line, sizeof line, "%ux%ux%u %ux%ux%u %u %s", config->grid[0], config->grid[1], config->grid[2], config->block[0],
                          config->block[1], config->block[2], config->shared, of(config->stream));
    for (unsigned i = 0; i < config->count && end < sizeof line; i++) {
        const struct attribute *one = &config->attributes[i];
        end += snprintf(line + end, sizeof line - end, "%s%s", one->id == 4 ? " " : " attribute ", attribute_words(one->id, one->value));
    }
    return line;
}
CUresult cuLaunchKernelEx(const struct config *config, struct function *function, void **values, void **extra) {
    CALL(" %s %s%s%s", function->name, config_words(config), parameters(function, values), extra ? " extra" : "");
    CUresult refused = launchable(function, config->stream, config->shared);
    if (!refused) captured(config->stream, KERNEL_NODE);
    return refused;
}
