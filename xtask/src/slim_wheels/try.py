"""What the tests of installed wheels call: libraries of the environment, loaded by their paths."""

import ctypes
import glob
import sysconfig


def paths(part):
    site = sysconfig.get_path("purelib")
    files = glob.glob(site + "/**/*.so*", recursive=True)
    return sorted(file for file in files if part in file[len(site):])


def path(part):
    return paths(part)[0]


def load(*parts):
    """Loads all libraries with one of these in their paths, in this order; without any, all."""
    for part in parts or [""]:
        found = paths(part)
        assert found, part
        for file in found:
            ctypes.CDLL(file, mode=ctypes.RTLD_GLOBAL)


def property_of(library, function):
    """The major version of a library of NVIDIA's."""
    value = ctypes.c_int()
    assert getattr(ctypes.CDLL(path(library)), function)(0, ctypes.byref(value)) == 0
    return value.value


def version_of(library, function):
    value = ctypes.c_int()
    assert getattr(ctypes.CDLL(path(library)), function)(ctypes.byref(value)) == 0
    return value.value
