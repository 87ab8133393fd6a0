"""Commands of the command line as functions."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any, Iterator

from . import _hoist
from ._bytes import Source, octets, path_of, read
from .errors import CommandError


def command(*words: "str | os.PathLike[str]") -> bytes:
    """Runs a command of `python -m hoist` and gives what it prints.

    Raises `hoist.CommandError` with what went wrong; `error.output` is what was printed before.

    >>> hoist.command("run", "fixtures/x86_64/elftest.o", "foo", "i32:321", "--ret", "f32")
    b'12345999\\n'
    """
    output, status, complaints = _hoist.command([os.fsdecode(word) for word in words])
    if status != 0:
        error = CommandError("; ".join(line.rstrip() for line in complaints))
        error.output = output
        raise error
    return output


def answer(name: str, *words: "str | os.PathLike[str]") -> Any:
    """What a command of this name says as JSON."""
    return json.loads(command(*name.split(), "--json", *words))


@contextlib.contextmanager
def as_path(source: Source, label: str = "") -> Iterator[str]:
    """A path where commands find the bytes: of what is in memory, that of a file in memory, which errors call `label`."""
    path = path_of(source)
    if path is not None:
        yield path
        return
    with octets(read(source)[1]) as data:
        file = os.memfd_create("hoist", os.MFD_CLOEXEC)
        try:
            left = data
            while left:
                left = left[os.write(file, left) :]
            yield f"/proc/self/fd/{file}"
        except CommandError as error:
            error.args = (str(error).replace(f"/proc/self/fd/{file}", label or f"<{type(source).__name__}>"),)
            raise
        finally:
            os.close(file)
