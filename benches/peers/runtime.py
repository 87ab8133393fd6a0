#!/usr/bin/env python3
"""What the runtime costs, beside tinygrad on the same machine. Needs gcc, clang and `pip install tinygrad==0.14.0`.

    CC=clang-19 python3 benches/peers/runtime.py
"""

import os, pathlib, statistics, subprocess, sys, tempfile, time

os.environ.setdefault("CACHEDB", os.path.join(tempfile.mkdtemp(), "cache.db"))
CC = os.environ.setdefault("CC", "clang")

from tinygrad.device import BufferSpec, Device, LRUAllocator
from tinygrad.helpers import diskcache_get, diskcache_put
from tinygrad.runtime.ops_cpu import CPUProgram

SOURCE = "void nothing(void *a, void *b, void *c, long n) {}"


def median(what):
    """Many short rounds, so that on a busy machine most are not interrupted."""

    def round(times):
        start = time.perf_counter_ns()
        for _ in range(times):
            what()
        return (time.perf_counter_ns() - start) / times

    times = max(1, int(100_000 / min(round(5) for _ in range(5))))
    return statistics.median(round(times) for _ in range(301))


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


def tinygrad():
    command = [CC, "-c", "-x", "c", "-O2", "-fPIC", "-ffreestanding", "-nostdlib", "-fno-ident", "-", "-o"]
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        subprocess.run([*command, file.name], input=SOURCE.encode(), check=True)
        lib = pathlib.Path(file.name).read_bytes()
    device = Device["CPU"]
    spec, allocator = BufferSpec(), Memory(device)
    allocator.free(allocator.alloc(4096, spec), 4096, spec)
    buffers = [device.allocator.alloc(4096, spec) for _ in range(3)]
    program = CPUProgram(device, Image(lib))
    diskcache_put("bench", SOURCE, lib)
    return {
        "call": median(lambda: program(*buffers, vals=(4,), wait=True)),
        "load": median(lambda: CPUProgram(device, Image(lib))(*buffers, vals=(4,), wait=True)),
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
