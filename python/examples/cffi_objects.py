"""A module of cffi's API mode without a linker or build system: the C that cffi writes is compiled to an object, and hoist loads that.

    python cffi_objects.py                                # any compiler that makes an object: $CC, else cc

What cffi would have setuptools link and Python import as an extension is here one function of an object: `PyInit_...`, which
gives the module. Calls are those of API mode.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import subprocess
import sysconfig
import tempfile
from types import ModuleType

import cffi

import hoist

DECLARED = """
typedef struct { double x, y; } point;
double distance(const point *from, const point *to);
int count(const char *text, char c);
#define ANSWER ...
"""
SOURCE = """
#include <math.h>
#define ANSWER 42
typedef struct { double x, y; } point;
static double distance(const point *from, const point *to) { return hypot(to->x - from->x, to->y - from->y); }
static int count(const char *text, char c) { int n = 0; while (*text) n += *text++ == c; return n; }
"""


def compile_object(builder: cffi.FFI) -> bytes:
    """What cffi writes in C, as an object."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "module.c")
        with contextlib.redirect_stdout(None):  # it says which file it writes
            builder.emit_c_code(str(source))
        output = source.with_suffix(".o")
        words = [os.environ.get("CC", "cc"), "-O2", "-fPIC", f"-I{sysconfig.get_path('include')}", "-c", str(source), "-o", str(output)]
        subprocess.run(words, check=True)
        return output.read_bytes()


def import_object(name: str, data: bytes) -> ModuleType:
    """The extension module `name` out of an object."""
    code = hoist.load(data, libs=["libm.so.6"])
    # it makes objects of Python's: the lock is kept
    made = code.fn(f"PyInit_{name}", ret=hoist.ptr, nogil=False)()
    module = ctypes.cast(made, ctypes.py_object).value
    module.code = code  # stays as long as the module
    return module


def main() -> None:
    builder = cffi.FFI()
    builder.cdef(DECLARED)
    builder.set_source("_example", SOURCE)
    module = import_object("_example", compile_object(builder))
    ffi, lib = module.ffi, module.lib
    start, end = ffi.new("point *", (1, 1)), ffi.new("point *", (4, 5))
    print(lib.distance(start, end), lib.count(b"object", b"o"), lib.ANSWER)


if __name__ == "__main__":
    main()
