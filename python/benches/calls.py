"""What a call costs beside cffi (API mode) and ctypes with argument types.

    target/xtask/python/venv/bin/python python/benches/calls.py                   after `cargo xtask python --release`
    target/xtask/python/venv/bin/python python/benches/calls.py --instructions    the same as instructions, by valgrind

Times are in nanoseconds, the least of several rounds, and mean something on a quiet machine. Instructions are those of one turn of a
loop, and are the same on any: but for what they wait for (locks, memory). `floor` is the call of a builtin that does nothing.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import timeit
from typing import Any, Dict, Tuple

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

#: Name, types of arguments and result, the call.
CASES = [
    ("nothing", [], None, "f()"),
    ("foo", ["i32"], "f32", "f(321)"),
    ("add", ["i32", "i32"], "i32", "f(3, 4)"),
    ("mul", ["f64", "f64"], "f64", "f(1.5, 2.5)"),
    ("six", ["i64"] * 6, "i64", "f(1, 2, 3, 4, 5, 6)"),
    ("read_first", ["ptr"], "i64", "f(b)"),
]
WAYS = ["hoist", "lock kept", "cffi", "ctypes"]
KINDS = {"i32": ctypes.c_int, "f32": ctypes.c_float, "f64": ctypes.c_double, "i64": ctypes.c_long, "ptr": ctypes.c_void_p}


def build(folder: pathlib.Path) -> None:
    """The same functions as cffi's module, as an object and as a shared library."""
    import cffi

    builder = cffi.FFI()
    builder.cdef(HEADER)
    builder.set_source("_beside", SOURCE, extra_compile_args=["-O2"])
    builder.compile(tmpdir=str(folder))
    (folder / "source.c").write_text(SOURCE)
    subprocess.run(["cc", "-O2", "-fPIC", "-c", "source.c", "-o", "source.o"], cwd=folder, check=True)
    subprocess.run(["cc", "-shared", "source.o", "-o", "libsource.so"], cwd=folder, check=True)


def names(folder: pathlib.Path, way: str, case: Tuple[Any, ...]) -> Dict[str, Any]:
    """What a call needs: the function, and a buffer as that wants it."""
    name, args, ret, _ = case
    buffer = bytearray(8)
    if way in ("hoist", "lock kept"):
        import hoist

        module = hoist.load(folder / "source.o")
        return {"f": module.fn(name, args, ret, nogil=way == "hoist"), "b": buffer}
    if way == "cffi":
        spec = importlib.util.spec_from_file_location("_beside", next(folder.glob("_beside*.so")))
        assert spec is not None and spec.loader is not None
        beside = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(beside)
        # cffi does not convert to `const long *`: the call takes what `from_buffer` gives
        return {"f": getattr(beside.lib, name), "b": beside.ffi.from_buffer("long[]", buffer)}
    function = getattr(ctypes.CDLL(str(folder / "libsource.so")), name)
    function.argtypes = [KINDS[one] for one in args]
    function.restype = None if ret is None else KINDS[ret]
    return {"f": function, "b": ctypes.cast((ctypes.c_char * 8).from_buffer(buffer), ctypes.c_void_p)}


def least(call: str, names: Dict[str, Any], rounds: int = 15, number: int = 200_000) -> float:
    return min(timeit.Timer(call, globals=names).repeat(rounds, number)) / number * 1e9


def instructions(words: "list[str]", turns: int) -> int:
    """Instructions of this program with these arguments."""
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run([*tool, sys.executable, __file__, *words, str(turns)], env=environment, capture_output=True, text=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1].replace(",", ""))


def main() -> None:
    folder = pathlib.Path(tempfile.mkdtemp())
    build(folder)
    by_instructions = "--instructions" in sys.argv
    floor = ("floor", [], None, "f()")

    def cost(way: str, case: Tuple[Any, ...]) -> float:
        if not by_instructions:
            return least(case[3], {"f": gc.isenabled} if way == "floor" else names(folder, way, case))
        few, many = 100, 10_100
        words = ["--turns", json.dumps([str(folder), way, case])]
        return (instructions(words, many) - instructions(words, few)) / (many - few)

    print(f"floor: {cost('floor', floor):.0f}\n")
    print("| function | hoist | with the lock kept | cffi, API mode | ctypes | of cffi | of ctypes | kept, of ctypes |\n" + "|---|" + "---:|" * 7)
    for case in CASES:
        ours, kept, theirs, types = (cost(way, case) for way in WAYS)
        row = [f"{ours:.0f}", f"{kept:.0f}", f"{theirs:.0f}", f"{types:.0f}", f"{ours / theirs:.2f}", f"{ours / types:.2f}", f"{kept / types:.2f}"]
        print(f"| `{case[0]}` | " + " | ".join(row) + " |", flush=True)


def turns() -> None:
    """So many calls and nothing else, for who counts instructions."""
    folder, way, case = json.loads(sys.argv[2])
    given = {"f": gc.isenabled} if way == "floor" else names(pathlib.Path(folder), way, tuple(case))
    timeit.Timer(case[3], globals=given).timeit(int(sys.argv[3]))


if __name__ == "__main__":
    turns() if sys.argv[1:2] == ["--turns"] else main()
