"""The interpreter's lock is given up in what may take long."""

from __future__ import annotations

import pathlib
import sys
import threading
import time

import pytest
from conftest import FIXTURES

import hoist

CUDA = FIXTURES / "cuda"


def works(elftest: str):
    """By name, calls of the native part alone: nothing of Python runs in between."""
    native = hoist._hoist
    data = pathlib.Path(elftest).read_bytes()
    cubin = (CUDA / "kernels-13.5-sm_80.cubin").read_bytes()
    linked = [(name, (CUDA / f"calls_{name}-13.5-sm_80.cubin").read_bytes()) for name in "ab"]
    fatbin = (CUDA / "gpu-13.0-sm_90.fatbin").read_bytes()
    options = {"base": 0, "packed": None, "page_size": 4096, "relax": True, "undefined": None, "limit": 1 << 20}
    # an object that is long enough: what is behind its tables counts
    long = data + bytes(1 << 17)
    image = native.DeviceImage(cubin)
    return {
        "load": lambda: native.load([("a", data)], {}, None, [], [], True, None, None),
        "flat": lambda: native.flat(long, None, None),
        "link": lambda: native.link([("a", data)], {}, [], options),
        "cubin": lambda: native.cubin(cubin, "a"),
        "link_cubins": lambda: native.link_cubins(linked, None, [], False),
        "DeviceImage": lambda: native.DeviceImage(cubin),
        "write": lambda: image.write(0x1000),
        "entries": lambda: native.entries(fatbin, True),
        "select": lambda: native.select(fatbin, "a", 90, None, True),
    }


@pytest.mark.parametrize(
    "name", ["load", "flat", "link", "cubin", "link_cubins", "DeviceImage", "write", "entries", "select"]
)
def test_others_run_meanwhile(elftest, name):
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return
    work = works(elftest)[name]
    counted, is_over, started = 0, False, threading.Event()

    def count():
        nonlocal counted
        while not is_over:
            counted += 1
            started.set()
            time.sleep(0)  # gives the lock up itself

    before = sys.getswitchinterval()
    thread = threading.Thread(target=count)
    thread.start()
    started.wait()
    try:
        # nobody is made to give up the lock: others run when it is given up, and never else
        sys.setswitchinterval(1000)
        end = time.monotonic() + 60
        was = counted
        while True:
            was = counted
            work()
            if counted != was or time.monotonic() > end:
                break
        assert counted != was
        # the same of what never gives it up
        was = counted
        for _ in range(1000):
            hoist._hoist.occupancy(80, 256, 32, 0, 1, 0)
        assert counted == was
    finally:
        sys.setswitchinterval(before)
        is_over = True
        thread.join()
