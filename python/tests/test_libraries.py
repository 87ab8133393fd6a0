"""Shared libraries out of bytes: what they need, what they lack, versions, who is told; and variables that move."""

from __future__ import annotations

import io
import platform
import subprocess
import sys
import tarfile
import zipfile

import hoist
import pytest
from conftest import skip

BASE = "int count; int base(int x) { ++count; return 10 * x; }"
USER = "int base(int x); int used(int x) { return base(x) + 1; }"


@pytest.fixture
def shared(compile_c, tmp_path):
    """Links a shared library: its bytes."""

    def shared(name: str, source: str, *options: str) -> bytes:
        (tmp_path / f"{name}.o").write_bytes(compile_c(source, "-fno-toplevel-reorder" if "symver" in source else "-fPIC"))
        words = ["cc", "-shared", f"-Wl,-soname,{name}", f"{name}.o", "-o", name, *options]
        subprocess.run(words, cwd=tmp_path, check=True)
        return (tmp_path / name).read_bytes()

    return shared


def used(library, x):
    return library.fn("used", args=[hoist.i32], ret=hoist.i32)(x)


def test_what_is_needed_comes_out_of_the_program(shared, tmp_path):
    base = shared("libbase.so", BASE)
    user = shared("libuser.so", USER, "libbase.so")
    with pytest.raises(hoist.LibraryError, match="libbase.so"):
        hoist.load(user)
    asked = []
    library = hoist.load(user, needed=lambda name: asked.append(name) or {"libbase.so": base}.get(name))
    assert used(library, 4) == 41 and asked.count("libbase.so") == 1
    assert library.fn("base", args=[hoist.i32], ret=hoist.i32)(2) == 20, "what it needs is looked into, too"

    loaded = hoist.load(tmp_path / "libbase.so")
    count = hoist.function(loaded.address_of("base"), args=[hoist.i32], ret=hoist.i32)
    again = hoist.load(user, needed={"libbase.so": loaded})
    assert used(again, 5) == 51 and count(1) == 10
    loaded.unload()
    assert used(again, 6) == 61, "it stays as long as somebody needs it"
    assert used(hoist.load(tmp_path / "libuser.so", needed={"libbase.so": tmp_path / "libbase.so"}), 7) == 71
    assert used(hoist.load(user, libs=[hoist.load(base)]), 8) == 81


def test_members_of_archives(shared, tmp_path):
    """A library and what it needs, as members of a zip file, of a tar archive and of an archive of `ar`."""
    files = {"libbase.so": shared("libbase.so", BASE), "libuser.so": shared("libuser.so", USER, "libbase.so")}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(f"lib/{name}", data)
    with zipfile.ZipFile(packed) as archive:

        def member(name):
            return archive.read(f"lib/{name}") if f"lib/{name}" in archive.namelist() else None

        assert used(hoist.load(member("libuser.so"), needed=member), 1) == 11
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        names = archive.getnames()
        needed = lambda name: archive.extractfile(name).read() if name in names else None  # noqa: E731
        assert used(hoist.load(needed("libuser.so"), needed=needed), 2) == 21


def test_who_is_asked_for_libraries_may_raise(shared):
    base, user = shared("libbase.so", BASE), shared("libuser.so", USER, "libbase.so")

    def raises(name):
        raise LookupError(name)

    with pytest.raises(LookupError, match="libbase.so"):
        hoist.load(user, needed=raises)
    for wrong in (7, object()):
        with pytest.raises(TypeError):
            hoist.load(user, needed={"libbase.so": wrong})
    with pytest.raises(hoist.LibraryError, match="needs libbase.so: not an ELF file"):
        hoist.load(user, needed={"libbase.so": b"no library"})
    with pytest.raises(FileNotFoundError):
        hoist.load(user, needed={"libbase.so": "/absent/libbase.so"})
    gone = hoist.load(base)
    gone.unload()
    with pytest.raises(hoist.UnloadedError):
        hoist.load(user, needed={"libbase.so": gone})
    with pytest.raises(hoist.ResourceError):
        hoist.load(user, needed={"libbase.so": base}, limit=64)


def test_functions_that_nobody_has_are_left_to_their_first_call(shared, tmp_path):
    source = "int nobody_has_this(void); int now(void) { return 7; } int later(void) { return nobody_has_this(); }"
    data = shared("liblazy.so", source, "-Wl,-z,lazy")
    with pytest.raises(hoist.UndefinedSymbolError, match="nobody_has_this"):
        hoist.load(data)
    library = hoist.load(data, lazy=True)
    assert library.fn("now", ret=hoist.i32)() == 7
    program = "import hoist, sys\nhoist.load(sys.argv[1], lazy=True).fn('later', ret=hoist.i32)()\nprint('not here')"
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "liblazy.so"], capture_output=True, text=True)
    assert done.returncode == 127 and "nobody_has_this" in done.stderr and done.stdout == ""


def test_functions_by_version(shared, tmp_path):
    (tmp_path / "map").write_text("V_1 { global: value; local: *; }; V_2 { global: value; } V_1;")
    source = """int first(void) { return 1; } int second(void) { return 2; }
    __asm__(".symver first,value@V_1"); __asm__(".symver second,value@@V_2");"""
    library = hoist.load(shared("libversions.so", source, "-Wl,--version-script=map"))
    assert [library.fn("value", ret=hoist.i32, version=one)() for one in (None, "V_1", "V_2")] == [2, 1, 2]
    with pytest.raises(hoist.NoSymbolError):
        library.fn("value", ret=hoist.i32, version="V_3")


