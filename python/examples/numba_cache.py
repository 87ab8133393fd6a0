"""What Numba keeps on disk, loaded by hoist: a function of Python's as machine code, without a compiler at run time.

    python numba_cache.py

`@njit(cache=True)` writes files `.nbc` of the machine code that it makes: a relocatable object, and what describes it. Here such a file
is all that is used. Its functions can be called from C: those whose names begin with `cfunc.`.
"""

from __future__ import annotations

import os
import pathlib
import pickle
import tempfile
from typing import Dict, Optional, Tuple

CACHE = tempfile.TemporaryDirectory()
os.environ["NUMBA_CACHE_DIR"] = CACHE.name

import numba  # noqa: E402  after the folder of its cache is known
from numba import _helperlib  # noqa: E402
from numba.core.runtime import _nrt_python  # noqa: E402

import hoist  # noqa: E402


@numba.njit("float64(float64, int64)", cache=True)
def power(base: float, exponent: int) -> float:
    result = 1.0
    for _ in range(exponent):
        result *= base
    return result


def cached(path: pathlib.Path) -> Tuple[bytes, str]:
    """The object in a file of Numba's cache, and the name of its function for C."""
    library, description, *_ = pickle.loads(path.read_bytes())
    _name, kind, (code, _bitcode) = library
    assert kind == "object"
    return code, description.llvm_cfunc_wrapper_name


def helpers() -> Dict[str, Optional[int]]:
    """Functions of Numba's own runtime that its machine code calls, as Numba names them."""
    of_runtime = {name if name.startswith("_") else f"NRT_{name}": at for name, at in _nrt_python.c_helpers.items()}
    return {**{f"numba_{name}": at for name, at in _helperlib.c_helpers.items()}, **of_runtime}


def main() -> None:
    [path] = pathlib.Path(CACHE.name).rglob("*.nbc")
    code, name = cached(path)
    # the rest is Python's own, which this process has
    module = hoist.load(code, symbols=helpers())
    loaded = module.fn(name, args=[float, int], ret=float)
    print(loaded(1.5, 3), loaded(2, 10) == power(2, 10))


if __name__ == "__main__":
    main()
