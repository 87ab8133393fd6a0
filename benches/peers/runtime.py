#!/usr/bin/env python3
"""What the runtime costs, beside tinygrad on the same machine. Needs gcc, clang and `pip install tinygrad==0.14.0`.

    CC=clang-19 python3 benches/peers/runtime.py
"""

import array, ctypes, os, pathlib, statistics, subprocess, sys, tempfile, time

FOLDER = tempfile.TemporaryDirectory()
os.environ["CACHEDB"] = os.path.join(FOLDER.name, "cache.db")
CC = os.environ.setdefault("CC", "clang")
# both load this one: HOIST_BENCH_LARGE tells ours
LARGE = os.environ["HOIST_BENCH_LARGE"] = os.path.join(FOLDER.name, "large.o")

from tinygrad.device import BufferSpec, Device, LRUAllocator
from tinygrad.helpers import diskcache_get, diskcache_put
from tinygrad.runtime.ops_cpu import CPUProgram

SOURCE = "void nothing(void *a, void *b, void *c, long n) {}"


FLAGS = ["-O2", "-fPIC", "-ffreestanding", "-nostdlib", "-fno-ident", "-fno-asynchronous-unwind-tables"]


def large(functions=5000, relocations=10):
    """A source of many functions with what tinygrad's loader can do: no calls from one to another, no GOT, just data."""
    head = "".join(f"static volatile long v{i} = {i};\n" for i in range(1000))

    def define(i):
        reads = " + ".join(f"v{(i * 7 + k * 61) % 1000}" for k in range(relocations))
        return f"long f{i}(void *a, void *b, void *c, long n) {{ return n < 9 ? 0 : {reads}; }}\n"

    return head + "".join(map(define, range(functions)))


def compile(source, path):
    subprocess.run([CC, "-c", "-x", "c", *FLAGS, "-", "-o", path], input=source.encode(), check=True)
    return pathlib.Path(path).read_bytes()


def median(what, rounds=301):
    """Many short rounds, so that on a busy machine most are not interrupted."""

    def round(times):
        start = time.perf_counter_ns()
        for _ in range(times):
            what()
        return (time.perf_counter_ns() - start) / times

    if rounds < 100:
        return statistics.median(round(1) for _ in range(rounds))
    times = max(1, int(100_000 / min(round(5) for _ in range(5))))
    return statistics.median(round(times) for _ in range(rounds))


class Target:
    renderer = "CLANG"


class Image:
    """What CPUProgram wants to know of an image."""

    def __init__(self, lib):
        self.lib, self.name, self.signature, self.target = lib, "nothing", (), Target


class Memory(LRUAllocator):
    def _alloc(self, size, options):
        return bytearray(size)

    def _free(self, opaque, options):
        pass


def queue(device, program, buffers):
    """Puts a call into the ring of the device's worker and waits for it, as the code that tinygrad compiles for that does."""
    worker, post = device.worker("COMPUTE:0"), ctypes.CDLL(None).sem_post
    ring, put, done = (getattr(worker, name)._buf.cpu_view().view(fmt="Q") for name in ("ring", "put", "done"))
    words, slots = 64, len(ring) // 64
    semaphore = ctypes.c_void_p(worker.sem._buf.va_addr)
    arguments = [program.addr, *(buffer.va_addr for buffer in buffers), 4]

    def submit():
        number = put[0]
        at = number % slots * words
        ring[at : at + words] = array.array("Q", arguments + [0] * (words - len(arguments)))
        put[0] = number + 1
        post(semaphore)
        device._wait_signal(done, number + 1)

    return submit


def tinygrad():
    lib, large_lib = compile(SOURCE, os.path.join(FOLDER.name, "small.o")), compile(large(), LARGE)
    device = Device["CPU"]
    spec, allocator = BufferSpec(), Memory(device)
    allocator.free(allocator.alloc(4096, spec), 4096, spec)
    buffers = [device.allocator.alloc(4096, spec) for _ in range(3)]
    program = CPUProgram(device, Image(lib))
    diskcache_put("bench", SOURCE, lib)

    def load(lib):
        return lambda: CPUProgram(device, Image(lib))(*buffers, vals=(4,), wait=True)

    return {
        "call": median(lambda: program(*buffers, vals=(4,), wait=True)),
        "queue": median(queue(device, program, buffers)),
        "load": median(load(lib)),
        "large": median(load(large_lib), 9),
        "memory": median(lambda: allocator.free(allocator.alloc(4096, spec), 4096, spec)),
        "cache": median(lambda: diskcache_get("bench", SOURCE)),
    }


def hoist():
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    command = ["cargo", "bench", "--quiet", "--package", "benches", "--bench", "runtime"]
    text = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [(name, float(time)) for name, _, time in (line.partition("\t") for line in text.splitlines()) if time]


def main():
    theirs = tinygrad()
    print(f"| | hoist, ns | tinygrad, ns | times |\n|---|---:|---:|---:|")
    for name, ours in hoist():
        peer = theirs.get(name.partition(":")[0])
        print(f"| {name} | {ours:.1f} | {peer:.0f} | {peer / ours:.1f} |" if peer else f"| {name} | {ours:.1f} | | |")


if __name__ == "__main__":
    sys.exit(main())
