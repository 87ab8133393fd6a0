/* A stub of the CUDA driver's library for tests: no GPU, no driver. SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * It records calls, keeps count of what was made and not given back, and can fail at the n-th call of any function. Device
 * memory is memory of the process; kernels do not run: a launch is recorded with its parameters, as the cubin describes them.
 *
 * A line is a function and its arguments in their order, but for places where it puts something; of an image, its size and a hash of its
 * bytes; of an option, its number and value. What was made has the number that it has
 * among its kind ("stream 2"), an address in it how far in it is ("memory 1+64"); null is "none", and any other address "host".
 *
 * Tests call stub_*; programs are steered by the environment:
 *   HOIST_STUB_FAIL=FUNCTION:CODE[:N]   HOIST_STUB_LOG=FILE   HOIST_STUB_VERSION=13000   HOIST_STUB_DEVICES=1   HOIST_STUB_SM=90
 *   HOIST_STUB_ABORT=FUNCTION, which ends the process   HOIST_STUB_HANG=FUNCTION, which never ends
 */
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;

/* One after the other: each uses what is before it. */
#include "records.h"
#include "device.h"
#include "memory.h"
#include "streams.h"
#include "modules.h"
#include "newer.h"
