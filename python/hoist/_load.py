"""Code into this process: `load`, and what it gives."""

from __future__ import annotations

import operator
import os
import struct
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
    overload,
)

from . import _hoist
from ._bytes import Source, head, path_of, read, read_unless
from ._link import address_of, flat
from ._rows import documented
from .errors import NoSymbolError

_ARCHIVES = (b"!<arch>\n", b"!<thin>\n")

#: All types of arguments and results, by name.
types: Dict[str, _hoist.Type] = {
    name: getattr(_hoist, name)
    for name in ("void", "bool_", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "ptr", "cstr")
}

_PLAIN: Dict[Any, _hoist.Type] = {int: _hoist.i64, float: _hoist.f64, bool: _hoist.bool_, str: _hoist.cstr, None: _hoist.void}

#: What says a type: `hoist.i32`, its name, or int (i64), float (f64), bool, str (cstr), None (void).
TypeLike = Union[_hoist.Type, str, type, None]
#: What a symbol can stand for.
Symbol = Union[int, _hoist.Callback, _hoist.Function, Any]


def _type(wanted: TypeLike) -> _hoist.Type:
    if isinstance(wanted, _hoist.Type):
        return wanted
    try:
        return types[wanted] if isinstance(wanted, str) else _PLAIN[wanted]
    except (KeyError, TypeError):
        raise TypeError(f"no type of an argument or result: {wanted!r}; there are {', '.join(types)}") from None


def _signature(args: Iterable[TypeLike], ret: TypeLike) -> Tuple[Tuple[_hoist.Type, ...], _hoist.Type]:
    if isinstance(args, str) or not isinstance(args, Iterable):
        raise TypeError(f"args is a list of types, not {args!r}")
    return tuple(map(_type, args)), _type(ret)


@overload
def callback(
    function: Callable[..., Any], *, args: Iterable[TypeLike] = (), ret: TypeLike = None
) -> _hoist.Callback: ...


@overload
def callback(
    function: None = None, *, args: Iterable[TypeLike] = (), ret: TypeLike = None
) -> Callable[[Callable[..., Any]], _hoist.Callback]: ...


def callback(
    function: Optional[Callable[..., Any]] = None, *, args: Iterable[TypeLike] = (), ret: TypeLike = None
) -> Any:
    """A function of Python's that machine code can call: its address is `callback.address`.

    It stays as long as the object does; a module keeps those that it was loaded with (`symbols`). What it raises comes out of the
    call of machine code that led to it; see `hoist.Callback`. Also as a decorator:

    >>> @hoist.callback(args=[hoist.i32], ret=hoist.i32)
    ... def twice(number):
    ...     return 2 * number
    >>> hoist.function(twice.address, args=[hoist.i32], ret=hoist.i32)(21)
    42
    """
    arguments, result = _signature(args, ret)
    if function is None:
        return lambda function: _hoist.Callback(function, arguments, result)
    if not callable(function):
        raise TypeError(f"not callable: {function!r}")
    return _hoist.Callback(function, arguments, result)


def function(
    address: int,
    args: Iterable[TypeLike] = (),
    ret: TypeLike = None,
    *,
    name: Optional[str] = None,
    nogil: bool = True,
    owner: Any = None,
) -> _hoist.Function:
    """The function at an address, whoever put it there. `owner` is kept as long as the function.

    >>> import ctypes
    >>> labs = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p).value
    >>> hoist.function(labs, args=[hoist.i64], ret=hoist.i64)(-5)
    5
    """
    arguments, result = _signature(args, ret)
    address = operator.index(address)
    if address == 0:
        raise ValueError("there is no function at address 0")
    return _hoist.function(address, name or f"{address:#x}", arguments, result, nogil, owner)


@documented(
    name="Its name: `.text`.",
    address="Its address; None if it is not loaded.",
    size="Its size in bytes.",
    flags="The word of flags (`SHF_ALLOC` and others).",
    object="The object that it is of: a path, or `<bytes>`.",
    data="Its bytes in memory, without a copy; writable if the code's are. They keep the memory. None if it is not loaded.",
)
class Section(NamedTuple):
    """A section of a module."""

    name: str
    address: Optional[int]
    size: int
    flags: int
    object: str
    data: Optional[memoryview]


