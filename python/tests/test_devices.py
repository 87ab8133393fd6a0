"""GPUs on a stub of the driver (`exec-nv/tests/stub`): memory, what other packages lend and borrow, launches."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import FIXTURES, ROOT, skip

STUB = ROOT / "exec-nv/tests/stub/libcuda.c"
KERNELS = str(FIXTURES / "cuda/gpu-13.0-sm_90.fatbin")


@pytest.fixture(scope="session")
def driver(tmp_path_factory) -> pathlib.Path:
    """A folder with the stub under the driver's name."""
    compiler = shutil.which("cc")
    if compiler is None:
        skip("driver", "a C compiler")
    folder = tmp_path_factory.mktemp("driver")
    words = ["-D_GNU_SOURCE", "-shared", "-fPIC", "-w", str(STUB), "-o", str(folder / "libcuda.so.1")]
    subprocess.run([compiler, *words], check=True)
    return folder


def on_stub(driver: pathlib.Path, log: pathlib.Path, program: str, **environment: str) -> "list[str]":
    """Runs a program that finds the stub for its driver: the calls of the driver, one a line."""
    log.unlink(missing_ok=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "HOIST_STUB_LOG": str(log), **environment}
    done = subprocess.run([sys.executable, "-c", program, KERNELS], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return log.read_text().splitlines()


MEMORY = """
import array, hoist.nv, numpy
device = hoist.nv.Device()
assert device.sm == 90 and repr(device) == "<hoist.nv.Device Stub of a GPU 0, sm_90>"
numbers = array.array("f", range(8))
buffer = device.buffer(numbers)
assert len(buffer) == buffer.size == 32 and buffer.read() == numbers.tobytes() and buffer.read(4, 8) == numbers[1:3].tobytes()
buffer.write(bytes(8), offset=8)
back = numpy.ones((2, 4), dtype=numpy.float32)
buffer.read_into(back)
assert back.tolist() == [[0, 1, 0, 0], [4, 5, 6, 7]]
part = bytearray(4)
buffer.read_into(part, offset=4)
assert bytes(part) == numbers[1:2].tobytes()

def refused(error, call, *words):
    try:
        call(*words)
    except error:
        return
    raise AssertionError(words)

class Tensor:
    "What torch's tensors on the processor are: no buffer, but DLPack."
    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device
    def __dlpack_device__(self):
        return self.device
    def __dlpack__(self):
        return self.array.__dlpack__()

tensor = Tensor(numpy.arange(8, dtype=numpy.float32).reshape(2, 4))
copy = device.buffer(tensor)
assert copy.read() == tensor.array.tobytes()
copy.write(Tensor(numpy.full(8, 2, dtype=numpy.float32)))
copy.read_into(tensor)
assert tensor.array.tolist() == [[2] * 4] * 2
assert device.buffer(Tensor(numpy.zeros(3, dtype=numpy.int16))).size == 6
assert device.buffer(Tensor(numpy.array(1.5))).size == 8
refused(BufferError, device.buffer, Tensor(tensor.array.T))
refused(BufferError, device.buffer, Tensor(tensor.array, device=(2, 0)))
refused((BufferError, ValueError), copy.write, tensor.array[:, ::2])
refused(TypeError, device.buffer, "text")
refused((BufferError, TypeError), copy.read_into, b"constant")
refused(hoist.DeviceError, copy.read_into, bytearray(33))
refused(hoist.DeviceError, copy.write, bytes(33))
try:
    copy.write(bytes(33))
except hoist.DeviceError as error:
    assert error.kind == "Outside", error.kind
shared = copy.__cuda_array_interface__
assert shared["data"] == (copy.address, False) and shared["shape"] == (32,) and shared["typestr"] == "|u1"
copy.free()
refused(ValueError, copy.read)
"""


def test_memory_and_what_others_lend(driver, tmp_path):
    pytest.importorskip("numpy", reason="skipped: test_memory_and_what_others_lend: needs numpy")
    calls = on_stub(driver, tmp_path / "log", MEMORY)
    assert any(call.startswith("cuMemcpy") for call in calls)


LAUNCH = """
import hoist, hoist.nv, sys
device = hoist.nv.Device()
image = device.load(sys.argv[1])
kernel = image.kernel("vector_add")
out, x = device.buffer(64), device.buffer(64)

class Array:
    "What torch, cupy and numba have on a device."
    def __init__(self, **more):
        self.__cuda_array_interface__ = {"shape": (4, 4), "typestr": "<f4", "data": (x.address, False), "version": 3, **more}

kernel(out, x, x, (hoist.i32, 16), grid=2, block=(16, 2), shared=512)
kernel(out, Array(), Array(strides=(16, 4)), (hoist.i32, 16), grid=2, block=(16, 2), shared=512)
try:
    kernel(out, Array(strides=(4, 16)), x, (hoist.i32, 16))
    raise AssertionError
except BufferError:
    pass
try:
    kernel(out, x)
    raise AssertionError
except hoist.DeviceError:
    pass
try:
    image.kernel("absent")
    raise AssertionError
except hoist.DeviceError as error:
    assert error.symbol == "absent" and "vector_add" in error.symbols
before = device.event()
assert kernel(out, x, x, (hoist.i32, 16), wait=True) >= 0
after = device.event()
after.wait()
assert after.is_reached and after.since(before) >= 0
device.synchronize()
"""


def test_arrays_of_other_packages_are_arguments(driver, tmp_path):
    calls = on_stub(driver, tmp_path / "log", LAUNCH)
    launches = [call for call in calls if call.startswith("cuLaunchKernel")]
    assert len(launches) == 3 and launches[0] == launches[1]
    assert " vector_add 2x1x1 16x2x1 512 " in launches[0] and launches[0].endswith(":10000000")


def test_what_the_driver_refuses_is_told(driver, tmp_path):
    program = """
import hoist.nv
device = hoist.nv.Device()
try:
    device.synchronize()
    raise AssertionError
except hoist.DeviceError as error:
    assert (error.kind, error.function, error.code) == ("Driver", "cuStreamSynchronize", 999), vars(error)
"""
    calls = on_stub(driver, tmp_path / "log", program, HOIST_STUB_FAIL="cuStreamSynchronize:999:1")
    assert "cuStreamSynchronize stream 1" in calls
