"""What files are given as: paths, or bytes of any kind."""

from __future__ import annotations

import mmap
import os
from typing import Any, Callable, Optional, Tuple, Union

#: A path, or an object with a buffer: bytes, bytearray, memoryview, mmap, array, numpy.
Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, mmap.mmap, Any]


def path_of(source: Source) -> Optional[str]:
    """The path that a source is; None if it is bytes."""
    return os.fsdecode(source) if isinstance(source, (str, os.PathLike)) else None


def label_of(source: Source) -> str:
    """What a source is called in errors. Bytes of a path that are no text are shown as such."""
    path = path_of(source)
    return f"<{type(source).__name__}>" if path is None else path.encode("utf-8", "backslashreplace").decode()


def read(source: Source) -> Tuple[str, Any]:
    """What a source is called in errors, and its bytes: of files read, of objects as they are."""
    path = path_of(source)
    if path is None:
        given: Any = source
        try:
            with memoryview(given) as view:
                is_whole = view.c_contiguous
        except TypeError:
            kind = type(source).__name__
            raise TypeError(f"a path, or an object with a buffer (bytes, mmap, numpy ...), expected, not {kind}") from None
        if not is_whole:
            raise BufferError(f"{label_of(source)}: bytes that are not in one piece")
        return label_of(source), source
    with open(path, "rb") as file:
        return label_of(source), file.read()


def mapped(source: Source) -> Tuple[str, Any]:
    """The same; of files mapped instead of read."""
    path = path_of(source)
    if path is None:
        return read(source)
    with open(path, "rb") as file:
        # what is no file (a pipe, a device) has no pages
        if os.fstat(file.fileno()).st_size == 0:
            return label_of(source), file.read()
        return label_of(source), mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def read_unless(source: Source, is_left: "Callable[[bytes], bool]") -> Tuple[str, Any, bytes]:
    """What a source is called, its bytes, and the first of them: of a file, None for all of them if it is left to others by the first."""
    path = path_of(source)
    if path is None:
        label, data = read(source)
        return label, data, head(data)
    with open(path, "rb") as file:
        start = file.read(20)
        if is_left(start):
            return label_of(source), None, start
        file.seek(0)
        return label_of(source), file.read(), start


def octets(data: Any) -> memoryview:
    """A view of bytes, whatever the elements are."""
    view = memoryview(data)
    try:
        return view.cast("B")
    except TypeError:
        # records, other orders of bytes, tables without rows
        return memoryview(view.tobytes())


def head(data: Any, size: int = 20) -> bytes:
    """The first bytes."""
    if type(data) is bytes:
        return data[:size]
    with octets(data) as view:
        return bytes(view[:size])
