int base_count = 0;
int base(int x) {
    ++base_count;
    return 10 * x;
}
