"""What the tests have in common: the fixtures of the workspace, and a C compiler."""

from __future__ import annotations

import pathlib
import platform
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"


def skip(name: str, needs: str) -> None:
    """Says by name what a test needs: `cargo xtask python` counts these lines."""
    pytest.skip(f"skipped: {name}: needs {needs}")


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples and tests name files from the root of the workspace."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(autouse=True)
def examples_have(doctest_namespace) -> None:
    """What examples need not import."""
    import hoist

    doctest_namespace["hoist"] = hoist


def native_fixture(name: str) -> str:
    """A fixture for this machine."""
    if platform.machine() != "x86_64":
        skip(name, "x86-64: the fixture is for it")
    return str(FIXTURES / "x86_64" / name)


@pytest.fixture
def arguments() -> str:
    """An object with a function for each type and way in which arguments are passed."""
    return native_fixture("arguments-gcc12-O2.o")


@pytest.fixture
def elftest() -> str:
    """`float foo(int x) { return x + 12345678.f; }`"""
    return native_fixture("elftest.o")


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory):
    """Compiles C to the bytes of an object."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    folder = tmp_path_factory.mktemp("c")
    done = {}

    def compile_c(source: str, *options: str) -> bytes:
        if compiler is None:
            skip("compile_c", "a C compiler")
        key = (source, options)
        if key not in done:
            path = folder / f"{len(done)}.c"
            path.write_text(source)
            out = path.with_suffix(".o")
            subprocess.run([compiler, "-c", "-O1", "-fPIC", *options, str(path), "-o", str(out)], check=True)
            done[key] = out.read_bytes()
        return done[key]

    return compile_c
