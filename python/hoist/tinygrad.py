"""tinygrad on this loader.

    import hoist.tinygrad
    hoist.tinygrad.install()

From then on, objects that tinygrad's CPU back end compiles (by clang or LLVM) are laid out and relocated by hoist in place of
`tinygrad.runtime.support.elf.jit_loader`, and cubins of its NV back end are laid out and relocated by hoist in place of `elf_loader`
and the three relocations that `NVProgram` knows. What tinygrad's functions get and give stays as it is; what they get wrong or do not
know is right, or is refused by name: relocation types, calls that do not reach, `.bss`, alignment.

Versions 0.12, 0.13 and 0.14 are tested. `uninstall` takes it back; `with hoist.tinygrad.installed(): ...` does both.
"""

from __future__ import annotations

import contextlib
import importlib
import struct
import sys
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import _hoist
from .errors import Error

__all__ = ["elf_loader", "install", "installed", "is_installed", "jit_loader", "uninstall"]

_ELF = "tinygrad.runtime.support.elf"
#: `EM_CUDA`, and `ET_EXEC`: a cubin that is linked.
_CUDA, _LINKED = 190, 2

#: What tinygrad has itself, by name, while ours is in its place.
_original: Dict[str, Callable[..., Any]] = {}


def _elf() -> ModuleType:
    return importlib.import_module(_ELF)


def jit_loader(obj: bytes, base: int = 0, link_libs: Optional[List[Any]] = None) -> bytes:
    """In place of tinygrad's: the bytes of an object, relocated for `base`; for any address if that is 0, as with tinygrad's compilers,
    which do not know it yet. `link_libs` are asked for symbols as tinygrad asks them.

    Raises `hoist.RelocationError`, `hoist.LinkError` and others by name.
    """

    def ask(name: str) -> Optional[Tuple[int, bool, None]]:
        return _elf().link_sym(name, link_libs or []), True, None

    return _hoist.flat(obj, base or None, ask)


class _Address(int):
    """An offset in a cubin's image that, added to the address of the image, has all of it relocated for that address.

    `NVProgram` adds the address that it has got for the image to the second field of a relocation of type `R_CUDA_64`, and writes 8
    bytes with the sum. There is one such "relocation", over the first 8 bytes of the image; what is written there are those bytes.
    """

    image: Any
    plan: Any

    def __radd__(self, address: int) -> int:
        relocated = self.plan.write(address)
        self.image[: len(relocated)] = relocated
        return struct.unpack_from("<Q", relocated)[0]


def elf_loader(blob: bytes, force_section_align: int = 1, link_libs: Optional[List[Any]] = None) -> Tuple[memoryview, List[Any], List[Any]]:
    """In place of tinygrad's: image, sections and relocations of a file. Linked cubins are laid out and relocated by hoist, which
    knows all types; others by tinygrad.
    """
    original = _original.get("elf_loader", _elf().elf_loader)
    kind, machine = struct.unpack_from("<HH", blob, 16) if len(blob) >= 20 else (0, 0)
    plan = None
    if machine == _CUDA and kind == _LINKED and blob[4] == 2:
        # what hoist does not load (before sm_70), tinygrad may
        with contextlib.suppress(Error):
            plan = _hoist.DeviceImage(blob)
    if plan is None:
        return original(blob, force_section_align, link_libs)
    elf = _elf()
    sections = _sections(elf, blob)
    image = memoryview(bytearray(plan.write(0)))
    for section, offset in zip(sections, plan.sections):
        if offset is not None:
            section.header.sh_addr = offset
    start = _Address(0)
    start.image, start.plan = image, plan
    # R_CUDA_64
    return image, sections, [(0, start, 2, 0)] if len(image) >= 8 else []


def _sections(elf: ModuleType, blob: bytes) -> List[Any]:
    """The sections of a file of 64 bits as tinygrad has them."""
    libc = elf.libc
    header = libc.Elf64_Ehdr.from_buffer_copy(blob)
    rows = (libc.Elf64_Shdr * header.e_shnum).from_buffer_copy(blob, header.e_shoff)
    names = rows[header.e_shstrndx].sh_offset
    found = []
    for row in rows:
        start = names + row.sh_name
        name = blob[start : blob.find(b"\0", start)].decode()
        found.append(elf.ElfSection(name, row, blob[row.sh_offset : row.sh_offset + row.sh_size]))
    return found


def _replace(name: str, old: Callable[..., Any], new: Callable[..., Any]) -> None:
    """Puts a function in the place of another in all modules of tinygrad that have it."""
    for module_name, module in list(sys.modules.items()):
        if module_name.split(".")[0] == "tinygrad" and getattr(module, name, None) is old:
            setattr(module, name, new)


def install() -> None:
    """Gives tinygrad this loader. Installing twice does nothing. Raises ImportError if there is no tinygrad."""
    elf = _elf()
    for ours in (jit_loader, elf_loader):
        name = ours.__name__
        if name not in _original:
            _original[name] = getattr(elf, name)
            _replace(name, _original[name], ours)


def uninstall() -> None:
    """Gives tinygrad its own loader back. Programs that are loaded stay."""
    for ours in (jit_loader, elf_loader):
        old = _original.pop(ours.__name__, None)
        if old is not None:
            _replace(ours.__name__, ours, old)


def is_installed() -> bool:
    """Whether tinygrad has this loader."""
    return bool(_original)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """`install` for the duration of a `with`."""
    was = is_installed()
    install()
    try:
        yield
    finally:
        if not was:
            uninstall()
