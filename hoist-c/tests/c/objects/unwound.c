/* A frame that cleans up when it is unwound. */
void unwind(void);
static void count(int **counter) { ++**counter; }
int through(int *counter) {
    __attribute__((cleanup(count))) int *mine = counter;
    unwind();
    return *mine;
}
