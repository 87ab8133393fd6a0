"""Calls: every type, every way of passing, errors, callbacks, threads."""

from __future__ import annotations

import array
import ctypes
import functools
import gc
import math
import mmap
import platform
import sys
import threading

import pytest

import hoist

INTEGERS = [
    (hoist.i8, -128, 127),
    (hoist.i16, -(2**15), 2**15 - 1),
    (hoist.i32, -(2**31), 2**31 - 1),
    (hoist.i64, -(2**63), 2**63 - 1),
    (hoist.u8, 0, 255),
    (hoist.u16, 0, 2**16 - 1),
    (hoist.u32, 0, 2**32 - 1),
    (hoist.u64, 0, 2**64 - 1),
]


def identity(kind: hoist.Type):
    """A function that gives back its argument: a callback, called as machine code."""
    called = hoist.callback(lambda value: value, args=[kind], ret=kind)
    return hoist.function(called.address, args=[kind], ret=kind, name="identity", owner=called)


def test_the_first_example(elftest):
    assert hoist.load(elftest).fn("foo", args=[hoist.i32], ret=hoist.f32)(321) == 12345999.0


@pytest.mark.parametrize(("kind", "least", "most"), INTEGERS, ids=lambda one: getattr(one, "name", None))
def test_integers_at_their_limits(kind, least, most):
    call = identity(kind)
    for value in (least, least + 1, 0, 1, most - 1, most):
        assert call(value) == value
    for value in (least - 1, most + 1, 2**64, -(2**64)):
        with pytest.raises(OverflowError, match=rf"identity\(\) argument 1: -?\d+ does not fit {kind.name}"):
            call(value)


def test_every_function_of_the_fixture(arguments):
    fn = hoist.load(arguments).fn
    assert fn("i8_negated", [hoist.i8], hoist.i8)(5) == -5
    assert fn("u8_next", [hoist.u8], hoist.u8)(255) == 0
    assert fn("i16_negated", [hoist.i16], hoist.i16)(-300) == 300
    assert fn("u16_next", [hoist.u16], hoist.u16)(65535) == 0
    assert fn("i32_difference", ["i32", "i32"], "i32")(-(2**31), 0) == -(2**31)
    assert fn("u32_shifted", [hoist.u32, hoist.u32], hoist.u32)(1, 31) == 2**31
    assert fn("i64_sum", [int, int], int)(2**62, -1) == 2**62 - 1
    assert fn("u64_inverse", [hoist.u64], hoist.u64)(0) == 2**64 - 1
    assert fn("f32_quotient", [hoist.f32, hoist.f32], hoist.f32)(1, 4) == 0.25
    assert fn("f64_product", [float, float], float)(1.5, -2) == -3.0


def test_more_arguments_than_registers(arguments):
    i, f, d = hoist.i32, hoist.f32, hoist.f64
    types = [i, d, i, f, hoist.i64, d, hoist.i16, d, i, d, i, d, i, d, i, d, hoist.i8, d, f]
    many = hoist.load(arguments).fn("many", types, d)
    values = [(-1) ** n * (n + 1) for n in range(19)]
    assert many(*values) == sum((n + 1) * value for n, value in enumerate(values))


def test_many_integers_and_many_floats(compile_c):
    source = """
    long ints(long a, long b, long c, long d, long e, long f, long g, long h, long i) { return a-b+c-d+e-f+g-h+i*100; }
    double floats(double a, double b, double c, double d, double e, double f, double g, double h, double i, float j)
    { return a-b+c-d+e-f+g-h+i*100+j*1000; }
    float mixed(int a, float b, long c, double d, char e, float f, short g, float h) { return a+b*2+c*3+d*4+e*5+f*6+g*7+h*8; }
    """
    fn = hoist.load(compile_c(source)).fn
    assert fn("ints", [int] * 9, int)(*range(1, 10)) == 1 - 2 + 3 - 4 + 5 - 6 + 7 - 8 + 900
    assert fn("floats", [float] * 9 + ["f32"], float)(*range(1, 11)) == 1 - 2 + 3 - 4 + 5 - 6 + 7 - 8 + 900 + 10000
    types = ["i32", "f32", "i64", "f64", "i8", "f32", "i16", "f32"]
    assert fn("mixed", types, "f32")(*range(1, 9)) == sum(n * n for n in range(1, 9))