_Self = TypeVar("_Self", bound="_Code")


class _Code:
    """What modules and libraries have in common."""

    __slots__ = ("__weakref__", "_keep", "_native")

    def __init__(self, native: Any, keep: Any = None) -> None:
        self._native = native
        self._keep = keep

    def fn(
        self, name: str, args: Iterable[TypeLike] = (), ret: TypeLike = None, *, nogil: bool = True
    ) -> _hoist.Function:
        """The function `name`, to be called with arguments of the types `args`; its result is of type `ret`.

        `nogil=False` keeps the global lock during calls: a few nanoseconds less for a function that takes no longer itself.
        Raises `hoist.NoSymbolError` if there is no such function. The function keeps its module.
        """
        arguments, result = _signature(args, ret)
        return self._native.function(name, arguments, result, nogil, self)

    def address_of(self, name: str) -> int:
        """The address of the symbol `name`, a function or a variable. Raises `hoist.NoSymbolError` if there is none."""
        return self._native.address(name)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        try:
            self._native.address(name)
        except (NoSymbolError, UnicodeEncodeError):
            return False
        return True

    @property
    def extent(self) -> Tuple[int, int]:
        """Address and size in bytes of the memory that it occupies."""
        return self._native.extent()

    @property
    def is_loaded(self) -> bool:
        """Whether it was not unloaded."""
        return self._native.is_loaded()

    def unload(self) -> None:
        """Gives the code up. Functions of it raise `hoist.UnloadedError` from now on.

        The memory goes, after destructors have run, when nobody uses it any more: modules that were loaded with this one, views
        of sections. Raises `hoist.BusyError` while calls are not over. Unloading twice does nothing. An object that is no longer
        referred to is unloaded, too.
        """
        if self._native.is_loaded():
            self._native.unload()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unload()

    def _named(self) -> str:
        return "unloaded" if not self.is_loaded else "at {:#x}, {} bytes".format(*self.extent)


