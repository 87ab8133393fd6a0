"""What a call costs beside cffi (API mode) and ctypes with argument types, each the least of several rounds, in nanoseconds.

    target/xtask/python/venv/bin/python python/benches/calls.py        after `cargo xtask python --release`
"""

from __future__ import annotations

import ctypes
import importlib.util
import pathlib
import subprocess
import tempfile
import timeit

import cffi

import hoist

SOURCE = """
int add(int x, int y) { return x + y; }
float foo(int x) { return x + 12345678.f; }
double mul(double x, double y) { return x * y; }
void nothing(void) {}
long read_first(const long *p) { return *p; }
long six(long a, long b, long c, long d, long e, long f) { return a + b + c + d + e + f; }
"""
HEADER = """
int add(int x, int y); float foo(int x); double mul(double x, double y); void nothing(void);
long read_first(const long *p); long six(long a, long b, long c, long d, long e, long f);
"""


def least(call: str, names: dict, rounds: int = 15, number: int = 200_000) -> float:
    timer = timeit.Timer(call, globals=names)
    return min(timer.repeat(rounds, number)) / number * 1e9


def main() -> None:
    folder = pathlib.Path(tempfile.mkdtemp())
    builder = cffi.FFI()
    builder.cdef(HEADER)
    builder.set_source("_beside", SOURCE, extra_compile_args=["-O2"])
    spec = importlib.util.spec_from_file_location("_beside", builder.compile(tmpdir=str(folder)))
    beside = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(beside)
    (folder / "source.c").write_text(SOURCE)
    subprocess.run(["cc", "-O2", "-fPIC", "-c", "source.c", "-o", "source.o"], cwd=folder, check=True)
    subprocess.run(["cc", "-shared", "source.o", "-o", "libsource.so"], cwd=folder, check=True)
    module = hoist.load(folder / "source.o")
    library = ctypes.CDLL(str(folder / "libsource.so"))
    buffer = bytearray(8)
    cases = [
        ("nothing", [], None, "f()"),
        ("foo", ["i32"], "f32", "f(321)"),
        ("add", ["i32", "i32"], "i32", "f(3, 4)"),
        ("mul", ["f64", "f64"], "f64", "f(1.5, 2.5)"),
        ("six", ["i64"] * 6, "i64", "f(1, 2, 3, 4, 5, 6)"),
        ("read_first", ["ptr"], "i64", "f(b)"),
    ]
    kinds = {"i32": ctypes.c_int, "f32": ctypes.c_float, "f64": ctypes.c_double, "i64": ctypes.c_long, "ptr": ctypes.c_void_p}
    print("| function | hoist | with the lock kept | cffi, API mode | ctypes | of cffi | of ctypes |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, args, ret, call in cases:
        ours = least(call, {"f": module.fn(name, args, ret), "b": buffer})
        kept = least(call, {"f": module.fn(name, args, ret, nogil=False), "b": buffer})
        # cffi does not convert to `const long *`: the call takes what `from_buffer` gives
        theirs = least(call, {"f": getattr(beside.lib, name), "b": beside.ffi.from_buffer("long[]", buffer)})
        function = getattr(library, name)
        function.argtypes = [kinds[one] for one in args]
        function.restype = None if ret is None else kinds[ret]
        pointer = ctypes.cast((ctypes.c_char * 8).from_buffer(buffer), ctypes.c_void_p)
        types = least(call, {"f": function, "b": pointer})
        print(f"| `{name}` | {ours:.0f} | {kept:.0f} | {theirs:.0f} | {types:.0f} | {ours / theirs:.2f} | {ours / types:.2f} |")


if __name__ == "__main__":
    main()
