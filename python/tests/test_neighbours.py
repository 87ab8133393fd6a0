"""What others make of this package, and this package of theirs: type checkers, llvmlite, Numba, TVM, cffi."""

from __future__ import annotations

import importlib.util
import pathlib
import shutil
import subprocess
import sys
import sysconfig

from conftest import FIXTURES, ROOT, skip

import hoist

#: What a user writes, and the types that a checker sees.
TYPES = {
    'hoist.load("a.o")': "hoist._load.Module | Any",
    'hoist.load("a.o").symbols()': "list[dict[str, Any]] | Any",
    "hoist.callback(len)": "hoist._hoist.Callback",
    "hoist.callback(args=[hoist.i32])(len)": "hoist._hoist.Callback",
    "hoist.function(1, [int], float)": "hoist._hoist.Function",
    "hoist.nv.Device().buffer(4).read()": "bytes",
    'hoist.Fatbin("a").prune(keep="elf")': "bytes",
    'hoist.Fatbin("a").prune(keep="elf", output="b")': "dict[str, Any]",
    'hoist.Cubin("a").kernels["k"].occupancy().fraction': "float",
    'hoist.link("a.o", base=0).symbols[0]': "dict[str, Any]",
    "hoist.Error().offset": "int | None",
}


def test_type_checkers_see_types(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        skip("test_type_checkers_see_types", "mypy")
    user = tmp_path / "user.py"
    user.write_text("import hoist\n" + "".join(f"reveal_type({one})\n" for one in TYPES))
    words = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "--no-error-summary"]
    own = subprocess.run([*words, "-p", "hoist"], capture_output=True, text=True)
    assert (own.returncode, own.stdout) == (0, ""), own.stdout + own.stderr
    seen = subprocess.run([*words, str(user)], capture_output=True, text=True, cwd=tmp_path).stdout
    told = [line.split('"')[1].replace("builtins.", "") for line in seen.splitlines() if "Revealed type" in line]
    assert told == list(TYPES.values()), seen


def test_stubs_are_what_the_checkers_own_comparison_finds(tmp_path):
    """Every parameter, default and attribute of the native part stands in its stub."""
    if importlib.util.find_spec("mypy") is None:
        skip("test_stubs_are_what_the_checkers_own_comparison_finds", "mypy")
    allowed = tmp_path / "allowed"
    # a list that its maker adds, of names that the stub has one by one
    allowed.write_text("hoist._hoist.__all__\n")
    words = [sys.executable, "-m", "mypy.stubtest", "hoist._hoist", "--concise", "--allowlist", str(allowed)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def example(name: str) -> str:
    """What an example prints."""
    done = subprocess.run([sys.executable, str(ROOT / "python/examples" / name)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_objects_of_llvmlite_run():
    if importlib.util.find_spec("llvmlite") is None:
        skip("test_objects_of_llvmlite_run", "llvmlite")
    assert example("llvmlite_objects.py") == "5.0\n10.0\n"


def test_the_cache_of_numba_runs():
    if importlib.util.find_spec("numba") is None:
        skip("test_the_cache_of_numba_runs", "numba")
    assert example("numba_cache.py") == "3.375 True\n"


def test_operators_of_tvm_run():
    if importlib.util.find_spec("tvm") is None:
        skip("test_operators_of_tvm_run", "tvm")
    assert example("tvm_objects.py") == "[3.0, 6.0, 9.0]\n-1\n"


def test_modules_of_cffi_need_no_linker():
    if importlib.util.find_spec("cffi") is None:
        skip("test_modules_of_cffi_need_no_linker", "cffi")
    if shutil.which("cc") is None:
        skip("test_modules_of_cffi_need_no_linker", "a C compiler")
    if not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists():
        skip("test_modules_of_cffi_need_no_linker", "Python's headers")
    assert example("cffi_objects.py") == "5.0 1 42\n"


def test_the_package_says_that_it_has_types():
    assert (pathlib.Path(hoist.__file__).parent / "py.typed").exists()


def test_rows_become_data_frames():
    if importlib.util.find_spec("pandas") is None:
        skip("test_rows_become_data_frames", "pandas")
    import pandas

    fatbin = hoist.Fatbin(FIXTURES / "fatbin" / "libt.so")
    entries = pandas.DataFrame(fatbin.rows())
    assert list(entries["arch"]) == [entry.arch for entry in fatbin] and len(entries) > 1
    assert entries["unpacked_size"].sum() == sum(entry.size for entry in fatbin)
    kernels = pandas.DataFrame(hoist.Cubin(FIXTURES / "cuda" / "kernels-13.5-sm_80.cubin").rows()).set_index("name")
    assert kernels.loc["shared_memory", "shared"] > 0 and "code" not in kernels
