/* A program that calls the kernel as libcuda does, for a test of gpu-test/recorder.c: on a file that is no device.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count != 2) return 2;
    int file = open(words[1], O_RDWR);
    uint32_t parameters[3] = {0x11111111, 0x22222222, 0x33333333}, argument[12] = {1, 2, 3, 4};
    uint64_t address = (uintptr_t)parameters;
    memcpy(argument + 4, &address, 8);
    /* NVOS54: the size at 24; NVOS64: at 32 */
    argument[6] = 12;
    ioctl(file, 0xc020462aUL, argument);
    argument[6] = 0, argument[8] = 8;
    ioctl(file, 0xc030462bUL, argument);
    uint32_t *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), *other = mmap(0, 4096, PROT_READ, MAP_SHARED, file, 4096);
    if (page == MAP_FAILED || other == MAP_FAILED) return 3;
    page[0x8c / 4] = 0x4711;
    munmap(other, 4096);
    close(file);
    void (*dump)(const char *) = (void (*)(const char *))dlsym(RTLD_DEFAULT, "recorder_dump");
    if (!dump) return 4;
    dump("at the end");
    printf("done\n");
    return 0;
}
