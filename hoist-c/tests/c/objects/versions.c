/* One name in two versions. */
int first(void) { return 1; }
int second(void) { return 2; }
__asm__(".symver first,value@V_1");
__asm__(".symver second,value@@V_2");
