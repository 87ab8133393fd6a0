"""What programs get wrong: code that goes while it is wanted, objects in cycles, names that are no text, the end of the interpreter."""

from __future__ import annotations

import copy
import ctypes
import gc
import os
import pickle
import shutil
import subprocess
import sys
import weakref

import hoist
import pytest
from conftest import ROOT

ASKS = "int g(void); int asks(void) { return g() + 1; }"


def run(program: str, *words: str) -> subprocess.CompletedProcess:
    """What a program of its own comes to."""
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("what", ["function", "sections", "module, sections", "callback", "held"])
def test_the_interpreter_ends_while_code_is_there(elftest, what):
    """What is in a cycle with the module of the program goes last."""
    program = f"""
import ctypes, hoist, sys
module = hoist.load(sys.argv[1])
function = module.fn("foo", args=["i32"], ret="f32")
sections = module.sections()
callback = hoist.callback(lambda: 1, ret="i32")
held = hoist.load(memoryview(open(sys.argv[1], "rb").read()), symbols={{"x": bytearray(8)}})
class Last:
    def __del__(self):
        try:
            function("no number")
        except TypeError as error:
            print(error, function.name, function(321))
def main():
    return {what}, last
last = Last()
"""
    done = run(program, elftest)
    assert done.returncode == 0 and done.stderr == ""
    if what == "function":
        assert done.stdout == "foo() argument 1: i32 expected, got str foo 12345999.0\n"


def test_arguments_that_unload_the_module(compile_c):
    """Converting an argument can run any code, also such that unloads the function's own module."""
    source = "int i(int x) { return x; } double d(double x) { return x; } int b(_Bool x) { return x; } int p(void *x) { return x != 0; }"

    class Unloads:
        def __index__(self):
            module.unload()
            return 1

        __float__ = lambda self: float(self.__index__())  # noqa: E731
        __bool__ = lambda self: bool(self.__index__())  # noqa: E731

    class Says:
        @property
        def __hoist_address__(self):
            module.unload()
            return 1

    for name, kind, argument in (("i", "i32", Unloads()), ("d", "f64", Unloads()), ("b", "bool_", Unloads()), ("p", "ptr", Says())):
        module = hoist.load(compile_c(source))
        function = module.fn(name, args=[kind], ret="i32")
        with pytest.raises(hoist.UnloadedError, match=f"{name}: its code was unloaded"):
            function(argument)


def test_functions_of_ctypes_are_functions(compile_c):
    """Their buffer is the word that holds their address."""
    native = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 41)
    module = hoist.load(compile_c(ASKS), symbols={"g": native})
    assert module.fn("asks", ret="i32")() == 42
    assert hoist.load(compile_c(ASKS), symbols=lambda name: native if name == "g" else None).fn("asks", ret="i32")() == 42
    takes = hoist.load(compile_c("int takes(int (*g)(void)) { return g() + 1; }")).fn("takes", args=["ptr"], ret="i32")
    assert takes(native) == 42
    reads = hoist.load(compile_c("long reads(long *p) { return *p; }")).fn("reads", args=["ptr"], ret="i64")
    assert reads(ctypes.c_int64(7)) == 7, "other words of ctypes are lent"


def test_integers_of_others_are_addresses(compile_c, elftest):
    import numpy

    module = hoist.load(elftest)
    address = numpy.uint64(module.address_of("foo"))
    calls = hoist.load(compile_c("float foo(int); float calls(int x) { return foo(x); }"), symbols={"foo": address})
    assert calls.fn("calls", args=["i32"], ret="f32")(321) == 12345999.0
    same = hoist.load(compile_c("unsigned long same(void *p) { return (unsigned long)p; }")).fn("same", args=["ptr"], ret="u64")
    assert same(address) == address
    one = numpy.array([5], dtype=numpy.int64)
    assert same(one) == one.ctypes.data, "an array of one element is an array"


