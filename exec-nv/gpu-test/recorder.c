/* Writes down what a program tells the NVIDIA kernel driver: LD_PRELOAD=recorder.so RECORDER_LOG=FILE PROGRAM.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One line for each open, ioctl and mapping of a file whose name begins with RECORDER_PREFIX (/dev/nvidia): the ioctl's number and the
 * first bytes of its argument before and after, and of the parameters that allocations (NVOS21, NVOS64) and controls (NVOS54) point to.
 * A program that finds recorder_dump by dlsym has the mappings written down as they are then, but for memory that UVM manages: rings,
 * push buffers, launch blocks, control pages and the doorbell's page, as far as the process sees them.
 * Build: cc -shared -fPIC -O2 -o recorder.so recorder.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

/* Files that are looked at, by number: 1 those of UVM, 2 others. */
static char watched[1024];
/* What is mapped of the others. */
static struct { char *start; size_t size; } mapped[4096];
static int used, lock;
static void enter(void) { while (__sync_lock_test_and_set(&lock, 1)) usleep(10); }
static void leave(void) { __sync_lock_release(&lock); }

static void say(const char *format, ...) {
    static int log = -1;
    char line[4096];
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
        watched[file] = !path || strncmp(path, prefix, strlen(prefix)) ? 0 : strstr(path, "uvm") ? 1 : 2;
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

#define MOST 512
static void bytes(char *out, const unsigned char *from, unsigned size) {
    for (unsigned i = 0; from && i < size && i < MOST; i++) out += sprintf(out, "%02x", from[i]);
    *out = 0;
}
/* The size is in the number, as _IOC has it; UVM's numbers have none. */
static unsigned size_of(unsigned long request) {
    unsigned size = request >> 16 & 0x3fff;
    return size ? size : request > 0xff ? 0 : 64;
}
/* The parameters that an allocation or a control of the resource manager points to, and how many bytes they have. */
static const unsigned char *parameters(const void *argument, unsigned long request, unsigned *size) {
    unsigned all = size_of(request), number = request & 0xff, at = number == 0x2b && all >= 48 ? 32 : 24;
    uint64_t address;
    *size = 0;
    if (!argument || (request >> 8 & 0xff) != 'F' || (number != 0x2a && number != 0x2b) || all < at + 4) return 0;
    memcpy(&address, (const char *)argument + 16, 8);
    memcpy(size, (const char *)argument + at, 4);
    return (const unsigned char *)(uintptr_t)address;
}
int ioctl(int file, unsigned long request, ...) {
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (!is_watched(file)) return NEXT(ioctl)(file, request, argument);
    char before[2 * MOST + 1], after[2 * MOST + 1], in[2 * MOST + 1], out[2 * MOST + 1];
    unsigned size;
    const unsigned char *pointed = parameters(argument, request, &size);
    bytes(before, argument, size_of(request));
    bytes(in, pointed, size);
    int result = NEXT(ioctl)(file, request, argument);
    bytes(after, argument, size_of(request));
    bytes(out, pointed, size);
    say("ioctl %d %#lx = %d %s -> %s\n", file, request, result, before, after);
    if (pointed && size) say("parameters of %u bytes: %s -> %s\n", size, in, out);
    return result;
}
static void *map(void *result, size_t size, int protection, int file, long offset) {
    if (!is_watched(file)) return result;
    say("mmap %d %#zx at %#lx = %p\n", file, size, offset, result);
    enter();
    if (result != MAP_FAILED && protection & PROT_READ && watched[file] == 2 && used < (int)(sizeof mapped / sizeof *mapped))
        mapped[used].start = result, mapped[used++].size = size;
    leave();
    return result;
}
void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    return map(NEXT(mmap)(address, size, protection, flags, file, offset), size, protection, file, (long)offset);
}
void *mmap64(void *address, size_t size, int protection, int flags, int file, off64_t offset) {
    return map(NEXT(mmap64)(address, size, protection, flags, file, offset), size, protection, file, (long)offset);
}
int munmap(void *address, size_t size) {
    char *start = address, *end = start + size;
    enter();
    for (int i = used; i-- > 0;)
        if (mapped[i].start < end && start < mapped[i].start + mapped[i].size) {
            say("munmap %p %#zx\n", address, size);
            mapped[i] = mapped[--used];
        }
    leave();
    return NEXT(munmap)(address, size);
}

/* Rows of 8 words that are not all zero, of mappings that are not too large, and at most so many rows. */
#define LARGEST (4 << 20)
#define ROWS 60000
void recorder_dump(const char *why) {
    int rows = 0;
    enter();
    for (int i = 0; i < used; i++) {
        say("dump %s: %p %#zx%s\n", why, (void *)mapped[i].start, mapped[i].size, mapped[i].size > LARGEST ? ", left out" : "");
        if (mapped[i].size > LARGEST) continue;
        for (size_t at = 0; at + 32 <= mapped[i].size && rows < ROWS; at += 32) {
            uint32_t words[8], any = 0;
            for (int word = 0; word < 8; word++) {
                /* pages of devices are read word by word */
                words[word] = ((volatile uint32_t *)(mapped[i].start + at))[word];
                any |= words[word];
            }
            if (any && ++rows)
                say("%#zx: %08x %08x %08x %08x %08x %08x %08x %08x\n", at, words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7]);
        }
    }
    say("dump %s: %d rows%s\n", why, rows, rows == ROWS ? ", and no more" : "");
    leave();
}