class Module(_Code):
    """Code that was loaded together: what `hoist.load` gives.

    It is unloaded when nobody refers to it or its functions any more, or by `unload`, or at the end of a `with`.

    >>> with hoist.load("fixtures/x86_64/elftest.o") as module:
    ...     "foo" in module, [row["name"] for row in module.symbols() if row["type"] == "func"]
    (True, ['foo'])
    >>> module.is_loaded
    False
    """

    __slots__ = ()

    def symbols(self) -> List[Dict[str, Any]]:
        """What the objects define: rows with `name`, `address`, `size`, `type` (`func`, `object`), `binding` (`global`, `local`,
        `weak`), `object` (its file) and `section` (a number)."""
        return self._native.symbols()

    def symbol_at(self, address: int) -> Optional[Tuple[Dict[str, Any], int]]:
        """The symbol that holds an address, and how far behind its start that is; None if none does."""
        return self._native.symbol_at(address)

    def sections(self) -> List[Section]:
        """The sections of all objects, with their bytes as they are in memory.

        >>> module = hoist.load("fixtures/x86_64/elftest.o")
        >>> [bytes(section.data[:3]).hex() for section in module.sections() if section.name == ".text"]
        ['554889']
        """
        rows = self._native.sections()
        return [
            Section(
                row["name"],
                row["address"],
                row["size"],
                row["flags"],
                row["object"],
                self._native.section_bytes(number),
            )
            for number, row in enumerate(rows)
        ]

    def segments(self) -> List[Dict[str, Any]]:
        """The memory by permission: rows with `address`, `size` and `permissions` (`r-x`)."""
        return [{"address": address, "size": size, "permissions": text} for address, size, text in self._native.segments()]

    @property
    def sizes(self) -> Dict[str, int]:
        """Bytes of `code`, `read_only`, `writable` and `thread_local` memory."""
        return self._native.sizes()

    def find_demangled(self, name: str) -> List[Dict[str, Any]]:
        """The symbols that are called so in the source, as rows of `symbols`: `space::name(int)`, or, whatever it takes, `space::name`."""
        return self._native.find_demangled(name)

    @property
    def bytes_in_huge_pages(self) -> int:
        """Bytes of its memory that are in huge pages now: what came of `huge_pages=True`."""
        return self._native.bytes_in_huge_pages()

    def initialize(self) -> None:
        """Runs constructors, if the module was loaded with `initialize=False` and they were not run."""
        self._native.initialize()

    def replace(
        self,
        names: Union[str, Iterable[str], None],
        new: "Module | Source | Sequence[Source]",
        *,
        keep_data: bool = True,
        libs: Iterable[Any] = (),
        symbols: Any = None,
    ) -> "Replacement":
        """Leads all who call the functions `names` to those of `new`, until the replacement is undone or forgotten.

        The module must have been loaded with `replaceable=True`, and its code compiled with `-fPIC`. `new` is a module, or objects,
        which are loaded with this module before `libs`; with `keep_data` they use this module's variables, where and as they
        are, instead of their own of the same names. `names` may be one name, several, or None: all functions of `new` that this
        module has, too. Threads that are inside of a function stay in the old one until they come back.

        The types of a replacement are those of what it replaces: nobody can check that.
        """
        if not isinstance(new, Module):
            objects = list(new) if isinstance(new, (list, tuple)) else [new]
            new = _load(objects, [self, *libs], symbols, _REPLACING, keep=self if keep_data else None)
        if names is None:
            mine = {row["name"] for row in self.symbols() if row["type"] == "func" and row["binding"] != "local"}
            wanted = [
                row["name"]
                for row in new.symbols()
                if row["type"] == "func" and row["binding"] != "local" and row["name"] in mine
            ]
        else:
            wanted = [names] if isinstance(names, str) else list(names)
        done: List[Any] = []
        try:
            for name in wanted:
                done.append(self._native.replace(name, new._native))
        except BaseException:
            for one in reversed(done):
                one.undo()
            raise
        return Replacement(self, new, tuple(wanted), done)

    def __repr__(self) -> str:
        return f"<hoist.Module {self._named()}>"


class Replacement:
    """Functions that stand for others: what `Module.replace` gives. Undone by `undo`, at the end of a `with`, or when nobody refers
    to it any more."""

    __slots__ = {
        "_done": None,
        "names": "Which functions.",
        "new": "The module whose functions stand for those of `old`.",
        "old": "The module whose functions were replaced.",
    }

    def __init__(self, old: Module, new: Module, names: Tuple[str, ...], done: List[Any]) -> None:
        self.old = old
        self.new = new
        self.names = names
        self._done = done

    def undo(self) -> None:
        """Puts the functions back."""
        for one in reversed(self._done):
            one.undo()
        self._done = []

    @property
    def is_in_force(self) -> bool:
        """Whether it was not undone."""
        return bool(self._done)

    def __enter__(self) -> "Replacement":
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        state = "" if self.is_in_force else " undone"
        return f"<hoist.Replacement of {', '.join(self.names)}{state}>"


class Library(_Code):
    """A shared library that was loaded out of bytes: what `hoist.load` gives of one.

    The dynamic loader knows nothing of it: it can be loaded several times, each time with variables of its own.
    """

    __slots__ = ()

    def fn(
        self,
        name: str,
        args: Iterable[TypeLike] = (),
        ret: TypeLike = None,
        *,
        nogil: bool = True,
        version: Optional[str] = None,
    ) -> _hoist.Function:
        """The function `name`, to be called with arguments of the types `args`; its result is of type `ret`: as `dlsym` has it, the
        library's own of the default version, else that of the first library that has one of those that it needs. With `version` the
        one of that version, as `dlvsym` has it.

        `nogil` and what is raised are as for `Module.fn`.
        """
        arguments, result = _signature(args, ret)
        return self._native.function(name, arguments, result, nogil, self, version)

    @property
    def name(self) -> str:
        """Its name (`DT_SONAME`); empty if it has none."""
        return self._native.name

    def symbol_at(self, address: int) -> Optional[Tuple[str, int]]:
        """The name of the function that holds an address, and how far behind its start that is; None if none does. Functions that are
        not exported have names if the file has its symbol table still."""
        return self._native.symbol_at(address)

    def __repr__(self) -> str:
        return f"<hoist.Library {self._named()}>"


