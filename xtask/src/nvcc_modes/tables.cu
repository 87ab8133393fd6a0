// Tables of numbers, as codecs and random generators have them: what is no code becomes small in another way.
// SPDX-License-Identifier: MIT OR Apache-2.0

struct Words {
    unsigned words[16384];
    // xorshift: no two words have much in common
    constexpr Words() : words() {
        unsigned state = 2463534242u;
        for (unsigned &word : words) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            word = state;
        }
    }
};

struct Steps {
    double steps[4096];
    constexpr Steps() : steps() {
        for (int i = 0; i < 4096; ++i) steps[i] = i / 4096.0;
    }
};

__device__ constexpr Words words;
__constant__ constexpr Steps steps;
__device__ unsigned char zeroes[1 << 20];
__device__ int few[1024] = {3, 1, 4, 1, 5, 9, 2, 6};

extern "C" __global__ void next(const unsigned *index, unsigned *out) { out[threadIdx.x] = words.words[index[threadIdx.x] & 16383]; }

extern "C" __global__ void step(const int *index, double *out) {
    out[threadIdx.x] = steps.steps[index[threadIdx.x] & 4095] + few[threadIdx.x] + zeroes[index[threadIdx.x] & 0xfffff];
}
