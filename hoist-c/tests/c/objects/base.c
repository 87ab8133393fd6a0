int base_count = 0;
int base(int x) {
    ++base_count;
    return 10 * x;
}

int base_table[4] = {1, 2, 3, 4};
int base_at(int index) { return base_table[index]; }
