"""hoist puts machine code into memory and runs it, without a linker, a dynamic loader or a vendor runtime.

Objects as compilers write them, archives and shared libraries go into this process; functions come out:

>>> import hoist
>>> module = hoist.load("fixtures/x86_64/elftest.o")   # float foo(int x) { return x + 12345678.f; }
>>> foo = module.fn("foo", args=[hoist.i32], ret=hoist.f32)
>>> foo(321)
12345999.0

==================================  ===========================================================================
`hoist.load`                        objects, archives and libraries, from files or memory, into this process
`hoist.Module`, `hoist.Library`     functions, symbols, sections, replacing, unloading
`hoist.callback`                    functions of Python's that machine code can call
`hoist.function`                    a function at an address
`hoist.i32`, `hoist.ptr`, ...       types of arguments and results (`hoist.types`)
`hoist.link`                        objects as bytes for another address, process or machine
`hoist.show`                        what ELF files contain, as dictionaries
`hoist.Cubin`, `hoist.Fatbin`       code for NVIDIA GPUs: kernels and what they need; containers
`hoist.nv`                          NVIDIA GPUs: devices, buffers, launches
`hoist.tinygrad`                    tinygrad on this loader
`hoist.errors`                      exceptions, with attributes that say what and where
`python -m hoist`                   the command line
==================================  ===========================================================================

Loading checks everything it reads. Calling runs machine code: what that does, and whether its types are those that were said,
is for who calls it, as with ctypes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List

from . import errors
from ._command import command
from ._gpu import Cubin, Entry, Fatbin, Kernel, Occupancy, Region
from ._hoist import (
    Arena,
    Callback,
    Function,
    Type,
    __version__,
    bool_,
    cstr,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    ptr,
    u8,
    u16,
    u32,
    u64,
    void,
)
from ._link import Image, link
from ._load import Library, Module, Replacement, Section, callback, function, load, types
from ._show import show
from .errors import *  # noqa: F403
from .errors import __all__ as _errors

__all__ = [
    "Arena",
    "Callback",
    "Cubin",
    "Entry",
    "Fatbin",
    "Function",
    "Image",
    "Kernel",
    "Library",
    "Module",
    "Occupancy",
    "Region",
    "Replacement",
    "Section",
    "Type",
    "bool_",
    "callback",
    "command",
    "cstr",
    "errors",
    "f32",
    "f64",
    "function",
    "i16",
    "i32",
    "i64",
    "i8",
    "link",
    "load",
    "ptr",
    "show",
    "types",
    "u16",
    "u32",
    "u64",
    "u8",
    "void",
    *_errors,
]


if TYPE_CHECKING:
    from . import nv, tinygrad

# loaded when they are wanted: they look for what may not be there
_LATER = ("nv", "tinygrad")


def __dir__() -> List[str]:
    return sorted({*globals(), *_LATER})


def __getattr__(name: str) -> Any:
    if name in _LATER:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
