/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* More zeros than distances of 32 bits span. */
#include <stdio.h>

static char large[3ul << 30], larger[2ul << 30];
char other[1 << 20];
int small = 7;

__attribute__((noinline)) char *at(unsigned long index) { return large + index; }

int main(void)
{
    *at((3ul << 30) - 1) = 5;
    larger[(2ul << 30) - 1] = 6;
    other[5] = 3;
    printf("%d %d %d %d\n", *at((3ul << 30) - 1), larger[(2ul << 30) - 1], other[5], small);
    return 0;
}