def load(
    *objects: "Source | Iterable[Source]",
    libs: Iterable[Any] = (),
    symbols: Union[Mapping[str, Symbol], Callable[[str], Optional[Symbol]], None] = None,
    process: bool = True,
    initialize: bool = True,
    replaceable: bool = False,
    relax: bool = True,
    dual_mapping: bool = False,
    huge_pages: bool = False,
    limit: Optional[int] = None,
    arena: Optional[_hoist.Arena] = None,
    gdb: bool = False,
    perf_map: bool = False,
    jitdump: "Union[str, os.PathLike[str], None]" = None,
    copy_relocations: bool = False,
    lazy: bool = False,
    needed: Union[Mapping[str, Any], Callable[[str], Any], None] = None,
    observer: Optional[Callable[[str, List[Dict[str, Any]]], Optional[Callable[[], Any]]]] = None,
) -> "Union[Module, Any]":
    """Loads objects into this process: a `hoist.Module`; of one shared library a `hoist.Library`.

    `objects` are paths, or bytes of any kind (bytes, bytearray, memoryview, mmap, numpy ...), of relocatable objects and static
    libraries. Of a static library beside objects those members join that somebody asks for, as with linkers; of one alone, all.
    What is constant is not copied but kept; what may change is copied. Pages of a shared library's file are mapped, as dlopen does:
    nobody writes to the file or makes it shorter as long as the library is there, but it may be removed, or another one put in its place.
    Where that cannot be, give bytes; with an `observer`, `gdb`, `perf_map` or `jitdump` the file is read.

    Symbols that no object defines are looked for in this order:

    `symbols`      a dictionary of names, or a function that is asked for names: an address, a `hoist.callback`, a function of
                   another module, an object with a buffer (for variables), or None
    `libs`         modules and libraries that were loaded before, static libraries and objects (paths or bytes; constructors of
                   objects run at once), shared libraries: bytes, or names and paths as dlopen takes them (`"libz.so.1"`)
    `process`      libc, libm, and what else is loaded for all; False leaves them out

    All that is used of these stays as long as the module.

    `initialize`   whether constructors run (`Module.initialize` does so later)
    `replaceable`  whether functions can be replaced later (`Module.replace`)
    `relax`        whether instructions that use the global offset table become direct ones
    `dual_mapping` writes code through other addresses than those where it runs: no page becomes executable that was writable
    `huge_pages`   asks for huge pages for large code
    `limit`        bytes that the module may have, and each shared library and object among `libs`
    `arena`        a `hoist.Arena`: memory that small modules share
    `gdb`, `perf_map`  tells a debugger, or writes names to /tmp/perf-PID.map
    `jitdump`      a folder: writes code and lines to jit-PID.dump there, for `perf inject --jit`
    `observer`     is called as `observer(name, functions)` when code is in place and none of it has run: with the name of a library, empty
                   of a module, and rows with `name`, `address`, `size`, `object` (a number) and `is_stub`. What it gives, if
                   not None, is called when the code goes
    `copy_relocations`  whether variables of libraries may be moved to where code without -fPIC reaches them, as linkers of
                   executables have it; no other thread may use them meanwhile

    Of shared libraries, as `objects` or as bytes among `libs`:

    `lazy`         leaves functions that nobody has to their first call; a call of one that there is not even then ends the process
    `needed`       a dictionary of names, or a function that is asked for names of libraries that are needed, before the dynamic loader:
                   bytes, a path, a `hoist.Library`, or None. So a program has libraries inside of itself, in an archive

    A shared library alone has `libs`, `symbols`, `limit`, `gdb`, `perf_map`, `jitdump`, `observer`, and these two; others are refused.

    Raises `hoist.FormatError`, `hoist.UndefinedSymbolError`, `hoist.RelocationError`, `hoist.LinkError`, `hoist.ResourceError`,
    `hoist.LibraryError`; nothing stays loaded then.

    >>> module = hoist.load("fixtures/x86_64/missing.o", symbols={
    ...     "hoist_fixture_missing": hoist.callback(lambda: 7, ret=hoist.i32),
    ... })
    >>> module.fn("calls_missing", ret=hoist.i32)()     # int calls_missing(void) { return hoist_fixture_missing() + 1; }
    8
    """
    wanted = flat(objects)
    if isinstance(libs, (str, bytes, os.PathLike)):
        raise TypeError("libs is a list of libraries, not one")
    if not wanted:
        raise TypeError("load() needs an object")
    find = None if needed is None else _needed(needed)
    given = (
        replaceable, relax, dual_mapping, huge_pages, limit, arena, gdb, perf_map, jitdump, copy_relocations, lazy, find, observer
    )  # fmt: skip
    options = None if given == _PLAIN_OPTIONS else dict(zip(_OPTIONS, given))
    return _load(wanted, list(libs), symbols, options, process=process, initialize=initialize)


