/* What tests load: functions, variables, references, a constructor if asked for. */
#include <stdio.h>

int host_value(int which);

int count = 3;
static int hidden = 4;
const char greeting[] = "hello";
int zeros[1000];

int twice(int x) { return 2 * x; }
int next(void) { return ++count; }
int of_host(void) { return host_value(7) + hidden++; }
int printed(char *to, int room, int x) { return snprintf(to, (size_t)room, "<%d>", x); }

#ifdef WITH_CONSTRUCTOR
static int ready;
__attribute__((constructor)) static void make_ready(void) { ready = 1; }
int is_ready(void) { return ready; }
#endif
