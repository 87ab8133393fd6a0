/* Uses what another object, a library or an archive defines. */
int base(int x);
int used(int x) { return base(x) + 1; }
