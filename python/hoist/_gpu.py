"""Code for NVIDIA GPUs: cubins, and the containers that they are in."""

from __future__ import annotations

import json
import operator
import os
import re
import tempfile
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union, overload

from . import _hoist
from ._bytes import Source, mapped, octets, read
from ._command import answer, as_path
from ._rows import documented
from .errors import FormatError, NoSymbolError, UnsupportedError


@documented(
    threads="Threads of a block.",
    blocks="Blocks that an SM holds.",
    warps="Warps of these blocks.",
    of_warps="Warps that an SM could hold.",
    limiter="What keeps it from more: `warps`, `blocks`, `registers`, `shared memory`, `barriers`, `virtual resources`.",
)
class Occupancy(NamedTuple):
    """How many blocks of a kernel an SM runs at a time."""

    threads: int
    blocks: int
    warps: int
    of_warps: int
    limiter: str

    @property
    def fraction(self) -> float:
        """`warps` of `of_warps`."""
        return self.warps / self.of_warps


def _number(name: str, value: Any, least: int, bits: int) -> None:
    """Raises, by name, unless a value is a number of so many bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: a number expected, got {type(value).__name__}") from None
    if not least <= number < 1 << bits:
        raise OverflowError(f"{name}: {number} is not in {least} to {(1 << bits) - 1}")


class Kernel:
    """A kernel of a cubin, and what it needs. Memory in bytes; what the file does not say is None."""

    __slots__ = {"_sm": None, "row": "All of it as a dictionary."}

    def __init__(self, row: Dict[str, Any], sm: Optional[int]) -> None:
        self.row = row
        self._sm = sm

    @property
    def name(self) -> str:
        """Its name as the file has it."""
        return self.row["name"]

    @property
    def registers(self) -> Optional[int]:
        """Registers of a thread."""
        return self.row["registers"]

    @property
    def shared(self) -> int:
        """Shared memory of a block that it declares."""
        return self.row["shared"]

    @property
    def local(self) -> int:
        """Local memory of a thread that it declares."""
        return self.row["local"]

    @property
    def stack(self) -> Optional[int]:
        """Stack of a thread, with all that is called; None if that has no bound (`row["stack_unbounded"]`) or is not known."""
        return self.row["stack"]

    @property
    def params(self) -> List[Dict[str, int]]:
        """Its parameters: rows with `ordinal`, `offset` and `size`."""
        return self.row["params"]

    @property
    def max_threads(self) -> Optional[Tuple[int, int, int]]:
        """Threads that a block may have, by dimension."""
        limits = self.row["max_threads"]
        return None if limits is None else tuple(limits)

    @property
    def required_threads(self) -> Optional[Tuple[int, int, int]]:
        """Threads that a block must have, by dimension."""
        limits = self.row["required_threads"]
        return None if limits is None else tuple(limits)

    @property
    def code(self) -> bytes:
        """Its instructions."""
        return self.row["code"]

    def occupancy(self, threads: Optional[int] = None, shared: int = 0, sm: Optional[int] = None) -> Occupancy:
        """How many blocks of so many threads, with so many bytes of dynamic shared memory, an SM holds.

        Without `threads`, blocks of as many as the kernel says, or 256. `sm` is another architecture than the cubin's. Raises
        `hoist.UnsupportedError` if its limits are not known.
        """
        if threads is None:
            x, y, z = self.required_threads or self.max_threads or (256, 1, 1)
            threads = x * y * z
        sm = self._sm if sm is None else sm
        if sm is None:
            raise UnsupportedError("the cubin does not say its architecture: say sm=")
        for name, value, least, bits in (("threads", threads, 1, 32), ("shared", shared, 0, 63), ("sm", sm, 0, 32)):
            _number(name, value, least, bits)
        row = self.row
        found = _hoist.occupancy(
            sm, threads, row["registers"] or 0, row["shared"] + shared, row["barriers"], row["virtual_resources"]
        )
        return Occupancy(**found)

    def __repr__(self) -> str:
        return f"<hoist.Kernel {self.name}: {self.registers} registers, {self.shared} bytes of shared memory>"


class _Kernels(Mapping[str, Kernel]):
    """Kernels by name, in the order of the file."""

    __slots__ = ("_all",)

    def __init__(self, kernels: Iterable[Kernel]) -> None:
        self._all = {kernel.name: kernel for kernel in kernels}

    def __getitem__(self, name: str) -> Kernel:
        try:
            return self._all[name]
        except KeyError:
            error = NoSymbolError(f"no kernel {name}; there are {', '.join(self._all) or 'none'}")
            error.symbol, error.symbols = name, list(self._all)
            raise error from None

    def __contains__(self, name: object) -> bool:
        return name in self._all

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return f"<{len(self)} kernels: {', '.join(self)}>"


class Cubin:
    """A cubin: code for one architecture of GPUs.

    `source` is a path or bytes; for cubins inside of other files there is `hoist.Fatbin`.

    >>> cubin = hoist.Cubin("fixtures/cuda/kernels-13.5-sm_80.cubin")
    >>> cubin.arch, cubin.is_linked
    ('sm_80', True)
    >>> kernel = cubin.kernels["parameters"]
    >>> kernel.shared, [param["size"] for param in kernel.params]
    (0, [8, 1, 24, 2, 8])
    >>> kernel.occupancy(threads=256).limiter
    'warps'
    """

    __slots__ = {
        "_data": None,
        "_target": None,
        "kernels": "Its kernels by name, in the order of the file, each a `hoist.Kernel`.",
        "label": "What it is called in errors.",
    }

    def __init__(self, source: Source) -> None:
        self.label, self._data = read(source)
        self._target, rows = _hoist.cubin(self._data, self.label)
        self.kernels = _Kernels(Kernel(row, self._target["sm"]) for row in rows)

    @classmethod
    def link(
        cls,
        *sources: Source,
        sm: Optional[int] = None,
        kernels: Iterable[str] = (),
        relocatable: bool = False,
    ) -> "Cubin":
        """Links relocatable cubins (`nvcc -rdc=true`) to one that can be loaded, as nvlink does.

        `sm`           the architecture (90), that of the first without it
        `kernels`      texts: kernels whose names have none of them are dropped, with what they alone reach
        `relocatable`  gives a cubin that is to be linked with others later (`nvlink -r`)

        Raises `hoist.FormatError`, `hoist.UnsupportedError`, `hoist.UndefinedSymbolError`, `hoist.RelocationError` and
        `hoist.LinkError`; the attributes are those of the first error, the text has all.

        >>> linked = hoist.Cubin.link("fixtures/cuda/calls_a-13.5-sm_80.cubin", "fixtures/cuda/calls_b-13.5-sm_80.cubin")
        >>> linked.is_linked, linked.arch
        (True, 'sm_80')
        """
        if not sources:
            raise TypeError("link() needs a cubin")
        names = [kernels] if isinstance(kernels, str) else list(kernels)
        data, _, _ = _hoist.link_cubins([read(one) for one in sources], sm, names, relocatable)
        return cls(data)

    @property
    def sm(self) -> Optional[int]:
        """The number of its architecture: 90."""
        return self._target["sm"]

    @property
    def arch(self) -> Optional[str]:
        """Its architecture: `sm_90a`."""
        return self._target["arch"]

    @property
    def toolkit(self) -> Optional[Tuple[int, int]]:
        """The version of CUDA that made it."""
        return self._target["toolkit"]

    @property
    def is_linked(self) -> bool:
        """Whether it can be loaded; else a device linker has to link it."""
        return self._target["is_linked"]

    @property
    def data(self) -> Any:
        """Its bytes."""
        return self._data

    def rows(self) -> List[Dict[str, Any]]:
        """A row for each kernel, for `pandas.DataFrame`: what `Kernel.row` has, without the code."""
        return [{key: value for key, value in kernel.row.items() if key != "code"} for kernel in self.kernels.values()]

    def attributes(self) -> List[Dict[str, Any]]:
        """All records of `.nv.info` sections: `attribute_sections` of `hoist cubin attributes --json`."""
        with as_path(self._data, self.label) as path:
            return answer("cubin attributes", path)["files"][0]["attribute_sections"]

    def relocations(self) -> List[Dict[str, Any]]:
        """All relocations: `relocations` of `hoist cubin relocs --json`."""
        with as_path(self._data, self.label) as path:
            return answer("cubin relocs", path)["files"][0]["relocations"]

    def __repr__(self) -> str:
        return f"<hoist.Cubin {self.label}: {self.arch}, {len(self.kernels)} kernels>"


@documented(
    index="Its number.",
    container="What it is: `fatbin`, `offload`, `bundle`, `compressed bundle`, `cubin`.",
    offset="Where it is in the file, in bytes.",
    size="Its size in bytes.",
    section="The section of the file, if it is in one.",
    entries="Its entries.",
)
class Region(NamedTuple):
    """A container of device code in a file."""

    index: int  # type: ignore[assignment]
    container: str
    offset: int
    size: int
    section: Optional[str]
    entries: "List[Entry]"


class Entry:
    """Code for one architecture in a container."""

    __slots__ = {
        "_fatbin": None,
        "_part": None,
        "region": "The number of its container.",
        "row": "What the container says of it: `entries` of `hoist fatbin list --json`, with `region` and `container`.",
    }

    def __init__(self, fatbin: "Fatbin", region: Dict[str, Any], row: Dict[str, Any], part: Optional[Tuple[int, int]] = None) -> None:
        self._fatbin = fatbin
        self._part = part
        self.region: int = region["index"]
        self.row: Dict[str, Any] = {"region": region["index"], "container": region["container"], **row}

    @property
    def index(self) -> int:
        """Its number in the container."""
        return self.row["index"]

    @property
    def kind(self) -> str:
        """What it is: `elf` (a cubin), `ptx`, `nvvm` ..."""
        return self.row["kind"]

    @property
    def arch(self) -> Optional[str]:
        """Its architecture: `sm_90a`, `compute_90`, `gfx90a`."""
        return self.row["arch"]

    @property
    def sm(self) -> Optional[int]:
        """The number in that: 90."""
        number = re.match(r"(?:sm|compute)_(\d+)", self.arch or "")
        return int(number[1]) if number else None

    @property
    def compression(self) -> Optional[str]:
        """How it is compressed: `zlib`, `lz4`, `lz4 frame`, `zstd`; None if it is not."""
        return self.row["compression"]

    @property
    def stored_size(self) -> int:
        """Bytes that it takes in the file."""
        return self.row["stored_size"]

    @property
    def size(self) -> int:
        """Bytes that it has when it is unpacked."""
        return self._part[1] if self._part else self.row["unpacked_size"]

    @property
    def data(self) -> bytes:
        """Its bytes, unpacked now. Raises `hoist.FormatError` if they are damaged or encrypted."""
        return self._fatbin._payload(self.row, self._part)

    def cubin(self) -> Cubin:
        """The cubin that it is."""
        return Cubin(self.data)

    def __bytes__(self) -> bytes:
        return self.data

    def __repr__(self) -> str:
        return f"<hoist.Entry {self.region}.{self.index}: {self.kind} {self.arch}, {self.size} bytes>"


class Fatbin:
    """Device code inside of a file: a fatbin, a library, a program, an object, an archive, LLVM's containers, a cubin.

    `source` is a path (which is mapped, not read: nobody may make the file shorter as long as this is used) or bytes. `search=False` looks only into the sections that are made for
    device code. Iterating gives every `hoist.Entry`; their bytes are unpacked when `Entry.data` is asked for.

    >>> fatbin = hoist.Fatbin("fixtures/cuda/gpu-13.0-sm_90.fatbin")
    >>> [(entry.kind, entry.arch) for entry in fatbin]
    [('elf', 'sm_90')]
    >>> [entry.data[:4] for entry in fatbin.select(sm=90)]
    [b'\\x7fELF']
    >>> fatbin.select(sm=80)
    []
    """

    __slots__ = {
        "_data": None,
        "errors": "What is damaged, as texts; the rest can be used.",
        "label": "What it is called in errors.",
        "regions": "The containers, in the order of the file, each a `hoist.Region`.",
    }

    def __init__(self, source: Source, *, search: bool = True) -> None:
        self.label, self._data = mapped(source)
        text, errors = _hoist.entries(self._data, search)
        self.errors: List[str] = errors
        self.regions: List[Region] = [self._region(row) for row in json.loads(bytes(text))]
        if errors and not self.regions:
            error = FormatError(f"{self.label}: {errors[0]}")
            error.file = self.label
            raise error

    def _region(self, row: Dict[str, Any]) -> Region:
        entries = [Entry(self, row, entry) for entry in row["entries"]]
        return Region(row["index"], row["container"], row["offset"], row["size"], row["section"], entries)

    @property
    def entries(self) -> List[Entry]:
        """All entries of all regions."""
        return [entry for region in self.regions for entry in region.entries]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> Entry:
        return self.entries[index]

    def rows(self) -> List[Dict[str, Any]]:
        """A row for each entry, for `pandas.DataFrame`: what `Entry.row` has."""
        return [entry.row for entry in self]

    def _payload(self, row: Dict[str, Any], part: Optional[Tuple[int, int]]) -> bytes:
        if row["container"] == "fatbin":
            data = _hoist.payload(self._data, self.label, row["offset"], (1 << 31) - 1)
        elif row["container"] == "compressed bundle" or row["compression"] is not None:
            raise UnsupportedError(f"{self.label}: region {row['region']}: a {row['container']} that is compressed as a whole")
        else:
            with octets(self._data) as view:
                data = bytes(view[row["offset"] : row["offset"] + row["stored_size"]])
        return data[part[0] : part[0] + part[1]] if part else data

    def select(self, sm: Union[int, str], cuda: Optional[Tuple[int, int]] = None) -> List[Entry]:
        """What a driver takes for a device of architecture `sm` (90, `"sm_90"`): an entry of each fatbin that has one.

        `cuda` is the version of CUDA that the driver knows, by default the newest. Of a concatenated entry it is the one image in it.
        """
        device = re.fullmatch(r"(?:sm_)?(\d+)", str(sm))
        if device is None or len(device[1]) > 9:
            raise ValueError(f"no architecture of a device: {sm!r}; 90 or 'sm_90'")
        if cuda is not None:
            if not isinstance(cuda, tuple) or len(cuda) != 2:
                raise TypeError(f"cuda is a version such as (12, 4), not {cuda!r}")
            for number in cuda:
                _number("cuda", number, 0, 16)
        chosen = []
        rows = {entry.row["offset"]: entry for entry in self if entry.row["container"] == "fatbin"}
        for _, choice in _hoist.select(self._data, self.label, int(device[1]), cuda, True):
            if choice is None:
                continue
            offset, part, _ = choice
            entry = rows.get(offset)
            if entry is not None:
                region = {"index": entry.region, "container": "fatbin"}
                chosen.append(Entry(self, region, entry.row, part))
        return chosen

    @overload
    def prune(
        self, keep: Union[str, Iterable[str]], output: None = None, *, allow_gaps: bool = False
    ) -> bytes: ...

    @overload
    def prune(
        self, keep: Union[str, Iterable[str]], output: "str | os.PathLike[str]", *, allow_gaps: bool = False
    ) -> Dict[str, Any]: ...

    def prune(
        self,
        keep: Union[str, Iterable[str]],
        output: "Optional[str | os.PathLike[str]]" = None,
        *,
        allow_gaps: bool = False,
    ) -> Any:
        """The file without the entries that are not kept; host files stay loadable.

        `keep` is what stays: `sm_90` (machine code), `compute_90` (PTX), `ptx`, `elf`, `nvvm` (all of a kind), or several. With
        `output`, a path, the file is written, and what was done is given (`hoist fatbin prune --json`); else its bytes are. Where an
        architecture that is kept would have no code for something that it runs now, that is an error, unless `allow_gaps`.
        """
        words = ["--keep", keep if isinstance(keep, str) else ",".join(keep)]
        if allow_gaps:
            words.append("--allow-gaps")
        with as_path(self._data, self.label) as path:
            if output is not None:
                return answer("fatbin prune", path, "-o", output, *words)
            with tempfile.TemporaryDirectory() as folder:
                pruned = os.path.join(folder, "pruned")
                answer("fatbin prune", path, "-o", pruned, *words)
                with open(pruned, "rb") as file:
                    return file.read()

    def __repr__(self) -> str:
        return f"<hoist.Fatbin {self.label}: {len(self.regions)} regions, {len(self)} entries>"
