/* Writes down what a program tells the NVIDIA kernel driver: LD_PRELOAD=recorder.so RECORDER_LOG=FILE PROGRAM.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One line for each open, ioctl and mapping of a file whose name begins with RECORDER_PREFIX (/dev/nvidia): the ioctl's number and the
 * first bytes of its argument before and after. Build: cc -shared -fPIC -O2 -o recorder.so recorder.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

/* Files that are looked at, by number. */
static char watched[1024];

static void say(const char *format, ...) {
    static int log = -1;
    char line[1024];
    va_list list;
    const char *path = getenv("RECORDER_LOG");
    if (log < 0) log = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : 2;
    va_start(list, format);
    int size = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (size > 0 && write(log, line, size < (int)sizeof line ? size : (int)sizeof line - 1) < 0) log = 2;
}

static int seen(int file, const char *path) {
    const char *prefix = getenv("RECORDER_PREFIX");
    if (!prefix) prefix = "/dev/nvidia";
    if (file >= 0 && file < (int)sizeof watched) {
        watched[file] = path && !strncmp(path, prefix, strlen(prefix));
        if (watched[file]) say("open %s = %d\n", path, file);
    }
    return file;
}
static int is_watched(int file) { return file >= 0 && file < (int)sizeof watched && watched[file]; }

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list list; va_start(list, flags); mode = va_arg(list, int); va_end(list); }

int open(const char *path, int flags, ...) { MODE(flags) return seen(NEXT(open)(path, flags, mode), path); }
int open64(const char *path, int flags, ...) { MODE(flags) return seen(NEXT(open64)(path, flags, mode), path); }
int openat(int folder, const char *path, int flags, ...) { MODE(flags) return seen(NEXT(openat)(folder, path, flags, mode), path); }
int openat64(int folder, const char *path, int flags, ...) { MODE(flags) return seen(NEXT(openat64)(folder, path, flags, mode), path); }
int close(int file) {
    if (is_watched(file)) say("close %d\n", file), watched[file] = 0;
    return NEXT(close)(file);
}

/* The size is in the number, as _IOC has it; UVM's numbers have none. */
static void bytes(char *out, const unsigned char *from, unsigned long request) {
    unsigned size = request >> 16 & 0x3fff;
    if (!size) size = request > 0xff ? 0 : 64;
    for (unsigned i = 0; from && i < size && i < 128; i++) out += sprintf(out, "%02x", from[i]);
    *out = 0;
}
int ioctl(int file, unsigned long request, ...) {
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (!is_watched(file)) return NEXT(ioctl)(file, request, argument);
    char before[257], after[257];
    bytes(before, argument, request);
    int result = NEXT(ioctl)(file, request, argument);
    bytes(after, argument, request);
    say("ioctl %d %#lx = %d %s -> %s\n", file, request, result, before, after);
    return result;
}
void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    void *result = NEXT(mmap)(address, size, protection, flags, file, offset);
    if (is_watched(file)) say("mmap %d %#zx at %#lx = %p\n", file, size, (long)offset, result);
    return result;
}
void *mmap64(void *address, size_t size, int protection, int flags, int file, off64_t offset) {
    void *result = NEXT(mmap64)(address, size, protection, flags, file, offset);
    if (is_watched(file)) say("mmap %d %#zx at %#lx = %p\n", file, size, (long)offset, result);
    return result;
}