#: Options of the native part, and what they are if nothing is said.
_OPTIONS = (
    "replaceable",
    "relax",
    "dual_mapping",
    "huge_pages",
    "limit",
    "arena",
    "gdb",
    "perf_map",
    "jitdump",
    "copy_relocations",
    "lazy",
    "needed",
    "observer",
)
_PLAIN_OPTIONS = (False, True, False, False, None, None, False, False, None, False, False, None, None)
#: Those that a shared library has not; what cannot be done for it is not done silently.
_OF_OBJECTS = ("replaceable", "dual_mapping", "huge_pages", "arena", "copy_relocations")
#: Those of what takes the place of functions.
_REPLACING = {**dict(zip(_OPTIONS, _PLAIN_OPTIONS)), "replaceable": True}

#: `ET_REL` and `ET_DYN` in the header of an ELF file.
_OBJECT = 1
_SHARED = 3


def _type_of(start: bytes) -> Optional[int]:
    """The type of an ELF file whose bytes begin so; None of others."""
    if len(start) < 20 or start[:4] != b"\x7fELF":
        return None
    order = ">" if start[5] == 2 else "<"
    return struct.unpack_from(f"{order}H", start, 16)[0]


def _is_shared(start: bytes) -> bool:
    """Whether bytes that begin so are a shared library."""
    return _type_of(start) == _SHARED


def _is_code(path: str) -> bool:
    """Whether a path is that of an object or an archive, which are not for dlopen."""
    if "\0" in path or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        start = file.read(20)
    return start[:8] in _ARCHIVES or _type_of(start) == _OBJECT


def _load(
    objects: List[Any],
    libs: List[Any],
    symbols: Any,
    options: Optional[Dict[str, Any]],
    *,
    process: bool = True,
    initialize: bool = True,
    keep: Optional[Module] = None,
) -> Any:
    sources, opened, kept = _sources(libs, options, process)
    parts: List[Tuple[str, Any]] = []
    archives: List[Any] = []
    shared: List[Any] = []
    for one in objects:
        # pages of a library's file are mapped
        label, data, start = read_unless(one, _is_shared)
        if start[:8] in _ARCHIVES:
            archives.append(_archive(one, label, data))
        elif _is_shared(start):
            shared.append((one, label, data))
        else:
            parts.append((label, data))
    names, ask = _names(symbols)
    for one, label, data in shared:
        if not parts and not archives:
            _refuse_for_library(options, process, initialize)
        sources.append(_hoist.open_library(data, label, names, ask, sources, path_of(one), options))
    if shared and not parts and not archives:
        if len(shared) == 1:
            return Library(sources[-1], (kept, sources))
        raise TypeError("several shared libraries and no object: load one at a time, the others as its libs")
    if parts:
        sources.extend(archives)
    else:
        for archive in archives:
            parts.extend(("<member>", member) for member in archive.members() if member[:4] == b"\x7fELF")
    native = _hoist.load(parts, names, ask, sources, opened, process, None if keep is None else keep._native, options)
    if initialize:
        native.initialize()
    return Module(native, kept)


