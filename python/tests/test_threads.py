"""Threads that call, load, replace and unload at once, with the interpreter's lock and without."""

from __future__ import annotations

import concurrent.futures
import gc
import pathlib
import sys
import threading

import pytest

import hoist

MANY = 8


def at_once(*works):
    """Runs these in as many threads, which begin together: what each gives."""
    barrier = threading.Barrier(len(works))

    def one(work):
        barrier.wait()
        return work()

    with concurrent.futures.ThreadPoolExecutor(len(works)) as pool:
        return [future.result() for future in [pool.submit(one, work) for work in works]]


def test_the_package_takes_no_lock_where_there_is_none():
    if not hasattr(sys, "_is_gil_enabled") or sys.version_info < (3, 14) or "t" not in sys.abiflags:
        return
    assert not sys._is_gil_enabled()


def test_calls_and_the_end_of_their_code(elftest):
    """Whoever calls gets the result or is told that the code is gone; whoever unloads, that somebody is inside."""
    data = pathlib.Path(elftest).read_bytes()
    for _ in range(20):
        module = hoist.load(data)
        foo = module.fn("foo", args=[hoist.i32], ret=hoist.f32)

        def call(foo=foo):
            done = 0
            while True:
                try:
                    assert foo(321) == 12345999.0
                except hoist.UnloadedError:
                    return done
                done += 1

        def unload(module=module):
            while True:
                try:
                    return module.unload()
                except hoist.BusyError as error:
                    assert 0 < error.calls <= MANY

        at_once(*[call] * MANY, unload, unload)
        assert not module.is_loaded


def test_a_callback_of_several_threads(compile_c):
    source = "long many(long (*f)(long), long n) { long sum = 0; for (long i = 0; i < n; i++) sum += f(i); return sum; }"
    many = hoist.load(compile_c(source)).fn("many", [hoist.ptr, hoist.i64], hoist.i64)
    shared = hoist.callback(lambda x: x + 1, args=[hoist.i64], ret=hoist.i64)

    def work():
        own = hoist.callback(lambda x: 2 * x, args=[hoist.i64], ret=hoist.i64)
        return [many(shared, 500), many(own, 500)]

    assert at_once(*[work] * MANY) == [[125250, 249500]] * MANY


def test_the_last_reference_of_a_callback_goes_while_others_run_it(compile_c):
    """A function gives up its own callback: the last of the calls puts it away."""
    source = """
    #include <pthread.h>
    static void *run(void *f) { ((void (*)(void))f)(); return 0; }
    void both(void *f) { pthread_t t[4]; for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, run, f);
                         for (int i = 0; i < 4; i++) pthread_join(t[i], 0); }
    """
    both = hoist.load(compile_c(source, "-pthread")).fn("both", [hoist.ptr])
    for _ in range(100):
        inside, held = threading.Barrier(4), []

        def run(inside=inside, held=held):
            inside.wait()
            held.clear()

        held.append(hoist.callback(run))
        address = held[0].address
        del run
        both(address)
        assert not held


def test_exceptions_stay_in_their_threads(compile_c):
    source = "void call(void (*f)(long), long x) { f(x); }"
    call = hoist.load(compile_c(source)).fn("call", [hoist.ptr, hoist.i64])

    def refuse(x):
        if x % 2:
            raise ValueError(x)

    refused = hoist.callback(refuse, args=[hoist.i64])

    def work(number):
        for turn in range(200):
            if number % 2:
                with pytest.raises(ValueError, match=f"^{number}$"):
                    call(refused, number)
            else:
                call(refused, number)

    at_once(*[lambda number=number: work(number) for number in range(MANY)])


def test_objects_of_all_kinds_come_and_go(elftest):
    data = pathlib.Path(elftest).read_bytes()

    def work():
        for _ in range(30):
            module = hoist.load(data)
            view = next(section.data for section in module.sections() if section.name == ".text")
            foo = module.fn("foo", args=[hoist.i32], ret=hoist.f32)
            assert foo(1) == 12345679.0
            assert view[0] == bytes(view)[0]
            assert repr(foo) and foo.owner is module and foo.args == (hoist.i32,)
            gc.collect(0)

    at_once(*[work] * MANY)


def test_functions_are_replaced_while_they_are_called(compile_c):
    one, two = (compile_c(f"int f(void) {{ return {n}; }}") for n in (1, 2))
    module, other = hoist.load(one, replaceable=True), hoist.load(two)
    f = module.fn("f", ret=hoist.i32)
    is_over = threading.Event()

    def call():
        seen = set()
        while not is_over.is_set():
            seen.add(f())
        return seen

    def replace():
        for _ in range(200):
            module.replace("f", other).undo()
        is_over.set()
        return {1}

    for seen in at_once(*[call] * 3, replace):
        assert seen <= {1, 2}
    assert f() == 1


def test_what_a_module_shows_is_read_at_once(elftest):
    module = hoist.load(elftest)

    def work():
        return [(symbol["name"], symbol["address"]) for symbol in module.symbols()] * 20

    first, *others = at_once(*[work] * MANY)
    assert all(other == first for other in others)
