// Much code of few lines, as libraries of templates have it: what compression is for.
// SPDX-License-Identifier: MIT OR Apache-2.0

template <int TILE, typename T> __global__ void multiply(const T *a, const T *b, T *c, int n) {
    __shared__ T left[TILE][TILE], right[TILE][TILE + 1];
    T sum = 0;
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    for (int step = 0; step < n; step += TILE) {
        left[threadIdx.y][threadIdx.x] = a[row * n + step + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(step + threadIdx.y) * n + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

template <int WIDTH, typename T> __global__ void sort(T *values) {
    T own[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) own[i] = values[(blockIdx.x * blockDim.x + threadIdx.x) * WIDTH + i];
#pragma unroll
    for (int round = 0; round < WIDTH; ++round) {
#pragma unroll
        for (int i = round & 1; i + 1 < WIDTH; i += 2) {
            const T low = own[i] < own[i + 1] ? own[i] : own[i + 1];
            own[i + 1] = own[i] < own[i + 1] ? own[i + 1] : own[i];
            own[i] = low;
        }
    }
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) values[(blockIdx.x * blockDim.x + threadIdx.x) * WIDTH + i] = own[i];
}

template <typename T> __global__ void polynomial(T *values, const T *factors, int degree) {
    T sum = 0;
    for (int i = degree; i >= 0; --i) sum = sum * values[threadIdx.x] + factors[i];
    values[threadIdx.x] = sqrt(sum) + sin(sum) * exp(-sum);
}

#define EACH(T)                                                                       \
    template __global__ void multiply<8, T>(const T *, const T *, T *, int);          \
    template __global__ void multiply<16, T>(const T *, const T *, T *, int);         \
    template __global__ void multiply<32, T>(const T *, const T *, T *, int);         \
    template __global__ void sort<8, T>(T *);                                         \
    template __global__ void sort<24, T>(T *);                                        \
    template __global__ void sort<40, T>(T *);

EACH(float)
EACH(double)
EACH(int)
EACH(long long)
template __global__ void polynomial<float>(float *, const float *, int);
template __global__ void polynomial<double>(double *, const double *, int);
