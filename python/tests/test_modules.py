"""Loading: what is given, where symbols come from, what a module tells, replacing, unloading, errors."""

from __future__ import annotations

import array
import ctypes
import gc
import mmap
import os
import pathlib
import struct
import subprocess
import threading

import pytest
from conftest import FIXTURES, native_fixture, skip

import hoist


def resident() -> int:
    """Bytes of memory that this process has."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * mmap.PAGESIZE


def mappings() -> int:
    return len(pathlib.Path("/proc/self/maps").read_bytes().splitlines())


def foo_of(*objects):
    return hoist.load(*objects).fn("foo", [hoist.i32], hoist.f32)(321)


def test_bytes_of_every_kind(elftest):
    data = pathlib.Path(elftest).read_bytes()
    for given in (data, bytearray(data), memoryview(data), array.array("B", data), (ctypes.c_char * len(data)).from_buffer_copy(data)):
        assert foo_of(given) == 12345999.0
    with open(elftest, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert foo_of(mapped) == 12345999.0
        gc.collect()
    assert foo_of(pathlib.Path(elftest)) == foo_of([elftest]) == 12345999.0
    # elements of any form, in one piece
    numpy = pytest.importorskip("numpy", reason="skipped: test_bytes_of_every_kind: needs numpy")
    data += bytes(-len(data) % 8)
    for kind in (numpy.uint64, ">u2", [("a", "u1"), ("b", "u1")], "S8"):
        assert foo_of(numpy.frombuffer(data, dtype=kind)) == 12345999.0
        assert hoist.show(numpy.frombuffer(data, dtype=kind), "header")["header"]["machine_name"] == "EM_X86_64"
    for gaps in (memoryview(bytearray(2 * len(data)))[::2], numpy.asfortranarray(numpy.zeros((8, 8)))):
        for wanted in (hoist.load, hoist.show, hoist.Fatbin, hoist.Cubin, lambda data: hoist.link(data, base=0)):
            with pytest.raises(BufferError, match=f"<{type(gaps).__name__}>: bytes that are not in one piece"):
                wanted(gaps)
    for nothing in (b"", memoryview(b""), numpy.zeros((0, 3))):
        with pytest.raises(hoist.FormatError, match="not an ELF file"):
            hoist.load(nothing)


def test_bytes_that_change_are_copied(elftest):
    data = bytearray(pathlib.Path(elftest).read_bytes())
    module = hoist.load(data)
    data[:] = bytes(len(data))
    data.append(0)
    assert "foo" in {row["name"] for row in module.symbols()}
    assert module.fn("foo", [hoist.i32], hoist.f32)(321) == 12345999.0


def test_several_objects(compile_c):
    a = compile_c("int b(int); int a(int x) { return b(x) + 1; }")
    b = compile_c("int a(int); int b(int x) { return x * 2; }")
    for module in (hoist.load(a, b), hoist.load([a, b]), hoist.load((b,), [a])):
        assert module.fn("a", [hoist.i32], hoist.i32)(20) == 41


def test_nothing_is_no_load():
    with pytest.raises(TypeError, match="needs an object"):
        hoist.load()
    with pytest.raises(FileNotFoundError):
        hoist.load("no such file.o")
    with pytest.raises(TypeError, match="list"):
        hoist.load(b"", libs="libm.so.6")
    with pytest.raises(TypeError):
        hoist.load(5)


def test_symbols_of_every_kind(compile_c):
    source = "extern int number; extern int f(int); int call(int x) { return f(x) + number; }"
    number = array.array("i", [1000])
    module = hoist.load(
        compile_c(source),
        symbols={"number": number, "f": hoist.callback(lambda x: x + 1, args=[hoist.i32], ret=hoist.i32), "unused": None},
    )
    call = module.fn("call", [hoist.i32], hoist.i32)
    gc.collect()
    assert call(1) == 1002
    number[0] = 5
    assert call(1) == 7
    f = hoist.load(compile_c("int f(int x) { return 10 * x; }"))
    for symbols in ({"number": number, "f": f.fn("f")}, {"number": number, "f": f.address_of("f")}):
        assert hoist.load(compile_c(source), symbols=symbols, libs=[f]).fn("call", [hoist.i32], hoist.i32)(2) == 25
    with pytest.raises(TypeError, match="a symbol is"):
        hoist.load(compile_c(source), symbols={"number": 1.5})


def test_a_function_is_asked_for_symbols(compile_c):
    asked = []
    source = "extern int f(int); int strange(int); int call(int x) { return f(x); }"
    f = hoist.callback(lambda x: x - 1, args=[hoist.i32], ret=hoist.i32)

    def ask(name):
        asked.append(name)
        return f if name == "f" else None

    module = hoist.load(compile_c(source), symbols=ask)
    assert module.fn("call", [hoist.i32], hoist.i32)(1) == 0
    assert "f" in asked

    def fails(name):
        raise RuntimeError(f"asked for {name}")

    with pytest.raises(RuntimeError, match="asked for f"):
        hoist.load(compile_c(source), symbols=fails)


def test_earlier_modules_are_kept(compile_c):
    first = hoist.load(compile_c("int state = 5; int next(void) { return ++state; }"))
    second = hoist.load(compile_c("int next(void); int twice(void) { next(); return next(); }"), libs=[first])
    twice = second.fn("twice", ret=hoist.i32)
    first.unload()
    gc.collect()
    assert twice() == 7


def test_the_process_and_libraries(compile_c):
    absolute = compile_c("int ffs(int); int (*f)(int) = ffs; int call(int x) { return f(x); }")
    assert hoist.load(absolute).fn("call", ["i32"], "i32")(8) == 4
    with pytest.raises(hoist.UndefinedSymbolError):
        hoist.load(absolute, process=False)
    root = compile_c("double cbrt(double); double call(double x) { return cbrt(x); }")
    assert hoist.load(root, libs=["libm.so.6"]).fn("call", [float], float)(27) == pytest.approx(3)
    with pytest.raises(hoist.LibraryError, match="libnothing"):
        hoist.load(root, libs=["libnothing.so.1"])


@pytest.fixture
def archive(compile_c, tmp_path):
    import shutil

    if shutil.which("ar") is None:
        skip("archive", "ar")
    names = {"one": "int two(void); int one(void) { return two() + 1; }", "two": "int two(void) { return 2; }", "three": "int three(void) { return nobody(); }"}
    for name, source in names.items():
        (tmp_path / f"{name}.o").write_bytes(compile_c(source, "-Wno-implicit-function-declaration"))
    path = tmp_path / "libnumbers.a"
    subprocess.run(["ar", "rcs", path, *(tmp_path / f"{name}.o" for name in names)], check=True)
    return path


def test_static_libraries(compile_c, archive):
    caller = compile_c("int one(void); int call(void) { return one() * 10; }")
    for module in (hoist.load(caller, libs=[archive]), hoist.load(caller, archive), hoist.load(caller, libs=[archive.read_bytes()])):
        assert module.fn("call", ret=hoist.i32)() == 30
        assert "three" not in module
    alone = hoist.load(archive, symbols={"nobody": hoist.callback(lambda: 3, ret=hoist.i32)})
    assert alone.fn("three", ret=hoist.i32)() == 3
    with pytest.raises(hoist.UndefinedSymbolError, match="nobody"):
        hoist.load(archive)


def test_objects_among_libraries(compile_c, tmp_path):
    source = "int abs(int); static int own; __attribute__((constructor)) static void first(void) { own = 40; } int value(void) { return own + abs(-2); }"
    data = compile_c(source, "-fno-builtin")
    path = tmp_path / "value.o"
    path.write_bytes(data)
    user = compile_c("int value(void); int use(void) { return value(); }")
    for lib in (data, path, str(path), hoist.load(data)):
        for initialize in (True, False):
            assert hoist.load(user, libs=[lib], initialize=initialize).fn("use", ret=hoist.i32)() == 42
    with pytest.raises(hoist.UndefinedSymbolError, match="symbol abs is undefined"):
        hoist.load(user, libs=[data], process=False)
    with pytest.raises(hoist.ResourceError, match=f"{path}: section "):
        hoist.load(user, libs=[path], limit=1)
    with pytest.raises(ValueError, match="embedded null byte in the name of a library: 'a"):
        hoist.load(user, libs=["a\0b"])


def test_shared_libraries_out_of_bytes(compile_c):
    path = native_fixture("libshared.so")
    one = hoist.callback(lambda: 1, ret=hoist.i32)
    with pytest.raises(hoist.UndefinedSymbolError) as caught:
        hoist.load(path)
    symbols = {}
    while True:  # whatever it imports
        try:
            library = hoist.load(path, symbols=symbols)
            break
        except hoist.UndefinedSymbolError as error:
            assert error.symbol not in symbols
            symbols[error.symbol] = one
    assert caught.value.symbol in symbols
    assert isinstance(library, hoist.Library) and library.is_loaded and "Library" in repr(library)
    again = hoist.load(pathlib.Path(path).read_bytes(), symbols=lambda name: one)
    assert library.extent != again.extent
    with pytest.raises(hoist.ResourceError, match="limit") as caught:
        hoist.load(path, symbols=symbols, limit=64)
    assert caught.value.limit == 64 and caught.value.size > 64
    library.unload()
    assert not library.is_loaded and again.is_loaded
    with pytest.raises(hoist.NoSymbolError):
        again.fn("there is none")


def test_a_module_uses_a_library_out_of_bytes(compile_c, tmp_path):
    caller = compile_c("int count(void); int call(void) { count(); return count(); }")
    (tmp_path / "l.c").write_text("static int n; int count(void) { return ++n; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libl.so", tmp_path / "l.c"], check=True)
    data = (tmp_path / "libl.so").read_bytes()
    assert hoist.load(caller, libs=[data]).fn("call", ret=hoist.i32)() == 2
    library = hoist.load(data)
    assert hoist.load(caller, libs=[library]).fn("call", ret=hoist.i32)() == 2
    count = library.fn("count", ret=hoist.i32)
    assert count() == 3
    assert library.symbol_at(count.address + 1) == ("count", 1) and library.symbol_at(1) is None
    library.unload()
    with pytest.raises(hoist.UnloadedError):
        library.symbol_at(1)
    assert hoist.load(caller, libs=[str(tmp_path / "libl.so")]).fn("call", ret=hoist.i32)() == 2


def test_exceptions_of_cpp():
    try:
        ctypes.CDLL("libstdc++.so.6")
    except OSError:
        skip("test_exceptions_of_cpp", "libstdc++")
    module = hoist.load(native_fixture("exceptions-gcc12.o"), libs=["libstdc++.so.6"])
    careful = module.fn("careful", args=[hoist.i32], ret=hoist.i32)
    assert (careful(3), careful(5)) == (3, -5)


def test_what_a_module_tells(compile_c):
    module = hoist.load(compile_c("int data = 7; static int hidden(void) { return 1; } int f(void) { return data + hidden(); }", "-O0"))
    rows = {row["name"]: row for row in module.symbols()}
    assert (rows["f"]["type"], rows["f"]["binding"], rows["hidden"]["binding"], rows["data"]["type"]) == ("func", "global", "local", "object")
    assert rows["f"]["object"] == "<bytes>" and rows["data"]["size"] == 4
    address = module.address_of("f")
    assert rows["f"]["address"] == address
    row, offset = module.symbol_at(address + 1)
    assert (row["name"], offset) == ("f", 1)
    assert module.symbol_at(1) is None
    assert "data" in module and "hidden" not in module and 5 not in module
    start, size = module.extent
    assert start <= address < start + size
    assert {segment["permissions"] for segment in module.segments()} >= {"r-x", "rw-"}
    assert module.sizes["code"] > 0 and module.sizes["writable"] >= 4
    assert repr(module).startswith("<hoist.Module at 0x")


def test_sections_are_the_memory_itself(compile_c):
    module = hoist.load(compile_c("int data = 7; int get(void) { return data; }"))
    sections = {section.name: section for section in module.sections()}
    data = sections[".data"].data
    assert struct.unpack("i", data) == (7,) and not data.readonly
    data[:] = struct.pack("i", 99)
    assert module.fn("get", ret=hoist.i32)() == 99
    text = sections[".text"].data
    assert text.readonly and len(text) == sections[".text"].size
    with pytest.raises(TypeError):
        text[0] = 0
    assert ctypes.c_int.from_address(module.address_of("data")).value == 99


def test_views_keep_the_memory(compile_c):
    module = hoist.load(compile_c("const char word[] = \"kept\"; int data = 3;"))
    view = next(section.data for section in module.sections() if section.name == ".data")
    module.unload()
    del module
    gc.collect()
    assert struct.unpack("i", view) == (3,)


LIFE = """
extern int *log; extern int at;
__attribute__((constructor)) static void begin(void) { log[at++] = 1; }
__attribute__((destructor)) static void end(void) { log[at++] = 2; }
int f(void) { return 3; }
"""


def test_constructors_and_destructors(compile_c):
    log, at = array.array("i", [0] * 8), array.array("i", [0])
    pointer = array.array("Q", [log.buffer_info()[0]])
    symbols = {"log": pointer, "at": at}
    with hoist.load(compile_c(LIFE), symbols=symbols) as module:
        assert log[0] == 1
        assert module.fn("f", ret=hoist.i32)() == 3
    assert (log[1], at[0]) == (2, 2)
    late = hoist.load(compile_c(LIFE), symbols=symbols, initialize=False)
    assert at[0] == 2
    late.initialize()
    late.initialize()
    assert (log[2], at[0]) == (1, 3)
    del late
    gc.collect()
    assert (log[3], at[0]) == (2, 4)


def test_unloaded_code_is_not_called(elftest):
    module = hoist.load(elftest)
    foo = module.fn("foo", [hoist.i32], hoist.f32)
    module.unload()
    module.unload()
    with pytest.raises(hoist.UnloadedError, match="foo: its code was unloaded"):
        foo(1)
    assert "unloaded" in repr(foo) and "unloaded" in repr(module)
    for ask in (module.symbols, module.sections, lambda: module.fn("foo"), lambda: module.address_of("foo")):
        with pytest.raises(hoist.UnloadedError):
            ask()
    with pytest.raises(hoist.UnloadedError):
        hoist.load(elftest, libs=[module])


def test_code_in_use_is_not_unloaded(compile_c):
    source = "int call(int (*f)(void)) { return f(); }"
    module = hoist.load(compile_c(source))
    call = module.fn("call", [hoist.ptr], hoist.i32)
    inside = hoist.callback(module.unload, ret=hoist.i32)
    with pytest.raises(hoist.BusyError) as caught:
        call(inside)
    assert caught.value.calls == 1 and module.is_loaded
    started, release = threading.Event(), threading.Event()

    def wait():
        started.set()
        release.wait(60)
        return 5

    waits = hoist.callback(wait, ret=hoist.i32)
    results = []
    thread = threading.Thread(target=lambda: results.append(call(waits)))
    thread.start()
    started.wait(60)
    with pytest.raises(hoist.BusyError):
        module.unload()
    release.set()
    thread.join()
    module.unload()
    assert results == [5] and not module.is_loaded


def test_functions_are_replaced(compile_c):
    old = hoist.load(
        compile_c("int count; int step(int x) { count++; return x + 1; } int twice(int x) { return step(step(x)); }"),
        replaceable=True,
    )
    twice, step = old.fn("twice", [hoist.i32], hoist.i32), old.fn("step", [hoist.i32], hoist.i32)
    assert twice(10) == 12
    newer = compile_c("int count; int step(int x) { count++; return x * 2; }")
    count = ctypes.c_int.from_address(old.address_of("count"))
    with old.replace("step", newer) as replacement:
        assert (twice(10), step(10)) == (40, 20)
        assert count.value == 5, "the variable is the old one"
        assert replacement.names == ("step",) and replacement.is_in_force
    assert (twice(10), step(10)) == (12, 11)
    everything = old.replace(None, newer, keep_data=False)
    assert everything.names == ("step",) and twice(1) == 4
    everything.undo()
    everything.undo()
    assert twice(1) == 3 and not everything.is_in_force
    with pytest.raises(hoist.NoSymbolError) as caught:
        old.replace("nothing", newer)
    assert caught.value.symbol == "nothing"
    plain = hoist.load(compile_c("int step(int x) { return x; }"))
    with pytest.raises(hoist.ReplaceError, match="replaceable=True"):
        plain.replace("step", newer)
    with pytest.raises(hoist.ReplaceError) as caught:
        old.replace("step", compile_c("long count; int step(int x) { return count; }"))
    assert (caught.value.symbol, caught.value.value, caught.value.limit) == ("count", 8, 4)


@pytest.mark.parametrize("options", [{"dual_mapping": True}, {"huge_pages": True}, {"relax": False}, {"replaceable": True}], ids=str)
def test_options(elftest, options):
    assert hoist.load(elftest, **options).fn("foo", [hoist.i32], hoist.f32)(321) == 12345999.0


def test_an_arena(elftest):
    arena = hoist.Arena()
    modules = [hoist.load(elftest, arena=arena) for _ in range(50)]
    assert arena.statistics()["modules"] == 50
    assert {module.fn("foo", [hoist.i32], hoist.f32)(321) for module in modules} == {12345999.0}
    modules.clear()
    gc.collect()
    assert arena.statistics()["modules"] == 0


def test_a_limit(compile_c):
    with pytest.raises(hoist.ResourceError) as caught:
        hoist.load(compile_c("char much[1 << 20];", "-fno-common"), limit=1 << 16)
    assert caught.value.limit == 1 << 16 and caught.value.size >= 1 << 20 and caught.value.section and isinstance(caught.value, MemoryError)
    much = compile_c("char much[1 << 20];", "-fno-common")
    with pytest.raises(hoist.ResourceError, match="more than the limit of 65536"):
        hoist._hoist.flat(much, 0, None, 1 << 16)


def test_errors_say_where(compile_c):
    with pytest.raises(hoist.UndefinedSymbolError) as caught:
        hoist.load(native_fixture("missing.o"))
    error = caught.value
    assert (error.section, error.offset, error.relocation, error.symbol) == (".text", 5, "R_X86_64_PLT32", "hoist_fixture_missing")
    assert error.symbols == ["hoist_fixture_missing"] and error.file.endswith("missing.o")
    assert str(error) == f"{error.file}: section .text: R_X86_64_PLT32 at offset 0x5: symbol hoist_fixture_missing is undefined"
    with pytest.raises(hoist.UndefinedSymbolError) as caught:
        hoist.load(compile_c("int x(void), y(void); int f(void) { return x() + y(); }"))
    assert sorted(caught.value.symbols) == ["x", "y"]
    with pytest.raises(hoist.LinkError, match="defined in <bytes> already") as caught:
        hoist.load(compile_c("int f(void) { return 1; }"), compile_c("int f(void) { return 2; }"))
    assert caught.value.symbol == "f"
    with pytest.raises(hoist.NoSymbolError) as caught:
        hoist.load(compile_c("int f(void) { return 1; }")).fn("g")
    assert caught.value.symbol == "g" and isinstance(caught.value, LookupError)


def test_bytes_that_are_no_object(elftest):
    whole = pathlib.Path(elftest).read_bytes()
    for damaged in (b"", b"text", b"\x7fELF", whole[:40], whole[:-10]):
        with pytest.raises(hoist.FormatError) as caught:
            hoist.load(damaged)
        assert isinstance(caught.value, ValueError) and caught.value.offset is not None
    with pytest.raises(hoist.FormatError):
        hoist.load(FIXTURES / "aarch64" / "elftest.o" if (FIXTURES / "aarch64" / "elftest.o").exists() else FIXTURES / "cuda" / "kernels-13.5-sm_80.cubin")


def test_every_truncation_is_an_error(elftest):
    whole = pathlib.Path(elftest).read_bytes()
    for size in range(0, len(whole) - 1, 7):
        with pytest.raises(hoist.Error):
            hoist.load(whole[:size])


def test_flipped_bits_never_crash(elftest):
    whole = pathlib.Path(elftest).read_bytes()
    refused = 0
    for bit in range(0, len(whole) * 8, 61):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            hoist.load(changed, initialize=False, limit=1 << 24)
        except hoist.Error:
            refused += 1
    assert refused > 20


def test_threads_load_at_once(elftest):
    found = []
    data = pathlib.Path(elftest).read_bytes()
    threads = [threading.Thread(target=lambda: found.extend(foo_of(data) for _ in range(50))) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == [12345999.0] * 200


def loads_and_calls(elftest, compile_c, _):
    data = pathlib.Path(elftest).read_bytes()
    caller = compile_c("int f(int); int call(int x) { return f(x); }")

    def once():
        assert hoist.load(data).fn("foo", [hoist.i32], hoist.f32)(321) == 12345999.0
        f = hoist.callback(lambda x: x, args=[hoist.i32], ret=hoist.i32)
        module = hoist.load(caller, symbols={"f": f})
        assert module.fn("call", [hoist.i32], hoist.i32)(5) == 5
        module.sections()

    return once


def libraries(elftest, compile_c, tmp_path):
    (tmp_path / "l.c").write_text("static int n; int count(void) { return ++n; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libl.so", tmp_path / "l.c"], check=True)
    data = (tmp_path / "libl.so").read_bytes()

    def once():
        library = hoist.load(data)
        count = library.fn("count", ret=hoist.i32)
        assert count() == 1 and library.symbol_at(count.address) == ("count", 0)

    return once


def libraries_that_are_told(elftest, compile_c, tmp_path):
    (tmp_path / "n.c").write_text("int count(void); int twice(void) { return count() + count(); }")
    libraries(elftest, compile_c, tmp_path)
    words = ["cc", "-shared", "-fPIC", "-o", tmp_path / "libn.so", tmp_path / "n.c", tmp_path / "libl.so"]
    subprocess.run(words, check=True)
    user, needed = (tmp_path / "libn.so").read_bytes(), (tmp_path / "libl.so").read_bytes()
    gone = []

    def once():
        library = hoist.load(user, needed=lambda name: needed if "libl.so" in name else None, observer=lambda *_: lambda: gone.append(1))
        assert library.fn("twice", ret=hoist.i32)() == 3
        library.unload()
        assert gone == [1, 1]
        gone.clear()

    return once


def replacements(elftest, compile_c, _):
    old = hoist.load(compile_c("int step(int x) { return x + 1; } int once(int x) { return step(x); }"), replaceable=True)
    once_, newer = old.fn("once", [hoist.i32], hoist.i32), compile_c("int step(int x) { return x * 2; }")

    def once():
        with old.replace("step", newer):
            assert once_(10) == 20
        assert once_(10) == 11

    return once


def in_an_arena(elftest, compile_c, _):
    arena, data = hoist.Arena(), pathlib.Path(elftest).read_bytes()

    def once():
        assert hoist.load(data, arena=arena).fn("foo", [hoist.i32], hoist.f32)(321) == 12345999.0

    return once


def links(elftest, compile_c, _):
    data = pathlib.Path(elftest).read_bytes()

    def once():
        assert hoist.link(data, base=0x1000).address_of("foo") == 0x1000
        assert hoist._hoist.flat(data, None, None)
        with pytest.raises(hoist.FormatError):
            hoist.load(data[:40])

    return once


def cubins(elftest, compile_c, _):
    data = (FIXTURES / "cuda" / "kernels-13.5-sm_80.cubin").read_bytes()
    objects = [(FIXTURES / "cuda" / f"calls_{name}-13.5-sm_80.cubin").read_bytes() for name in "ab"]

    def once():
        assert hoist.Cubin(data).kernels["parameters"].occupancy(256).warps
        assert hoist.Cubin.link(*objects).is_linked

    return once


def fatbins(elftest, compile_c, _):
    data = (FIXTURES / "cuda" / "gpu-13.0-sm_90.fatbin").read_bytes()

    def once():
        assert [len(entry.data) > 0 for entry in hoist.Fatbin(data).select(sm=90)] == [True]

    return once


#: What is done over and over, and how many loads of the test's each is as long as.
LOOPS = [
    (loads_and_calls, 2),
    (libraries, 10),
    (libraries_that_are_told, 20),
    (replacements, 10),
    (in_an_arena, 10),
    (links, 20),
    (cubins, 50),
    (fatbins, 50),
]


@pytest.mark.parametrize("loop, share", LOOPS, ids=lambda given: getattr(given, "__name__", ""))
def test_ten_thousand_loads_take_no_memory_that_stays(elftest, compile_c, tmp_path, loop, share):
    """Or as many as HOIST_LOADS says: `HOIST_LOADS=100000 cargo xtask python --release -- python/tests/test_modules.py -k loads`."""
    times = int(os.environ.get("HOIST_LOADS", "10000")) // share
    once = loop(elftest, compile_c, tmp_path)
    for _ in range(min(500, times)):
        once()
    gc.collect()
    before, mapped = resident(), mappings()
    for _ in range(times):
        once()
    gc.collect()
    grown = resident() - before
    print(f"{loop.__name__}: {times} times, {grown} bytes more")
    assert mappings() - mapped < 20
    assert grown < 4 << 20


def test_names_of_the_source(compile_c):
    try:
        ctypes.CDLL("libstdc++.so.6")
    except OSError:
        skip("test_names_of_the_source", "libstdc++")
    module = hoist.load(native_fixture("exceptions-gcc12.o"), libs=["libstdc++.so.6"])
    mangled = [row for row in module.symbols() if row["name"].startswith("_Z") and row["type"] == "func"]
    assert module.find_demangled("careful")[0]["name"] == "careful"
    assert module.find_demangled("absent") == []
    assert mangled == [] or module.find_demangled(mangled[0]["name"]) == []
    assert module.bytes_in_huge_pages == 0


def test_code_for_perf(elftest, tmp_path):
    module = hoist.load(elftest, jitdump=tmp_path, perf_map=True)
    try:
        dump = (tmp_path / f"jit-{os.getpid()}.dump").read_bytes()
        assert dump.startswith(b"DTiJ") and b"foo\0" in dump
        start = f"{module.address_of('foo'):x}"
        lines = pathlib.Path(f"/tmp/perf-{os.getpid()}.map").read_text().splitlines()
        assert any(line.split()[0].lstrip("0") == start and line.endswith("foo") for line in lines)
    finally:
        pathlib.Path(f"/tmp/perf-{os.getpid()}.map").unlink(missing_ok=True)
    with pytest.raises(OSError, match="the dump for perf"):
        hoist.load(elftest, jitdump=tmp_path / "absent")
