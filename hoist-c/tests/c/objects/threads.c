/* Thread-local variables. */
#ifndef MODEL
#define MODEL "global-dynamic"
#endif
static __thread __attribute__((tls_model(MODEL))) int own = 5;
__thread __attribute__((tls_model(MODEL))) int shown[40];
int bump(void) { return own++ + ++shown[3]; }
