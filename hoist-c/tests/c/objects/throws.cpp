// Throws through a frame that cleans up, and has the library throw.
#include <stdexcept>
#include <string>
#include <vector>

static int cleaned = 0;

struct Guard {
    ~Guard() { ++cleaned; }
};

static __attribute__((noinline)) int deeper(int number) {
    const Guard guard;
    if (number % 2 != 0) {
        throw std::runtime_error(std::to_string(number));
    }
    return number + 1;
}

extern "C" int caught(int number) {
    cleaned = 0;
    try {
        return deeper(number);
    } catch (const std::exception &error) {
        try {
            return std::vector<int>(4, cleaned).at(4);
        } catch (const std::out_of_range &) {
            return -std::stoi(error.what()) - 100 * cleaned;
        }
    }
}