def _refuse_for_library(options: Optional[Dict[str, Any]], process: bool, initialize: bool) -> None:
    """Raises if something is wanted of a shared library that only objects have."""
    wanted = [] if options is None else [f"{name}={options[name]!r}" for name in _OF_OBJECTS if options[name]]
    kept = (("process", process), ("initialize", initialize), ("relax", options is None or options["relax"]))
    wanted += [f"{name}=False" for name, value in kept if not value]
    if wanted:
        raise TypeError(f"a shared library is not loaded with {', '.join(wanted)}")


def _needed(needed: Any) -> Callable[[str], Any]:
    """Who is asked for libraries that are needed, as the native part wants it."""
    if not callable(needed) and not isinstance(needed, Mapping):
        raise TypeError(f"needed is a dictionary or a function, not {type(needed).__name__}")
    ask = needed if callable(needed) else needed.get

    def find(name: str) -> Any:
        found = ask(name)
        if found is None:
            return None
        return found._native if isinstance(found, Library) else read(found)[1]

    return find


def _archive(one: Any, label: str, data: Any) -> Any:
    return _hoist.Archive(data, label, path_of(one))


def _sources(
    libs: List[Any], options: Optional[Dict[str, Any]], process: bool
) -> Tuple[List[Any], List[str], List[Any]]:
    """Where symbols come from: what the native part asks, libraries for dlopen, and what must be kept."""
    sources: List[Any] = []
    opened: List[str] = []
    kept: List[Any] = []
    for lib in libs:
        if isinstance(lib, _Code):
            sources.append(lib._native)
            kept.append(lib)
        else:
            path = path_of(lib)
            if path is not None and not _is_code(path):
                if "\0" in path:
                    raise ValueError(f"embedded null byte in the name of a library: {path!r}")
                # with a slash dlopen takes it for a path
                is_file = os.path.isfile(path) and os.path.getsize(path) > 0
                opened.append(os.path.join(".", path) if is_file and os.sep not in path else path)
                continue
            label, data = read(lib)
            start = head(data)
            if start[:8] in _ARCHIVES:
                sources.append(_archive(lib, label, data))
            elif _is_shared(start):
                sources.append(_hoist.open_library(data, label, {}, None, sources, None, options))
            else:
                native = _hoist.load([(label, data)], {}, None, list(sources), [], process, None, options)
                # nobody else can
                native.initialize()
                sources.append(native)
    return sources, opened, kept


def _names(symbols: Any) -> Tuple[Dict[str, Tuple[int, bool, Any]], Optional[Callable[[str], Any]]]:
    """Symbols as the native part wants them: those that are known, and who is asked for others."""
    if callable(symbols):
        return {}, lambda name: _given(name, symbols(name))
    if symbols is None:
        return {}, None
    if not isinstance(symbols, Mapping):
        raise TypeError(f"symbols is a dictionary or a function, not {type(symbols).__name__}")
    all_of_them = {name: _given(name, value) for name, value in symbols.items()}
    return {name: given for name, given in all_of_them.items() if given is not None}, None


def _given(name: Any, value: Any) -> Optional[Tuple[int, bool, Any]]:
    """Address of what a symbol stands for, whether it is a function, and what keeps it."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a symbol is a str, not {name!r}")
    if value is None:
        return None
    if hasattr(type(value), "__index__") and not hasattr(type(value), "__len__"):
        return address_of(name, value), False, None
    try:
        return _hoist.address_of(value)
    except TypeError as error:
        raise TypeError(f"symbol {name}: {error}") from None
