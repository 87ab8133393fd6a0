"""Objects as bytes for an address."""

from __future__ import annotations

import operator
from typing import Any, Dict, Iterable, List, Mapping, Optional, Union

from . import _hoist
from ._bytes import Source, read
from .errors import NoSymbolError


class Image:
    """What `hoist.link` gives: the relocated bytes for an address, and what is where in them.

    `image.data` is a bytearray; `bytes(image)` copies it.
    """

    __slots__ = {
        "_addresses": None,
        "_what": None,
        "base": "The address that the image is for.",
        "data": "The bytes, from `base` on.",
    }

    def __init__(self, data: bytearray, base: int, what: Dict[str, Any]) -> None:
        self.data = data
        self.base = base
        self._what = what
        self._addresses: Optional[Dict[str, int]] = None

    def __len__(self) -> int:
        return len(self.data)

    def __bytes__(self) -> bytes:
        return bytes(self.data)

    @property
    def alignment(self) -> int:
        """What the address of the image must be a multiple of, in bytes."""
        return self._what["alignment"]

    @property
    def sections(self) -> List[Dict[str, Any]]:
        """The sections that are loaded: rows with `name`, `address`, `size` and `object`."""
        return self._what["sections"]

    @property
    def symbols(self) -> List[Dict[str, Any]]:
        """The symbols that objects define: rows with `name`, `address`, `size` and `object`."""
        return self._what["symbols"]

    @property
    def segments(self) -> List[Dict[str, Any]]:
        """What shall have which permissions: rows with `offset`, `size` and `permissions` (`r-x`)."""
        return [{"offset": offset, "size": size, "permissions": text} for offset, size, text in self._what["segments"]]

    def address_of(self, name: str) -> int:
        """The address of a symbol. Raises `hoist.NoSymbolError` if there is none."""
        if self._addresses is None:
            self._addresses = {row["name"]: row["address"] for row in reversed(self.symbols)}
        try:
            return self._addresses[name]
        except KeyError:
            error = NoSymbolError(f"no symbol {name}")
            error.symbol = name
            raise error from None

    def __repr__(self) -> str:
        return f"<hoist.Image of {len(self.data)} bytes for {self.base:#x}>"


def link(
    *objects: "Source | Iterable[Source]",
    base: int,
    symbols: Optional[Mapping[str, int]] = None,
    wanted: "Union[str, Iterable[str]]" = (),
    packed: Optional[int] = None,
    page_size: int = 4096,
    relax: bool = True,
    undefined: Optional[int] = None,
    limit: int = 1 << 30,
) -> Image:
    """Links objects for an address where they are not: another process, a device, firmware, a file that will be mapped.

    Objects may be for any machine that hoist relocates; of archives those members are taken that are asked for, by objects
    before them or by `wanted`. Nothing is run and nothing mapped.

    `base`       the address of the image
    `symbols`    addresses of symbols that no object defines
    `packed`     one segment, sections in the order of the files at least at this alignment, instead of segments on pages
    `page_size`  of segments; both are powers of two
    `relax`      whether instructions become shorter or direct where that does the same
    `undefined`  what undefined symbols are taken for, instead of being refused
    `limit`      bytes that the image may have

    >>> image = hoist.link("fixtures/x86_64/elftest.o", base=0x400000)
    >>> hex(image.address_of("foo"))
    '0x400000'
    >>> image.segments[0]
    {'offset': 0, 'size': 26, 'permissions': 'r-x'}
    """
    for name, alignment in (("packed", packed), ("page_size", page_size)):
        alignment = None if alignment is None else operator.index(alignment)
        if alignment is not None and (alignment <= 0 or alignment & (alignment - 1)):
            raise ValueError(f"{name}={alignment} is no power of two")
    options = {
        "base": base,
        "packed": packed,
        "page_size": page_size,
        "relax": relax,
        "undefined": undefined,
        "limit": limit,
    }
    names = {name: address_of(name, value) for name, value in (symbols or {}).items()}
    data, what = _hoist.link([read(one) for one in flat(objects)], names, [wanted] if isinstance(wanted, str) else list(wanted), options)
    return Image(data, base, what)


def address_of(name: Any, value: Any) -> int:
    """The address that a symbol of this name is said to have."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a symbol is a str, not {name!r}")
    try:
        address = operator.index(value)
    except TypeError:
        raise TypeError(f"symbol {name}: an address expected, got {type(value).__name__}") from None
    if not 0 <= address < 1 << 64:
        raise OverflowError(f"symbol {name}: {address} is no address")
    return address


def flat(objects: Iterable[Any]) -> List[Any]:
    """Objects, and those of lists and tuples among them."""
    found: List[Any] = []
    for one in objects:
        if isinstance(one, (list, tuple)):
            found.extend(flat(one))
        else:
            found.append(one)
    return found