def test_symbols_of_wrong_kinds(compile_c):
    data = compile_c(ASKS)
    for value in (-1, 1 << 64):
        with pytest.raises(OverflowError, match="symbol g: .* is no address"):
            hoist.load(data, symbols={"g": value})
    with pytest.raises(TypeError, match="symbol g: a symbol is an address, .*, not float"):
        hoist.load(data, symbols={"g": 1.5})
    with pytest.raises(TypeError, match="name of a symbol is a str, not b'g'"):
        hoist.load(data, symbols={b"g": 1})
    for wrong in (7, [("g", 1)]):
        with pytest.raises(TypeError, match="symbols is a dictionary or a function, not"):
            hoist.load(data, symbols=wrong)
    gone = hoist.load(compile_c("int g(void) { return 1; }"))
    function = gone.fn("g", ret="i32")
    gone.unload()
    with pytest.raises(hoist.UnloadedError):
        hoist.load(data, symbols={"g": function})
    takes = hoist.load(compile_c("int takes(int (*g)(void)) { return g() + 1; }")).fn("takes", args=["ptr"], ret="i32")
    with pytest.raises(hoist.UnloadedError):
        takes(function)


def test_a_function_that_is_a_symbol_keeps_its_code(compile_c):
    base = hoist.load(compile_c("int g(void) { return 6; }"))
    user = hoist.load(compile_c(ASKS), symbols={"g": base.fn("g", ret="i32")})
    base.unload()
    assert user.fn("asks", ret="i32")() == 7


class Has:
    """An object whose method machine code calls."""

    def method(self):
        return 1


def test_cycles_are_collected(compile_c):
    data = compile_c(ASKS)
    gone = []

    def callback(has):
        has.callback = hoist.callback(has.method, ret="i32")

    def module(has):
        has.module = hoist.load(data, symbols={"g": hoist.callback(has.method, ret="i32")})
        has.function = has.module.fn("asks", ret="i32")
        assert has.function() == 2

    def function(has):
        has.function = hoist.function(1, owner=has)

    for make in (callback, module, function):
        for _ in range(5):
            has = Has()
            make(has)
            gone.append(weakref.ref(has))
            del has
    gc.collect()
    assert [one() for one in gone] == [None] * 15


def test_what_others_use_of_a_cycle_stays(compile_c):
    """A view of a section, or a module that was loaded with it, keeps code that is in a cycle, with what it calls."""
    has = Has()
    has.module = hoist.load(compile_c(ASKS), symbols={"g": hoist.callback(has.method, ret="i32")})
    user = hoist.load(compile_c("int asks(void); int user(void) { return asks() + 1; }"), libs=[has.module])
    views = has.module.sections()
    gone = weakref.ref(has)
    del has
    gc.collect()
    assert user.fn("user", ret="i32")() == 3
    del views, user
    gc.collect()
    assert gone() is None or gone().module.is_loaded


def test_constructors_whose_callbacks_raise(compile_c, capfd):
    data = compile_c("int g(void); int value; __attribute__((constructor)) void c(void) { value = g(); } int f(void) { return value; }")

    def raises():
        raise LookupError("of a constructor")

    with pytest.raises(LookupError, match="of a constructor"):
        hoist.load(data, symbols={"g": hoist.callback(raises, ret="i32")})
    module = hoist.load(data, symbols={"g": hoist.callback(raises, ret="i32")}, initialize=False)
    with pytest.raises(hoist.LinkError, match="constructors were not run yet: Module.initialize runs them"):
        module.fn("f", ret="i32")
    with pytest.raises(LookupError):
        module.initialize()
    busy = hoist.load(data, symbols={"g": hoist.callback(lambda: busy.unload(), ret="i32")}, initialize=False)
    with pytest.raises(hoist.BusyError):
        busy.initialize()
    assert capfd.readouterr() == ("", "")


def test_destructors_without_constructors(compile_c):
    called = []
    data = compile_c("void g(void); __attribute__((destructor)) void d(void) { g(); } int f(void) { return 1; }")
    module = hoist.load(data, symbols={"g": hoist.callback(lambda: called.append(1))})
    module.unload()
    assert called == [1]


def test_callbacks_inside_of_others_calls(compile_c, monkeypatch):
    """What a callback raises comes out of a call of ours, not of one of ctypes that the callback before it made."""
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append(what.exc_type))

    def raises():
        raise LookupError

    inner = hoist.callback(raises, ret="i32")
    native = ctypes.CFUNCTYPE(ctypes.c_int)(inner.address)
    module = hoist.load(compile_c(ASKS), symbols={"g": hoist.callback(lambda: native() + 5, ret="i32")})
    assert module.fn("asks", ret="i32")() == 6 and told == [LookupError]


