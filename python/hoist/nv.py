"""NVIDIA GPUs: devices, memory, launches. Nothing of CUDA is needed before there is a driver.

>>> import hoist.nv
>>> hoist.nv.is_available() in (True, False)
True

A launch, where there is a GPU:

    device = hoist.nv.Device()
    kernel = device.load("kernels.fatbin").kernel("scale")
    numbers = device.buffer(4096)
    numbers.write(array)                                  # any object with a buffer, or torch's tensors on the processor
    kernel(numbers, (hoist.f32, 2.0), (hoist.i32, 1024), grid=4, block=256, wait=True)
    numbers.read_into(array)                              # `read` gives bytes; torch.as_tensor(numbers, device="cuda") copies nothing

What is missing is an error with a name: `hoist.NoDeviceError`, whose `kind` says what (`NoLibrary`, `NoDevice`, `OldDriver`).
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _hoist
from ._bytes import Source, read
from .errors import NoDeviceError

__all__ = ["Buffer", "Device", "Event", "Image", "Kernel", "device_count", "is_available"]

#: Blocks or threads, by up to three dimensions.
Size = Union[int, Sequence[int]]


def device_count() -> int:
    """How many GPUs the driver knows. Raises `hoist.NoDeviceError` where there is no driver."""
    return _hoist.device_count()


def is_available() -> bool:
    """Whether there is a driver and a GPU."""
    try:
        return device_count() > 0
    except NoDeviceError:
        return False


def _size(size: Size) -> Tuple[int, int, int]:
    dimensions = (size,) if isinstance(size, int) else tuple(size)
    if not 1 <= len(dimensions) <= 3:
        raise ValueError(f"one to three dimensions, not {size!r}")
    x, y, z = (*dimensions, 1, 1)[:3]
    return x, y, z


class Device:
    """A GPU, as the driver counts them from 0.

    Raises `hoist.NoDeviceError` if there is none.
    """

    __slots__ = ("_native",)

    def __init__(self, ordinal: int = 0) -> None:
        self._native = _hoist.Device(ordinal)

    @property
    def properties(self) -> Dict[str, Any]:
        """What it is: `name`, `sm`, `memory`, `sm_count`, `max_threads`, `shared`, `cuda` and others. Memory in bytes."""
        return self._native.properties()

    @property
    def name(self) -> str:
        """What the maker calls it."""
        return self.properties["name"]

    @property
    def sm(self) -> int:
        """The number of its architecture: 90."""
        return self.properties["sm"]

    def buffer(self, size: "int | Any", *, zeroed: bool = False) -> "Buffer":
        """Memory of so many bytes; of an object with a buffer or DLPack (torch on the processor), a copy of it on the device."""
        if isinstance(size, int):
            return Buffer(self._native.buffer(size, zeroed))
        return Buffer(self._native.buffer_of(size))

    def load(self, source: Source, *, own: bool = False) -> "Image":
        """Loads what of `source` is for this device: a cubin, PTX, a fatbin, a library. `own` has hoist put it there instead of the
        driver."""
        return Image(self, self._native.load(read(source)[1], own))

    def synchronize(self) -> None:
        """Waits for all that is queued. What kernels did wrong is raised here."""
        self._native.synchronize()

    def event(self) -> "Event":
        """A mark behind what is queued."""
        return Event(self._native.record())

    def reset(self) -> Optional[str]:
        """Makes the device usable again after an error of a kernel, which it gives. All memory and code on it is gone."""
        return self._native.reset()

    def __repr__(self) -> str:
        return f"<hoist.nv.Device {self.name}, sm_{self.sm}>"


class Buffer:
    """Memory of a GPU. It is freed when nobody refers to it any more, and no launch uses it."""

    __slots__ = ("_native",)

    def __init__(self, native: Any) -> None:
        self._native = native

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self._native.size

    @property
    def address(self) -> int:
        """Its address on the device."""
        return self._native.address

    def write(self, data: Any, offset: int = 0) -> None:
        """Copies an object with a buffer or DLPack to the device."""
        self._native.copy_in(offset, data)

    def read(self, offset: int = 0, size: Optional[int] = None) -> bytes:
        """Copies bytes from the device."""
        return self._native.copy_out(offset, self.size - offset if size is None else size)

    def read_into(self, target: Any, offset: int = 0) -> None:
        """Copies from the device into an object with a buffer or DLPack (bytearray, array, numpy, torch on the processor), as many
        bytes as it has."""
        self._native.copy_out_to(offset, target)

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        """Its bytes for other packages, without a copy: `torch.as_tensor(buffer, device="cuda")`, `cupy.asarray(buffer)`."""
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.address, False), "strides": None, "version": 3}

    def free(self) -> None:
        """Frees it now, or when the launches that use it are over."""
        self._native.free()

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<hoist.nv.Buffer of {self.size} bytes>"


class Event:
    """A mark in a queue."""

    __slots__ = ("_native",)

    def __init__(self, native: Any) -> None:
        self._native = native

    def wait(self) -> None:
        """Waits until it is passed."""
        self._native.wait()

    @property
    def is_reached(self) -> bool:
        """Whether it is passed."""
        return self._native.is_reached()

    def since(self, start: "Event") -> float:
        """Seconds between two marks, both passed."""
        return self._native.since(start._native)


class Image:
    """Code on a GPU."""

    __slots__ = ("_device", "_native")

    def __init__(self, device: Device, native: Any) -> None:
        self._device = device
        self._native = native

    def kernel(self, name: str) -> "Kernel":
        """The kernel `name`. Raises `hoist.DeviceError` with `symbols`, the names that there are, if it is none of them."""
        return Kernel(self._device._native.kernel(self._native, name), name)


def _argument(one: Any) -> Any:
    """What the native part takes for an argument of a kernel."""
    if isinstance(one, Buffer):
        return one._native
    interface = getattr(one, "__cuda_array_interface__", None)
    if interface is None:
        return one
    stride = int(interface["typestr"][2:])
    strides = interface.get("strides") or ()
    for size, found in reversed(list(zip(interface["shape"], strides))):
        if size > 1 and found != stride:
            raise BufferError("an array of the device that is not in one piece")
        stride *= size
    return _hoist.ptr, interface["data"][0]


class Kernel:
    """A kernel that can be launched."""

    __slots__ = {"_native": None, "name": "Its name."}

    def __init__(self, native: Any, name: str) -> None:
        self._native = native
        self.name = name

    def __call__(
        self,
        *args: Any,
        grid: Size = 1,
        block: Size = 1,
        shared: int = 0,
        cluster: Optional[Size] = None,
        cooperative: bool = False,
        wait: bool = False,
    ) -> Optional[float]:
        """Launches it behind what is queued; with `wait`, waits for it and gives the seconds that it took.

        Arguments are buffers, arrays of other packages on the device (torch, cupy, numba: `__cuda_array_interface__`), which must stay
        until the kernel is over, pairs of a type and a number (`(hoist.f32, 2.0)`), and bytes (structures). `shared` is dynamic
        shared memory in bytes. A launch that kernel or device cannot do is refused before.
        """
        given: List[Any] = [_argument(one) for one in args]
        cluster_size = None if cluster is None else _size(cluster)
        return self._native.launch(_size(grid), _size(block), given, shared, cluster_size, cooperative, wait)

    def __repr__(self) -> str:
        return f"<hoist.nv.Kernel {self.name}>"
