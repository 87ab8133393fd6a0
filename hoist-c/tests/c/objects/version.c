/* One function in two versions, and a variable that both use. */
int calls = 0;
int version(void) {
    ++calls;
    return VERSION;
}
