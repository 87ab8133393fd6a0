/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Strings and constants that linkers merge (SHF_MERGE), and pointers into them; the second object is compiled with -DSECOND. */
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#ifdef SECOND
static const char *const strings[] = {"suffix of a string", "of a string", &"zzz"[1], &"string of b"[7]};
const char *second(int index) { return strings[index]; }
#else
const char *second(int index);
static const char *const strings[] = {"suffix of a string", "of a string", "a string", "string", ""};
struct pair { const char *one, *other; };
static const struct pair pairs[] = {{"string", &"suffix of a string"[10]}, {&"x"[1], &"yy"[1]}};
static const double numbers[] = {1.5, 2.5, 1.5};
static const wchar_t *const wide[] = {L"wide string", &L"wide string"[5]};

const char *tail(void) { return &"suffix of a string"[7]; }
const char *behind(void) { return &"another one to point into, far behind"[20]; }

int main(void)
{
    for (unsigned i = 0; i < 5; i++)
        printf("%s|", strings[i]);
    printf("\n%s %s %zu\n", tail(), behind(), wcslen(wide[0]) + wcslen(wide[1]));
    for (int i = 0; i < 4; i++)
        printf("%s|", second(i));
    for (int i = 0; i < 2; i++)
        printf("%s,%s;", pairs[i].one, pairs[i].other);
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += numbers[i] * 3.25;
    printf("%g\n", sum);
    switch (strlen(strings[1])) {
    case 11: puts("eleven"); break;
    default: puts("no");
    }
    return 0;
}
#endif
