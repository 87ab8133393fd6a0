"""Loading an object and its first call: hoist beside tinygrad's `jit_loader` and what its `CPUProgram` does with the result.

    HOIST_TINYGRAD=FOLDER target/xtask/python/venv/bin/python python/benches/tinygrad_load.py

FOLDER is that of an unpacked tinygrad. Times are the least of several rounds, in microseconds.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.environ["HOIST_TINYGRAD"])

from tinygrad.runtime.support.elf import jit_loader  # noqa: E402

import hoist  # noqa: E402
import hoist.tinygrad  # noqa: E402


def source(tables: int) -> str:
    """A kernel with so many constant tables that it has to be relocated to."""
    lines = [f"static const float t{n}[4] = {{{n}.f, {n + 1}.5f, 2.f, 3.f}};" for n in range(tables)]
    uses = "\n".join(f"  x[{n % 16}] += p[{n % 4}] * 2.f + ((const volatile float *)t{n})[{n % 4}];" for n in range(tables))
    return "\n".join(lines) + f"\nvoid kernel(float *x, const float *p) {{\n{uses}\n}}\n"


def least(work, rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter_ns()
        work()
        best = min(best, time.perf_counter_ns() - start)
    return best / 1000


#: The least there can be to load: a function that returns.
NOTHING = b"\xc3"


def placed(image: bytes, x: int) -> None:
    memory = mmap.mmap(-1, len(image), mmap.MAP_ANON | mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(image)
    function = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    function(ctypes.c_uint64(x), ctypes.c_uint64(x))


def main() -> None:
    folder = pathlib.Path(tempfile.mkdtemp())
    floats = (ctypes.c_float * 16)()
    address = ctypes.addressof(floats)
    print(
        "| relocations | bytes | jit_loader | with its first call | hoist's in its place | with its first call | hoist.load, with its first call "
        "| floor: a `ret` of so many bytes, placed and called | times, loaders alone | times | times, hoist.load |"
    )
    print("|---:|" + "---:|" * 10)
    for tables in (4, 100, 2000, 20000):
        path = folder / f"{tables}.c"
        path.write_text(source(tables))
        options = ["-O1", "-fPIC", "-ffreestanding", "-fno-math-errno", "-nostdlib", "-fno-ident"]
        subprocess.run(["clang-19", "-c", *options, "--target=x86_64-none-unknown-elf", path, "-o", path.with_suffix(".o")], check=True)
        blob = path.with_suffix(".o").read_bytes()
        rounds = 200 if tables <= 100 else 7

        def loaded() -> None:
            hoist.load(blob).fn("kernel", [hoist.u64, hoist.u64])(address, address)

        theirs = least(lambda: jit_loader(blob), rounds)
        their_call = least(lambda: placed(jit_loader(blob), address), rounds)
        ours = least(lambda: hoist.tinygrad.jit_loader(blob), rounds)
        our_call = least(lambda: placed(hoist.tinygrad.jit_loader(blob), address), rounds)
        native = least(loaded, rounds)
        size = len(hoist.tinygrad.jit_loader(blob))
        nothing = NOTHING.ljust(size, b"\0")
        floor = least(lambda: placed(nothing, address), rounds)
        print(
            f"| {tables} | {len(blob)} | {theirs:.1f} | {their_call:.1f} | {ours:.1f} | {our_call:.1f} | {native:.1f} | {floor:.1f} "
            f"| {theirs / ours:.1f} | {their_call / our_call:.1f} | {their_call / native:.1f} |"
        )


if __name__ == "__main__":
    main()
