"""An operator compiled by TVM: its object for this machine is loaded by hoist. TVM's own just-in-time compiler and linker have no part in it.

    pip install apache-tvm numpy
    python tvm_objects.py

It prints [3.0, 6.0, 9.0], and -1, with which the operator refuses an array of another length.
"""

from __future__ import annotations

import ctypes
import pathlib
import tempfile

import numpy
import tvm
import tvm_ffi
from tvm import te

import hoist


class Tensor(ctypes.Structure):
    """`DLTensor` (dlpack.h) of one dimension, on the processor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )

    @classmethod
    def of(cls, array: numpy.ndarray) -> Tensor:
        shape, strides = (ctypes.c_int64 * 1)(array.size), (ctypes.c_int64 * 1)(1)
        return cls(array.ctypes.data, (1, 0), 1, 2, array.itemsize * 8, 1, shape, strides, 0)


class Value(ctypes.Structure):
    """`TVMFFIAny` (tvm/ffi/c_api.h): a value and what it is."""

    _fields_ = (("type_index", ctypes.c_int32), ("padding", ctypes.c_uint32), ("pointer", ctypes.c_void_p))

    #: `kTVMFFIDLTensorPtr`
    TENSOR = 7


def compile_object() -> bytes:
    """`c[i] = 2 * a[i] + b[i]` as a relocatable object for this machine."""
    length = te.var("length")
    a, b = (te.placeholder((length,), name=name, dtype="float32") for name in "ab")
    c = te.compute((length,), lambda i: a[i] * 2.0 + b[i], name="c")
    function = te.create_prim_func([a, b, c]).with_attr("global_symbol", "axpy")
    compiled = tvm.compile(tvm.IRModule({"axpy": function}), target="llvm")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "axpy.o")
        compiled.mod.write_to_file(str(path), "o")
        return path.read_bytes()


def main() -> None:
    # what it reports errors by is in the library that TVM's package has
    module = hoist.load(compile_object(), libs=[tvm_ffi.libinfo.find_libtvm_ffi()])
    packed = module.fn("__tvm_ffi_axpy", args=[hoist.ptr, hoist.ptr, hoist.i32, hoist.ptr], ret=hoist.i32)

    def axpy(*arrays: numpy.ndarray) -> int:
        tensors = [Tensor.of(array) for array in arrays]
        values = (Value * len(tensors))(*((Value.TENSOR, 0, ctypes.addressof(tensor)) for tensor in tensors))
        return packed(None, values, len(tensors), bytearray(ctypes.sizeof(Value)))

    a, b, c = numpy.array([1, 2, 3], "float32"), numpy.array([1, 2, 3], "float32"), numpy.zeros(3, "float32")
    assert axpy(a, b, c) == 0
    print(c.tolist())
    print(axpy(a, b[:2], c))


if __name__ == "__main__":
    main()
