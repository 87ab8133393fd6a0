/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What runs before and behind `main`, of two objects: the second one is compiled with -DSECOND. */
#include <stdio.h>
#include <stdlib.h>

#ifdef SECOND
#define OBJECT "second "
#else
#define OBJECT "first "
#endif
#define SAYS(name) static void name(void) { puts(OBJECT #name); fflush(stdout); }
/* A function in a section of functions that no attribute puts it in. */
#define IN(section, type, name) \
    __asm__(".section " section ",\"aw\"," type "\n.p2align 3\n.quad " #name "\n.text\n"); \
    __attribute__((used)) SAYS(name)

SAYS(at_exit)
SAYS(at_exit_too)
__attribute__((constructor)) static void constructor(void) { puts(OBJECT "constructor"); atexit(at_exit); }
__attribute__((constructor(200))) static void constructor_200(void) { puts(OBJECT "200"); atexit(at_exit_too); }
__attribute__((constructor(101))) SAYS(constructor_101)
__attribute__((destructor)) SAYS(destructor)
__attribute__((destructor(150))) SAYS(destructor_150)
IN(".preinit_array", "@preinit_array", before_all)
IN(".preinit_array", "@preinit_array", before_all_too)
IN(".ctors", "@progbits", ctors)
IN(".ctors", "@progbits", ctors_too)
IN(".ctors.65335", "@progbits", ctors_200)
IN(".ctors.65434", "@progbits", ctors_101)
IN(".init_array.00150", "@init_array", init_150)
IN(".init_array.00150", "@init_array", init_150_too)
IN(".init_array.65535", "@init_array", init_65535)
IN(".dtors", "@progbits", dtors)
IN(".dtors", "@progbits", dtors_too)
IN(".dtors.65385", "@progbits", dtors_150)
IN(".fini_array.00150", "@fini_array", fini_150)
IN(".fini_array", "@fini_array", fini)
IN(".fini_array", "@fini_array", fini_too)

#ifndef SECOND
int main(void) { puts("main"); return 0; }
#endif
