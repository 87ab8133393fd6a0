/* Without -fPIC: an index is added to the array's address, which has 32 bits (R_X86_64_32S). */
extern int base_table[4];
int base_at(int index);
void near_set(int index, int value) { base_table[index] = value; }
int near_at(int index) { return base_at(index); }
