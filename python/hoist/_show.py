"""What ELF files contain."""

from __future__ import annotations

from typing import Any, Dict, Union

from ._bytes import Source, label_of, path_of
from ._command import answer, as_path

#: What can be asked for.
_PARTS = ("header", "segments", "sections", "dynamic", "symbols", "relocations", "notes")


def show(source: Source, *parts: str) -> "Union[Dict[str, Any], Any]":
    """What an ELF file contains: a dictionary; of an archive a list of them, one a member.

    `parts` are what is wanted of `header`, `segments`, `sections`, `dynamic`, `symbols`, `relocations`, `notes`; without any, all.
    Keys are those of `hoist show --json`, which `hoist-tool/JSON.md` lists; rows are dictionaries, as pandas wants them.

    >>> file = hoist.show("fixtures/x86_64/elftest.o", "header", "relocations")
    >>> file["header"]["machine_name"]
    'EM_X86_64'
    >>> [(row["offset"], row["type_name"], row["addend"]) for row in file["relocations"][0]["records"]]
    [(16, 'R_X86_64_PC32', -4)]
    >>> [one["name"] for one in hoist.show("fixtures/x86_64/elftest.o", "sections")["sections"]][:3]
    ['', '.strtab', '.text']
    """
    for part in parts:
        if part not in _PARTS:
            raise ValueError(f"no part of a file: {part!r}; there are {', '.join(_PARTS)}")
    with as_path(source) as path:
        files = answer("show", *(f"--{part}" for part in parts), "--", path)["files"]
        is_archive = any(file["member"] is not None for file in files)
    if path_of(source) is None:
        for file in files:
            file["file"] = label_of(source)
    return files if is_archive else files[0]