def test_functions_with_variable_arguments(compile_c):
    # a caller says in the register `al` how many floating-point numbers there are; the address of an aligned function has zeros there
    source = """#include <stdarg.h>
        #define SUM(NAME, TYPE) TYPE __attribute__((aligned(256))) NAME(int count, ...) { \\
            va_list all; va_start(all, count); TYPE sum = 0; while (count-- > 0) sum = sum * 3 + va_arg(all, TYPE); va_end(all); return sum; }
        SUM(doubles, double) SUM(longs, long)"""
    module = hoist.load(compile_c(source))
    kinds = [("longs", hoist.i64)] + ([("doubles", hoist.f64)] if platform.machine() in ("x86_64", "aarch64") else [])
    for nogil in (True, False):
        for name, kind in kinds:
            for count in range(13):
                function = module.fn(name, [hoist.i32] + [kind] * count, kind, nogil=nogil)
                given = range(1, count + 1)
                assert function(count, *given) == functools.reduce(lambda sum, one: 3 * sum + one, given, 0)


def test_floating_point_values_pass_through():
    for kind in (hoist.f32, hoist.f64):
        call = identity(kind)
        for value in (0.0, -0.0, 1.5, math.inf, -math.inf):
            assert math.copysign(1, call(value)) == math.copysign(1, value) and call(value) == value
        assert math.isnan(call(math.nan))
    assert identity(hoist.f32)(1e300) == math.inf


def test_bool_and_void_and_text(arguments):
    assert identity(hoist.bool_)([]) is False
    assert identity(hoist.bool_)("x") is True
    length = hoist.load(arguments).fn("length", [hoist.cstr], hoist.i32)
    assert length("ä€") == 5
    assert length(b"four") == 4
    with pytest.raises(ValueError, match="NUL"):
        length("a\0b")
    with pytest.raises(TypeError, match=r"length\(\) argument 1: cstr expected, got int"):
        length(5)


def test_texts_come_back(compile_c):
    module = hoist.load(compile_c('const char *word(int x) { return x == 0 ? 0 : x == 1 ? "w\\xc3\\xb6rd" : "\\xff"; }'))
    word = module.fn("word", [hoist.i32], hoist.cstr)
    assert (word(0), word(1)) == (None, "wörd")
    assert word(2).encode(errors="surrogateescape") == b"\xff"


def test_buffers_are_not_copied(arguments):
    scale = hoist.load(arguments).fn("scale", [hoist.ptr, hoist.i32, hoist.f32])
    numbers = array.array("f", [1, 2, -3])
    assert scale(numbers, 3, 2) is None
    assert numbers.tolist() == [2, 4, -6]
    raw = bytearray(numbers.tobytes())
    for view in (raw, memoryview(raw), (ctypes.c_float * 3).from_buffer(raw), memoryview(raw).cast("f")):
        before = list(memoryview(raw).cast("f"))
        scale(view, 3, 2)
        assert list(memoryview(raw).cast("f")) == [2 * one for one in before]
    with mmap.mmap(-1, 4096) as mapped:
        mapped[:12] = array.array("f", [1, 2, 3]).tobytes()
        scale(mapped, 3, 10)
        assert array.array("f", mapped[:12]).tolist() == [10, 20, 30]


def test_buffers_are_given_back(arguments):
    total = hoist.load(arguments).fn("total", [hoist.ptr, hoist.i32], hoist.f32)
    data = bytearray(array.array("f", [1, 2, 3]).tobytes())
    assert total(data, 3) == 6.0
    with pytest.raises(TypeError):
        total(data, "x")
    data.append(0)  # a BufferError if it were still lent