def test_paths_that_are_no_text(elftest, compile_c, tmp_path):
    folder = os.fsencode(tmp_path)
    names = {name: os.fsdecode(folder + b"/\xff" + name) for name in (b".o", b".so", b".cubin", b".a", b"missing.o")}
    shutil.copy(elftest, names[b".o"])
    foo = hoist.load(names[b".o"]).fn("foo", args=["i32"], ret="f32")
    assert foo(321) == 12345999.0
    assert hoist.show(names[b".o"], "header")["header"]["machine_name"] == "EM_X86_64"
    assert hoist.link(names[b".o"], base=0).symbols[0]["object"].endswith("\\udcff.o")
    shutil.copy(ROOT / "fixtures/cuda/kernels-13.5-sm_80.cubin", names[b".cubin"])
    cubin = hoist.Cubin(names[b".cubin"])
    assert cubin.label.endswith("\\udcff.cubin") and cubin.relocations() is not None
    assert hoist.Fatbin(names[b".cubin"]).entries[0].data[:4] == b"\x7fELF"
    subprocess.run(["ar", "rcs", names[b".a"], names[b".o"]], check=True)
    assert "foo" in hoist.load(names[b".a"])
    shutil.copy(ROOT / "fixtures/x86_64/missing.o", names[b"missing.o"])
    with pytest.raises(hoist.UndefinedSymbolError, match="missing.o: section .text") as caught:
        hoist.load(names[b"missing.o"])
    assert caught.value.file.endswith("\\udcffmissing.o")

    class Path:
        def __fspath__(self):
            return os.fsencode(elftest)

    for load in (hoist.load, hoist.Fatbin, hoist.show, lambda path: hoist.link(path, base=0)):
        load(Path())
    assert "\udcff" not in hoist.load(elftest)


def test_wrong_words_are_told_by_name(elftest, compile_c):
    for name, value in (("limit", -1), ("limit", 1 << 64), ("limit", "x"), ("jitdump", 7), ("arena", 7), ("gdb", 7)):
        with pytest.raises((TypeError, OverflowError), match=f"^{name}: "):
            hoist.load(elftest, **{name: value})
    for name, value in (("base", -1), ("limit", -1), ("undefined", 1 << 64)):
        with pytest.raises(OverflowError, match=f"^{name}: "):
            hoist.link(elftest, **{"base": 0, name: value})
    for name, value in (("packed", 0), ("packed", 3), ("page_size", 0), ("page_size", 48)):
        with pytest.raises(ValueError, match=f"{name}={value} is no power of two"):
            hoist.link(elftest, base=0, **{name: value})
    assert "foo" in [row["name"] for row in hoist.link(ROOT / "fixtures/x86_64/elftest.o", base=0, wanted="foo").symbols]
    for wrong in ("i32", 7, None):
        with pytest.raises(TypeError, match="args is a list of types"):
            hoist.load(elftest).fn("foo", args=wrong)
    with pytest.raises(ValueError, match="no function at address 0"):
        hoist.function(0)
    with pytest.raises(TypeError, match="integer"):
        hoist.function("x")
    for wrong in (7, None, open):
        with pytest.raises(TypeError, match="a path, or an object with a buffer .* expected, not"):
            hoist.load(wrong)
    with pytest.raises(TypeError, match="needed is a dictionary or a function, not int"):
        hoist.load(elftest, needed=7)
    fatbin = hoist.Fatbin(ROOT / "fixtures/cuda/gpu-13.0-sm_90.fatbin")
    with pytest.raises(hoist.CommandError, match="gpu-13.0-sm_90.fatbin: ") as caught:
        fatbin.prune("sm_10")
    assert "/proc/self" not in str(caught.value)
    module = hoist.load(elftest)
    module.unload()
    with pytest.raises(hoist.UnloadedError, match="^the module was unloaded$"):
        module.symbols()


