"""Named tuples whose fields say in `help()` what they are."""

from __future__ import annotations

from typing import Callable, Type, TypeVar

_Row = TypeVar("_Row", bound=tuple)


def documented(**fields: str) -> Callable[[Type[_Row]], Type[_Row]]:
    """Gives fields of a named tuple their documentation."""

    def document(row: Type[_Row]) -> Type[_Row]:
        for name, text in fields.items():
            getattr(row, name).__doc__ = text
        return row

    return document