def test_many_buffers(compile_c):
    names = [f"p{n}" for n in range(12)]
    source = f"int first({', '.join('unsigned char *' + name for name in names)}) {{ return {' + '.join(name + '[0]' for name in names)}; }}"
    first = hoist.load(compile_c(source)).fn("first", [hoist.ptr] * 12, hoist.i32)
    buffers = [bytearray([n]) for n in range(12)]
    assert first(*buffers) == sum(range(12))
    for buffer in buffers:
        buffer.append(1)


class Number(int):
    """An integer that is not `int` itself."""


def test_pointers_of_other_kinds(arguments):
    length = hoist.load(arguments).fn("length", [hoist.ptr], hoist.i32)
    text = ctypes.create_string_buffer(b"hello")
    assert length(ctypes.addressof(text)) == 5
    assert length(b"hello\0") == 5
    assert identity(hoist.ptr)(None) == 0
    assert identity(hoist.ptr)(2**64 - 1) == 2**64 - 1
    assert identity(hoist.ptr)(Number(5)) == 5 and identity(hoist.i32)(Number(-5)) == -5
    with pytest.raises(TypeError, match="hoist.cstr takes text"):
        length("hello")
    with pytest.raises(TypeError, match="ptr expected, got float"):
        length(1.5)

    class Named:
        __hoist_address__ = ctypes.addressof(text)

    assert length(Named()) == 5


def test_numpy(arguments):
    numpy = pytest.importorskip("numpy", reason="skipped: test_numpy: needs numpy")
    fn = hoist.load(arguments).fn
    x = numpy.arange(5, dtype=numpy.float32)
    y = numpy.ones(5, dtype=numpy.float32)
    fn("axpy", [hoist.ptr, hoist.ptr, hoist.i32, hoist.f32])(y, x, len(x), numpy.float32(2))
    assert y.tolist() == [1, 3, 5, 7, 9]
    total = fn("total", [hoist.ptr, hoist.i32], hoist.f32)
    assert total(x, numpy.int64(5)) == 10.0
    with pytest.raises((ValueError, BufferError)):
        total(x[::2], 2)


