"""What files are given as: paths, or bytes of any kind."""

from __future__ import annotations

import mmap
import os
from typing import Any, Tuple, Union

#: A path, or an object with a buffer: bytes, bytearray, memoryview, mmap, array, numpy.
Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, mmap.mmap, Any]


def read(source: Source) -> Tuple[str, Any]:
    """What a source is called in errors, and its bytes: of files read, of objects as they are."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        with open(path, "rb") as file:
            return path, file.read()
    return f"<{type(source).__name__}>", source


def mapped(source: Source) -> Tuple[str, Any]:
    """The same; of files mapped instead of read."""
    if not isinstance(source, (str, os.PathLike)):
        return read(source)
    path = os.fspath(source)
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return path, b""
        return path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def head(data: Any, size: int = 20) -> bytes:
    """The first bytes."""
    if type(data) is bytes:
        return data[:size]
    with memoryview(data) as view:
        return bytes(view.cast("B")[:size])
