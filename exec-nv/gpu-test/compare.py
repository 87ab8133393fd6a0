"""What gpu_test measures, measured with CuPy and PyTorch where they are: rows of Markdown."""
import time

CALLS = 1000


def least(work, rounds=20):
    """Seconds of one of CALLS calls, the least of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best / CALLS


def row(what, seconds):
    print(f"| {what} | {seconds * 1e6:.3f} µs |")


def cupy_rows():
    import cupy

    source = """extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n)
    { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }"""
    kernel = cupy.RawKernel(source, "vector_add")
    numbers = cupy.zeros(32, dtype=cupy.float32)
    arguments = (numbers, numbers, numbers, cupy.int32(32))

    def launches():
        for _ in range(CALLS):
            kernel((1,), (32,), arguments)
        cupy.cuda.Device().synchronize()

    launches()
    row(f"CuPy {cupy.__version__} RawKernel launch", least(launches))
    pool = cupy.get_default_memory_pool()
    for size in (4 << 10, 1 << 20, 64 << 20):
        def hits():
            for _ in range(CALLS):
                pool.malloc(size)

        row(f"CuPy memory pool hit, {size} bytes", least(hits))


def torch_rows():
    import torch

    for size in (4 << 10, 1 << 20, 64 << 20):
        def hits():
            for _ in range(CALLS):
                torch.empty(size, dtype=torch.uint8, device="cuda")

        hits()
        row(f"PyTorch {torch.__version__} caching allocator hit, {size} bytes", least(hits))
    a = torch.zeros(32, device="cuda")
    c = torch.zeros(32, device="cuda")

    def launches():
        for _ in range(CALLS):
            torch.add(a, a, out=c)
        torch.cuda.synchronize()

    launches()
    row("PyTorch add of 32 numbers", least(launches))
    host = torch.zeros(256 << 20, dtype=torch.uint8)
    pinned = host.pin_memory()
    device = torch.zeros(256 << 20, dtype=torch.uint8, device="cuda")
    for name, to, source in (("host to device", device, host), ("pinned to device", device, pinned)):
        best = float("inf")
        for _ in range(10):
            torch.cuda.synchronize()
            start = time.perf_counter()
            to.copy_(source)
            torch.cuda.synchronize()
            best = min(best, time.perf_counter() - start)
        print(f"| PyTorch {name} | {(256 << 20) / best / 1e9:.1f} GB/s |")


def main():
    print("| | |\n|---|---|")
    for rows in (cupy_rows, torch_rows):
        try:
            rows()
        except Exception as error:  # a package that is missing or broken is a row, not the end
            print(f"| {type(error).__name__} | {str(error).splitlines()[0] if str(error) else ''} |")


if __name__ == "__main__":
    main()
