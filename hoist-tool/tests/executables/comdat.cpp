// SPDX-License-Identifier: MIT OR Apache-2.0
// What both objects have, and one copy is kept of: code, tables, variables, unwinding tables. The second one is compiled with -DSECOND.
#include <cstdio>
#include <stdexcept>

template <class T> struct Counter {
    static int count;
    static const char *const names[3];
    virtual ~Counter() { count++; }
    virtual T next(T x)
    {
        if (x > 100)
            throw std::runtime_error("too much");
        static T last = 5;
        T result = last + x;
        last = x;
        return result;
    }
};
template <class T> int Counter<T>::count = 7;
template <class T> const char *const Counter<T>::names[3] = {"a", "b", "c"};

inline int by_table(int i)
{
    static int (*const table[])(int) = {[](int x) { return x + 1; }, [](int x) { return x * 2; }};
    return table[i & 1](i);
}
inline int by_case(int x)
{
    switch (x) {
    case 0: return 10;
    case 1: return 20;
    case 2: return 35;
    case 3: return 47;
    case 4: return 51;
    case 5: return 66;
    default: return -1;
    }
}
inline thread_local int in_thread = 40;

static int use(int x)
{
    Counter<int> counter;
    int result = counter.next(x);
    try {
        counter.next(200);
    } catch (const std::exception &error) {
        std::printf("%s %d\n", error.what(), in_thread++);
    }
    return result + by_table(x) + by_case(x) + Counter<int>::count;
}

#ifdef SECOND
int second(int x) { return use(x); }
#else
int second(int x);
int main()
{
    std::printf("%d %s\n", use(3), Counter<int>::names[1]);
    std::printf("%d %d\n", second(4), in_thread);
    return 0;
}
#endif
