"""Exceptions of this package.

All are `hoist.Error`. What an error is about is in attributes, so that a program need not read its text; an attribute that does
not apply is None.

>>> import hoist
>>> try:
...     hoist.load("fixtures/x86_64/missing.o")
... except hoist.UndefinedSymbolError as error:
...     print(error)
...     print(error.section, error.offset, error.relocation, error.symbol)
fixtures/x86_64/missing.o: section .text: R_X86_64_PLT32 at offset 0x5: symbol hoist_fixture_missing is undefined
.text 5 R_X86_64_PLT32 hoist_fixture_missing
"""

from __future__ import annotations

from typing import List, Optional

__all__ = [
    "BusyError",
    "CommandError",
    "DeviceError",
    "Error",
    "FormatError",
    "LibraryError",
    "LinkError",
    "NoDeviceError",
    "NoSymbolError",
    "RelocationError",
    "ReplaceError",
    "ResourceError",
    "UndefinedSymbolError",
    "UnloadedError",
    "UnsupportedError",
]


class Error(Exception):
    """What went wrong: `str(error)` is one line for people, the attributes are for programs; None where one does not apply.

    `file`        what the file is called that is at fault: its path, or `<bytes>`
    `member`      the member of an archive
    `section`     the name of the section at fault
    `offset`      where in the section, or, of a damaged file, where in the file; in bytes
    `relocation`  the name of the relocation type: `R_X86_64_PC32`
    `symbol`      the name of the symbol
    `symbols`     all names, where there are several
    `value`       the value that does not fit
    `least`       the least value that would have
    `limit`       the largest value or size that would have
    `size`        bytes that were asked for
    `kind`        the variant of the error of a GPU: `NoLibrary`
    `function`    the function of the driver that failed
    `code`        what that function returned
    `calls`       calls that are not over
    `output`      what a command had printed before
    """

    file: Optional[str] = None
    member: Optional[str] = None
    section: Optional[str] = None
    offset: Optional[int] = None
    relocation: Optional[str] = None
    symbol: Optional[str] = None
    symbols: Optional[List[str]] = None
    value: Optional[int] = None
    least: Optional[int] = None
    limit: Optional[int] = None
    size: Optional[int] = None
    kind: Optional[str] = None
    function: Optional[str] = None
    code: Optional[int] = None
    calls: Optional[int] = None
    output: Optional[bytes] = None


class FormatError(Error, ValueError):
    """The bytes are not what they should be: `offset` says where. Or they are for another machine."""


class LinkError(Error):
    """The objects cannot be linked together, or not for this address."""


class UndefinedSymbolError(LinkError):
    """Nobody defines some symbols: `symbols` has the names of all, `symbol` that of the first."""


class RelocationError(LinkError):
    """A relocation cannot be applied: `relocation`, `section`, `offset`, `symbol`, and `value` beside `least` and `limit`."""


class NoSymbolError(Error, LookupError):
    """There is no such symbol, or it is no function."""


class ReplaceError(Error):
    """The function cannot be replaced, or the variable has another size than it had."""


class ResourceError(Error, MemoryError):
    """There is no memory: `size` bytes, of at most `limit`."""


class LibraryError(Error, OSError):
    """A library could not be opened."""


class UnloadedError(Error):
    """The code was unloaded."""


class BusyError(Error):
    """The code cannot be unloaded now: `calls` calls of its functions are not over."""


class UnsupportedError(Error):
    """What was asked for is known, and not supported."""


class CommandError(Error):
    """A command has failed: the text is what it would have complained of, `output` what it had printed before."""


class DeviceError(Error):
    """A GPU, or its driver, says no: `kind`, and `function` and `code` where a function of the driver failed."""


class NoDeviceError(DeviceError):
    """There is no such GPU: no driver (`kind` is `NoLibrary`), one that is too old, none or fewer devices."""