def test_observers_are_told(shared, compile_c):
    base, user = shared("libbase.so", BASE), shared("libuser.so", USER, "libbase.so")
    told, gone = [], []

    def observer(name, functions):
        told.append((name, functions))
        return lambda: gone.append(name)

    library = hoist.load(user, needed={"libbase.so": base}, observer=observer)
    assert sorted(name for name, _ in told) == ["libbase.so", "libuser.so"] and not gone
    rows = {row["name"]: row for _, functions in told for row in functions}
    assert rows["used"]["address"] == library.address_of("used") and rows["used"]["size"] > 0
    assert set(rows["base"]) == {"name", "address", "size", "object", "is_stub"} and not rows["base"]["is_stub"]
    library.unload()
    assert sorted(gone) == ["libbase.so", "libuser.so"]

    told.clear()
    module = hoist.load(compile_c(BASE), observer=observer)
    assert [name for name, _ in told] == [""] and [row["name"] for row in told[0][1]] == ["base"]
    assert told[0][1][0]["address"] == module.address_of("base")
    del module
    assert gone[-1] == "" and len(gone) == 3
    assert hoist.load(compile_c(BASE), observer=lambda name, functions: None).is_loaded


def test_observers_that_raise(shared, compile_c, monkeypatch):
    def refuses(name, functions):
        raise LookupError(f"not {name}!")

    with pytest.raises(LookupError, match="not libbase.so!"):
        hoist.load(shared("libbase.so", BASE), observer=refuses)
    with pytest.raises(LookupError, match="not !"):
        hoist.load(compile_c(BASE), observer=refuses)
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: seen.append(raised.exc_type))
    hoist.load(compile_c(BASE), observer=lambda name, functions: lambda: 1 // 0).unload()
    assert seen == [ZeroDivisionError]
    hoist.load(compile_c(BASE), observer=lambda name, functions: 7).unload()
    assert seen == [ZeroDivisionError, TypeError], "what is left is called"


def test_an_observer_of_a_library_that_stays_to_the_end(shared, tmp_path):
    shared("libbase.so", BASE)
    program = """import hoist, sys
library = hoist.load(sys.argv[1], observer=lambda name, functions: lambda: print("gone", name))
sys.modules["keeps"] = library
print("told")"""
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "libbase.so"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("told\n")


def test_profilers_are_told_of_libraries(shared, tmp_path):
    hoist.load(shared("libbase.so", BASE), perf_map=True, gdb=True, jitdump=tmp_path).unload()
    dumps = list(tmp_path.glob("jit-*.dump"))
    assert len(dumps) == 1 and b"base\0" in dumps[0].read_bytes()
    import os

    with open(f"/tmp/perf-{os.getpid()}.map", "rb") as map_of_perf:
        assert any(line.endswith(b" base") for line in map_of_perf.read().splitlines())


def test_what_a_library_has_not_is_refused(shared, compile_c):
    base = shared("libbase.so", BASE)
    wanted = [
        {"replaceable": True},
        {"dual_mapping": True},
        {"huge_pages": True},
        {"arena": hoist.Arena()},
        {"copy_relocations": True},
        {"process": False},
        {"initialize": False},
    ]
    for options in wanted:
        with pytest.raises(TypeError, match=f"a shared library is not loaded with {next(iter(options))}="):
            hoist.load(base, **options)
    module = hoist.load(compile_c(USER), base, replaceable=True)
    assert used(module, 3) == 31, "of objects beside it they are"


def test_options_are_those_of_libraries_among_libs_too(shared, compile_c):
    base, told = shared("libbase.so", BASE), []
    module = hoist.load(compile_c(USER), libs=[base], observer=lambda name, functions: told.append(name))
    assert used(module, 3) == 31 and told == ["libbase.so", ""]
    with pytest.raises(hoist.ResourceError, match="limit"):
        hoist.load(compile_c(USER), libs=[base], limit=64)


def test_variables_of_libraries_are_moved_if_they_may_be(compile_c, shared, tmp_path):
    if platform.machine() != "x86_64":
        skip("test_variables_of_libraries_are_moved_if_they_may_be", "x86-64")
    shared("libv.so", "int table[4] = {1, 2, 3, 4}; int get(int i) { return table[i]; }")
    # the array's address has 32 bits of the instruction: nothing but a copy in the low 2 GiB will do
    source = "extern int table[4]; int get(int); void set(int i, int v) { table[i] = v; } int at(int i) { return get(i); }"
    near = compile_c(source, "-fno-pic", "-mcmodel=small")
    libs = [str(tmp_path / "libv.so")]
    with pytest.raises(hoist.RelocationError, match="table") as caught:
        hoist.load(near, libs=libs)
    assert caught.value.relocation == "R_X86_64_32S"
    module = hoist.load(near, libs=libs, copy_relocations=True)
    at = module.fn("at", args=[hoist.i32], ret=hoist.i32)
    assert [at(i) for i in range(4)] == [1, 2, 3, 4]
    module.fn("set", args=[hoist.i32, hoist.i32])(2, 33)
    assert at(2) == 33, "the library's own function uses the copy"