def test_wrong_numbers_are_told_by_name():
    missing = str(ROOT / "fixtures/x86_64/missing.o")
    for value, error in ((-1, OverflowError), (1 << 64, OverflowError), ("x", TypeError), (None, TypeError), (1.5, TypeError)):
        with pytest.raises(error, match="^symbol hoist_fixture_missing: "):
            hoist.link(missing, base=0, symbols={"hoist_fixture_missing": value})
    with pytest.raises(TypeError, match="^the name of a symbol is a str, not 5"):
        hoist.link(missing, base=0, symbols={5: 5})
    kernel = hoist.Cubin(ROOT / "fixtures/cuda/kernels-13.5-sm_80.cubin").kernels["parameters"]
    for name, values in (("threads", (0, -1, 1 << 32)), ("shared", (-1, 1 << 63)), ("sm", (-1, 1 << 32))):
        for value in values:
            with pytest.raises(OverflowError, match=f"^{name}: {value} is not in"):
                kernel.occupancy(**{name: value})
        with pytest.raises(TypeError, match=f"^{name}: a number expected, got str"):
            kernel.occupancy(**{name: "5"})
    with pytest.raises(hoist.UnsupportedError, match="sm_0"):
        kernel.occupancy(sm=0)
    fatbin = hoist.Fatbin(ROOT / "fixtures/cuda/gpu-13.0-sm_90.fatbin")
    with pytest.raises(ValueError, match="no architecture of a device: 10000000000"):
        fatbin.select(10**10)
    for cuda in ((12,), (12, 0, 1), "12.0", 12.0):
        with pytest.raises(TypeError, match="^cuda is a version such as"):
            fatbin.select(90, cuda=cuda)
    for cuda in ((-1, 0), (0, 1 << 16)):
        with pytest.raises(OverflowError, match="^cuda: "):
            fatbin.select(90, cuda=cuda)


def test_texts_with_bytes_that_are_no_text(compile_c):
    """What comes out goes in again."""
    gives = hoist.load(compile_c('const char *gives(void) { return "a\\xff"; }')).fn("gives", ret="cstr")
    last = hoist.load(compile_c("int last(const unsigned char *s) { return s[1] + (s[2] != 0); }")).fn("last", args=["cstr"], ret="i32")
    assert gives() == "a\udcff" and last(gives()) == 255
    with pytest.raises(UnicodeEncodeError):
        last("a\ud800")


def test_help_and_version_are_what_commands_print():
    assert hoist.command("--version").startswith(b"hoist ") and b"Usage: " in hoist.command("show", "--help")


def test_cubins_that_define_the_same():
    cubin = "fixtures/cuda/calls_a-13.5-sm_80.cubin"
    with pytest.raises(hoist.LinkError, match=f"in {cubin} already"):
        hoist.Cubin.link(cubin, cubin)


def test_replacing_what_is_no_function(compile_c):
    module = hoist.load(compile_c("int v; int f(void) { return v; }"), replaceable=True)
    with pytest.raises(hoist.NoSymbolError, match="v is not a function"):
        module.replace("v", compile_c("int v(void) { return 1; }"), keep_data=False)


def test_the_file_of_a_library_is_mapped(compile_c, tmp_path):
    """Its pages are the file's: it may be removed, not changed. Bytes are kept, whatever becomes of the file."""
    (tmp_path / "x.o").write_bytes(compile_c("int f(void) { return 3; }"))
    path = tmp_path / "libmapped.so"
    subprocess.run(["cc", "-shared", "x.o", "-o", path], cwd=tmp_path, check=True)
    data = path.read_bytes()

    def is_mapped():
        with open("/proc/self/maps", "rb") as maps:
            return any(os.fsencode(path) in line for line in maps)

    library = hoist.load(path)
    assert is_mapped() and library.fn("f", ret="i32")() == 3
    path.unlink()
    assert library.fn("f", ret="i32")() == 3
    library.unload()
    assert not is_mapped()
    path.write_bytes(data)
    for given in (hoist.load(data), hoist.load(path, observer=lambda name, functions: None)):
        assert not is_mapped() and given.fn("f", ret="i32")() == 3
    with pytest.raises(TypeError, match="relax=False"):
        hoist.load(path, relax=False)
    path.write_bytes(data[:100])
    with pytest.raises(hoist.FormatError, match="libmapped.so"):
        hoist.load(path)


def test_no_subinterpreters():
    program = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
code = '''
try:
    import hoist
except ImportError as error:
    print("refused:", error, flush=True)
'''
interpreters.run_string(interpreters.create(), code)
"""
    done = run(program)
    assert "refused: " in done.stdout, done


def test_copies_and_pickles(elftest):
    module = hoist.load(elftest)
    for one in (module, module.fn("foo", args=["i32"], ret="f32"), hoist.callback(lambda: 1)):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(one)
    assert pickle.loads(pickle.dumps(hoist.i32)) == hoist.i32
    with pytest.raises(hoist.Error) as caught:
        hoist.load(ROOT / "fixtures/x86_64/missing.o")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.symbol, again.section) == (caught.value.symbol, caught.value.section)
    other = copy.copy(module)
    module.unload()
    assert not other.is_loaded
