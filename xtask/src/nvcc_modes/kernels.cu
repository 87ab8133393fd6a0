// Many small kernels, as libraries of operations on arrays have them: names, parameters and tables outweigh the code.
// SPDX-License-Identifier: MIT OR Apache-2.0

enum Operation { ADD, SUBTRACT, MULTIPLY, DIVIDE, LEAST, MOST };

template <Operation OPERATION, typename T> __device__ T apply(T a, T b) {
    switch (OPERATION) {
    case ADD: return a + b;
    case SUBTRACT: return a - b;
    case MULTIPLY: return a * b;
    case DIVIDE: return a / b;
    case LEAST: return a < b ? a : b;
    default: return a < b ? b : a;
    }
}

template <Operation OPERATION, typename To, typename From> __global__ void each(To *to, const From *from, From other, long count) {
    const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
    if (i < count) to[i] = static_cast<To>(apply<OPERATION>(from[i], other));
}

#define KERNEL(OPERATION, TO, FROM) template __global__ void each<OPERATION, TO, FROM>(TO *, const FROM *, FROM, long);
#define OPERATIONS(TO, FROM)                                                                                          \
    KERNEL(ADD, TO, FROM) KERNEL(SUBTRACT, TO, FROM) KERNEL(MULTIPLY, TO, FROM) KERNEL(DIVIDE, TO, FROM)              \
    KERNEL(LEAST, TO, FROM) KERNEL(MOST, TO, FROM)
#define TYPES(TO)                                                                                                     \
    OPERATIONS(TO, signed char) OPERATIONS(TO, short) OPERATIONS(TO, int) OPERATIONS(TO, unsigned) OPERATIONS(TO, float) OPERATIONS(TO, double)

TYPES(signed char)
TYPES(int)
TYPES(float)
TYPES(double)
