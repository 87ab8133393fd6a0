/* A library that calls what nobody has. */
int hoist_test_absent(void);
int now(void) { return 7; }
int later(void) { return hoist_test_absent(); }
