"""A plug-in of pytest for tinygrad's own tests (`cargo xtask tinygrad`): gives tinygrad this loader where HOIST_SUITE is `with`, and writes to
HOIST_SUITE_LOG what becomes of each test, and how many objects were loaded."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict

#: What becomes of a test whose parts come to several things.
_ORDER = ["passed", "skipped", "failed", "error"]

_outcomes: Dict[str, str] = {}
_loads = 0


def pytest_configure(config: Any) -> None:
    import tinygrad.runtime.support.elf as elf

    if os.environ["HOIST_SUITE"] == "with":
        import hoist.tinygrad

        hoist.tinygrad.install()
    loader = elf.jit_loader

    def counting(*words: Any, **more: Any) -> bytes:
        global _loads
        _loads += 1
        return loader(*words, **more)

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "tinygrad" and getattr(module, "jit_loader", None) is loader:
            module.jit_loader = counting  # type: ignore[attr-defined]


def _note(test: str, outcome: str) -> None:
    before = _outcomes.get(test, "passed")
    _outcomes[test] = max(before, outcome, key=_ORDER.index)


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _note(report.nodeid, "error")


def pytest_runtest_logreport(report: Any) -> None:
    _note(report.nodeid, "error" if report.failed and report.when != "call" else report.outcome)


def pytest_sessionfinish(session: Any) -> None:
    with open(os.environ["HOIST_SUITE_LOG"], "w") as log:
        for test, outcome in _outcomes.items():
            print(outcome, test.replace("\n", " "), file=log)
        print("loads", _loads, file=log)