class ByDlpack:
    """What torch's tensors are: no buffer, but DLPack."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self):
        return self.array.__dlpack__()


def test_dlpack(arguments):
    numpy = pytest.importorskip("numpy", reason="skipped: test_dlpack: needs numpy")
    scale = hoist.load(arguments).fn("scale", [hoist.ptr, hoist.i32, hoist.f32])
    x = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    scale(ByDlpack(x), 6, 3)
    assert x.tolist() == [[0, 3, 6], [9, 12, 15]]
    with pytest.raises(BufferError):
        scale(ByDlpack(x.T), 6, 3)
    with pytest.raises(BufferError):
        scale(ByDlpack(x, device=(2, 0)), 6, 3)


def test_wrong_calls(elftest):
    foo = hoist.load(elftest).fn("foo", [hoist.i32], hoist.f32)
    with pytest.raises(TypeError, match=r"foo\(\) takes 1 argument \(2 given\)"):
        foo(1, 2)
    with pytest.raises(TypeError, match=r"foo\(\) takes 1 argument \(0 given\)"):
        foo()
    with pytest.raises(TypeError, match="no keyword"):
        foo(x=1)
    with pytest.raises(TypeError, match=r"foo\(\) argument 1: i32 expected, got float"):
        foo(1.0)
    with pytest.raises(TypeError, match="i32 expected, got str"):
        foo("1")
    assert foo(True) == 12345679.0
    assert foo(*[321]) == 12345999.0
    assert foo.__call__(321) == 12345999.0


def test_wrong_signatures(elftest):
    module = hoist.load(elftest)
    with pytest.raises(TypeError, match="no type"):
        module.fn("foo", args=["int32"])
    with pytest.raises(ValueError, match="void"):
        module.fn("foo", args=[hoist.void])
    with pytest.raises(ValueError, match="64"):
        module.fn("foo", args=[hoist.i32] * 65)
    with pytest.raises(TypeError):
        hoist.Function()


def test_what_a_function_tells(elftest):
    module = hoist.load(elftest)
    foo = module.fn("foo", args=[hoist.i32], ret=hoist.f32)
    assert (foo.name, foo.__name__, foo.args, foo.ret) == ("foo", "foo", (hoist.i32,), hoist.f32)
    assert foo.address == module.address_of("foo")
    assert foo.owner is module
    assert repr(foo) == f"<hoist.Function foo(i32) -> f32 at {foo.address:#x}>"
    assert repr(hoist.i32) == "hoist.i32" and hoist.types["i32"] == hoist.i32 and hoist.i32 != hoist.u32


def test_the_function_keeps_its_module(elftest):
    foo = hoist.load(elftest).fn("foo", [hoist.i32], hoist.f32)
    gc.collect()
    assert foo(321) == 12345999.0


def test_functions_are_referred_to_weakly(elftest):
    """A cache of functions keeps none of them."""
    import weakref

    module = hoist.load(elftest)
    kept = weakref.WeakValueDictionary()
    kept["foo"] = foo = module.fn("foo", [hoist.i32], hoist.f32)
    kept["next"] = callback = hoist.callback(lambda x: x + 1, args=[hoist.i32], ret=hoist.i32)
    told = []
    weakref.finalize(foo, told.append, "foo")
    assert kept["foo"](321) == 12345999.0 and kept["next"](1) == 2 and weakref.ref(callback)() is callback
    # one in a cycle, which the collector finds
    cycle = [callback]
    cycle.append(hoist.function(callback.address, [hoist.i32], hoist.i32, owner=cycle))
    kept["cycle"] = cycle[1]
    del foo, callback, cycle
    gc.collect()
    assert dict(kept) == {} and told == ["foo"]


SORT = """
typedef int compare(const int *, const int *);
void sort(int *x, int n, compare *less) {
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && less(x + j, x + j - 1) > 0; j--) { int t = x[j]; x[j] = x[j-1]; x[j-1] = t; }
}
int twice(int (*f)(int), int x) { return f(x) + f(x); }
"""


def test_machine_code_calls_python(compile_c):
    sort = hoist.load(compile_c(SORT)).fn("sort", [hoist.ptr, hoist.i32, hoist.ptr])

    @hoist.callback(args=[hoist.ptr, hoist.ptr], ret=hoist.i32)
    def descending(a, b):
        return ctypes.c_int.from_address(a).value - ctypes.c_int.from_address(b).value

    numbers = array.array("i", [3, -1, 7, 5])
    sort(numbers, len(numbers), descending)
    assert numbers.tolist() == [7, 5, 3, -1]
    assert descending.callable is not None and "Callback" in repr(descending)


def test_exceptions_come_out_of_the_call(compile_c):
    twice = hoist.load(compile_c(SORT)).fn("twice", [hoist.ptr, hoist.i32], hoist.i32)
    calls = []

    @hoist.callback(args=[hoist.i32], ret=hoist.i32)
    def fails(x):
        calls.append(x)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        twice(fails, 1)
    assert calls == [1], "the second callback is not run"
    wrong = hoist.callback(lambda x: "text", args=[hoist.i32], ret=hoist.i32)
    with pytest.raises(TypeError, match="result of a callback: i32 expected, got str"):
        twice(wrong, 1)
    good = hoist.callback(lambda x: x + 1, args=[hoist.i32], ret=hoist.i32)
    assert twice(good, 20) == 42
    assert good(20) == 21


def test_callbacks_of_every_type(compile_c):
    for kind, least, most in INTEGERS:
        seen = []
        call = hoist.callback(lambda value: seen.append(value) or value, args=[kind], ret=kind)  # noqa: B023
        again = hoist.function(call.address, [kind], kind)
        assert [again(least), again(most)] == seen == [least, most]
    with pytest.raises(ValueError, match="cstr"):
        hoist.callback(lambda: "x", ret=hoist.cstr)
    text = hoist.callback(lambda word: len(word), args=[hoist.cstr], ret=hoist.i32)
    assert hoist.function(text.address, [hoist.cstr], hoist.i32)("vier") == 4


def test_callbacks_that_give_themselves_up():
    """A function may drop the last reference to its callback: what of it is needed goes after the call, and no later."""
    import weakref

    gone = []
    for number in range(300):
        kept = []

        def once(value, kept=kept, number=number):
            kept.clear()
            gc.collect() if number % 100 == 0 else None
            taken = [bytes(64) for _ in range(50)]
            if number % 3 == 0:
                raise LookupError(number)
            return value + len(taken)

        gone.append(weakref.ref(once))
        kept.append(hoist.callback(once, args=["i32"], ret="i32"))
        function = hoist.function(kept[0].address, args=["i32"], ret="i32")
        del once
        if number % 3 == 0:
            with pytest.raises(LookupError, match=str(number)):
                function(1)
        else:
            assert function(1) == 51
    gc.collect()
    assert [one for one in gone if one() is not None] == []


def test_callbacks_nest(compile_c):
    twice = hoist.load(compile_c(SORT)).fn("twice", [hoist.ptr, hoist.i32], hoist.i32)
    inner = hoist.callback(lambda x: x * 2, args=[hoist.i32], ret=hoist.i32)
    outer = hoist.callback(lambda x: twice(inner, x), args=[hoist.i32], ret=hoist.i32)
    assert twice(outer, 5) == 40


def test_an_exception_in_a_thread_of_the_machine_code_is_told(compile_c):
    source = """
    #include <pthread.h>
    static void *run(void *f) { return (void *)(long)((int (*)(int))f)(3); }
    long elsewhere(void *f) { pthread_t t; void *r; if (pthread_create(&t, 0, run, f)) return -1; pthread_join(t, &r); return (long)r; }
    """
    elsewhere = hoist.load(compile_c(source, "-pthread")).fn("elsewhere", [hoist.ptr], hoist.i64)
    assert elsewhere(hoist.callback(lambda x: x + 1, args=[hoist.i32], ret=hoist.i32)) == 4
    told = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda what: told.append(what.exc_type)
    try:

        def fails(x):
            raise KeyError(x)

        assert elsewhere(hoist.callback(fails, args=[hoist.i32], ret=hoist.i32)) == 0
    finally:
        sys.unraisablehook = hook
    assert told == [KeyError]


def test_the_lock_is_given_up(compile_c):
    """One thread waits in machine code for what another one does in Python."""
    source = "void wait(volatile int *x) { while (*x == 0); } void set(volatile int *x) { *x = 1; }"
    module = hoist.load(compile_c(source))
    wait, set_ = module.fn("wait", [hoist.ptr]), module.fn("set", [hoist.ptr])
    flag = array.array("i", [0])
    waiter = threading.Thread(target=wait, args=(flag,))
    waiter.start()
    set_(flag)
    waiter.join(60)
    assert not waiter.is_alive()


def test_without_giving_up_the_lock(elftest):
    assert hoist.load(elftest).fn("foo", [hoist.i32], hoist.f32, nogil=False)(321) == 12345999.0


def test_calls_from_many_threads(arguments):
    add = hoist.load(arguments).fn("i64_sum", [int, int], int)
    wrong = []

    def work(start):
        wrong.extend(n for n in range(2000) if add(start, n) != start + n)

    threads = [threading.Thread(target=work, args=(n * 10**6,)) for n in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


def test_a_call_takes_no_memory_that_stays(arguments):
    import tracemalloc

    add = hoist.load(arguments).fn("i64_sum", [int, int], int)
    args = (1, 2)
    add(*args)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(10_000):
            add(*args)
        assert tracemalloc.get_traced_memory()[0] - before < 2000
    finally:
        tracemalloc.stop()
