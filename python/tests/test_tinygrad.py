"""tinygrad on this loader: its versions of the last year, with and without. `cargo xtask python` gets them (`HOIST_TINYGRAD_WHEELS`)."""

from __future__ import annotations

import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import zipfile

import pytest
from conftest import FIXTURES, skip

VERSIONS = ["0.12.0", "0.13.0", "0.14.0"]

#: Runs in a process of its own: prints what the kernels computed, and how often each loader was asked.
PROGRAM = """
import json, os, sys
install = sys.argv[1] == "with"
import hoist
if install:
    import hoist.tinygrad
    hoist.tinygrad.install()
import tinygrad.runtime.support.elf as elf
calls = 0
inner = elf.jit_loader
def counting(*args, **kwargs):
    global calls
    calls += 1
    return inner(*args, **kwargs)
elf.jit_loader = counting
for name in ("tinygrad.runtime.ops_cpu", "tinygrad.runtime.support.compiler_cpu", "tinygrad.renderer.cstyle", "tinygrad.renderer.llvmir"):
    module = sys.modules.get(name)
    if module is not None and getattr(module, "jit_loader", None) is inner:
        module.jit_loader = counting
from tinygrad import Tensor, dtypes
results = {}
def test(name, value):
    results[name] = value.flatten().tolist()
x = Tensor(list(range(1, 65)), device="CPU").reshape(8, 8).cast(dtypes.float32)
test("add", x + x)
test("matmul", x @ x)
test("reduce", x.sum(axis=0))
test("max", x.max(axis=1))
test("exp", (x / 100).exp())
test("sin", x.sin())
test("log", x.log())
test("sqrt", x.sqrt())
test("softmax", (x / 50).softmax())
test("where", (x > 20).where(x, -x))
test("cast_i32", (x * 3).cast(dtypes.int32))
test("cast_f64", x.cast(dtypes.float64) / 3)
test("conv", x.reshape(1, 1, 8, 8).conv2d(Tensor.ones(1, 1, 3, 3, device="CPU")))
test("cumsum", x.cumsum(axis=0))
test("argmax", x.argmax(axis=1))
test("sort", (x * 7 % 13).flatten())
test("shift", (x.cast(dtypes.uint32) << 2).cast(dtypes.int32))
test("mod", x.cast(dtypes.int32) % 7)
test("idiv", x.cast(dtypes.int32) // 5)
test("half", x.cast(dtypes.half) + 1)
test("bool", (x > 3) & (x < 40))
test("gelu", (x / 10).gelu())
test("mean_var", Tensor.stack(x.mean(), x.var()))
test("pool", x.reshape(1, 1, 8, 8).max_pool2d())
w = (Tensor.ones(8, 4, device="CPU") * 0.1).contiguous()
w.requires_grad = True
(x @ w).relu().sum().backward()
test("backward", w.grad)
from tinygrad import Device
assert os.environ["RENDERER"] in type(Device["CPU"].renderer).__name__, Device["CPU"].renderer
print(json.dumps([results, calls]))
"""


def wheels() -> "dict[str, pathlib.Path]":
    folder = os.environ.get("HOIST_TINYGRAD_WHEELS")
    found = pathlib.Path(folder).glob("tinygrad-*.whl") if folder else []
    return {path.name.split("-")[1]: path for path in found}


@pytest.fixture(scope="session")
def tinygrad(tmp_path_factory):
    """The folder of a version of tinygrad."""
    folders = {}

    def tinygrad(version: str) -> pathlib.Path:
        wheel = wheels().get(version)
        if wheel is None:
            skip(f"tinygrad[{version}]", "tinygrad's wheels of the package index")
        if version not in folders:
            folders[version] = tmp_path_factory.mktemp("tinygrad")
            zipfile.ZipFile(wheel).extractall(folders[version])
        return folders[version]

    return tinygrad


def run(folder: pathlib.Path, program: str, *words: str, **more: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(folder), "CACHELEVEL": "0", "DEVICE": "CPU", "DEV": "CPU", "CPU": "1", "DISABLE_COMPILER_CACHE": "1", **more}
    environment.pop("PYTEST_CURRENT_TEST", None)
    environment = {name: value for name, value in environment.items() if value != ""}
    return subprocess.run([sys.executable, "-W", "ignore", "-c", program, *words], env=environment, capture_output=True, text=True)


def clang() -> str:
    for name in ("clang", "clang-19", "clang-14"):
        if shutil.which(name):
            return name
    skip("tinygrad", "clang")
    raise AssertionError


def renderer(name: str, version: str) -> "dict[str, str]":
    """What has tinygrad compile by clang, or by LLVM's library."""
    if name == "clang":
        return {"CC": clang(), "RENDERER": "Clang"}
    libraries = sorted(pathlib.Path("/usr/lib").glob("*/libLLVM*.so*19*"))
    if not libraries:
        skip(f"tinygrad[{version}]", "the library of LLVM 19")
    own = {"CPU_LLVM": "1"} if version.startswith("0.12.") else {"DEV": "CPU:LLVM", "DEVICE": "", "CPU": ""}
    # 0.14 has clang compile the programs of its queues, whoever compiles kernels
    return {"CC": clang(), "LLVM_PATH": str(libraries[0]), "RENDERER": "LLVM", **own}


@pytest.mark.parametrize("compiler", ["clang", "llvm"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_results_with_and_without(tinygrad, version, compiler):
    folder, more = tinygrad(version), renderer(compiler, version)
    answers = {}
    for how in ("without", "with"):
        done = run(folder, PROGRAM, how, **more)
        assert done.returncode == 0, done.stderr[-3000:]
        answers[how] = json.loads(done.stdout.splitlines()[-1])
    (plain, calls), (ours, our_calls) = answers["without"], answers["with"]
    assert len(plain) == 25 and ours == plain
    assert calls == our_calls > 20, "the loader was used for each kernel"


LOADERS = """
import ctypes, mmap, pathlib, sys, time
import hoist, hoist.tinygrad
import tinygrad.runtime.support.elf as elf
theirs, ours = elf.jit_loader, hoist.tinygrad.jit_loader
compared = 0
for path in sorted(pathlib.Path(sys.argv[1]).glob("elftest*.o")):
    blob = path.read_bytes()
    their, our = theirs(blob), ours(blob)
    for image in (their, our):
        memory = mmap.mmap(-1, len(image), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        memory.write(image)
        address, _, _ = hoist._hoist.address_of(memory)
        foo = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int)(address)
        assert foo(321) == 12345999.0
    compared += 1
assert compared
cuda = 0
for path in sorted(pathlib.Path(sys.argv[2]).glob("*.cubin")):
    blob = path.read_bytes()
    if blob[16] != 2 or blob[4] != 2 or hoist.Cubin(blob).sm < 70:
        continue  # a device linker has to link it, it is of 32 bits, or too old: tinygrad's affair
    image, sections, relocs = hoist.tinygrad.elf_loader(blob, force_section_align=128)
    if not relocs or not isinstance(relocs[0][1], hoist.tinygrad._Address):
        continue
    base = 0x7F4000000000
    # what NVProgram does
    for place, target, typ, _ in relocs:
        assert typ == 2
        image[place:place + 8] = __import__("struct").pack("<Q", base + target)
    plan = hoist._hoist.DeviceImage(blob)
    assert bytes(image) == plan.write(base), path
    try:
        their_sections = elf.elf_loader(blob, force_section_align=128)[1]
    except (IndexError, RuntimeError):
        their_sections = sections
    assert [one.name for one in sections] == [one.name for one in their_sections]
    assert [bytes(one.content) for one in sections] == [bytes(one.content) for one in their_sections]
    for section in sections:
        if section.name.startswith(".text."):
            start = section.header.sh_addr
            assert start % 128 == 0 and start + section.header.sh_size <= len(image)
    cuda += 1
print(compared, cuda)
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_both_loaders_load_the_same(tinygrad, version):
    if platform.machine() != "x86_64":
        skip("test_both_loaders_load_the_same", "x86-64")
    done = run(tinygrad(version), LOADERS, str(FIXTURES / "x86_64"), str(FIXTURES / "cuda"))
    assert done.returncode == 0, done.stderr[-3000:]
    objects, cubins = map(int, done.stdout.split())
    assert objects >= 1 and cubins >= 15


#: Runs in a process of its own: tinygrad's own `NVProgram` on a stub of its device, with its loader and with ours. Prints how many kernels had
#: which things compared.
NV_PROGRAM = """
import inspect, pathlib, sys, types
from unittest.mock import MagicMock
import hoist, hoist.tinygrad
import tinygrad.runtime.ops_nv as nv
BASE = 0x7F40000000
def program(blob, name, sm):
    device = MagicMock()
    device.iface.compute_class = nv.nv_gpu.BLACKWELL_COMPUTE_A if sm >= 100 else nv.nv_gpu.AMPERE_COMPUTE_A
    device.shared_mem_window, device.local_mem_window, device.slm_per_thread, device.sass_version = 0x729400000000, 0x729300000000, 0x900, sm
    device.allocator.alloc = lambda size, spec: types.SimpleNamespace(va_addr=BASE, size=size)
    copied = []
    device.allocator._copyin = lambda place, image: copied.append(bytes(image))
    obj = types.SimpleNamespace(name=name, lib=blob, signature=(), profile_key=None)
    takes_object = "obj" in inspect.signature(nv.NVProgram.__init__).parameters
    made = nv.NVProgram(device, obj) if takes_object else nv.NVProgram(device, name, blob)
    return made, copied[0]
kernels = banks = images = 0
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.cubin")):
    blob = path.read_bytes()
    if blob[16] != 2 or blob[4] != 2 or not 75 <= (cubin := hoist.Cubin(blob)).sm < 130:
        continue
    for name, kernel in cubin.kernels.items():
        hoist.tinygrad.uninstall()
        try:
            their, their_image = program(blob, name, cubin.sm)
        except Exception as error:
            their = error
        hoist.tinygrad.install()
        try:
            our, our_image = program(blob, name, cubin.sm)
        except Exception as error:
            # what is no affair of loaders: too much shared memory for its table, fields of the launch block
            assert repr(error) == repr(their), (path, name, error, their)
            continue
        # of several kernels it takes the last one's, with either loader
        assert len(cubin.kernels) > 1 or our.regs_usage == kernel.registers, (path, name, our.regs_usage)
        plan = hoist._hoist.DeviceImage(blob)
        whole = plan.write(BASE)
        if our_image[: len(whole)] == whole:
            images += 1
        if isinstance(their, Exception):
            continue
        for field in ("regs_usage", "shmem_usage", "lcmem_usage", "cbuf_0", "max_threads", "kernargs_alloc_size"):
            assert getattr(our, field) == getattr(their, field), (path, name, field)
        assert {bank: size for bank, (_, size) in our.constbufs.items()} == {bank: size for bank, (_, size) in their.constbufs.items()}
        for bank, (address, size) in our.constbufs.items():
            if address and size:
                start, their_start = address - BASE, their.constbufs[bank][0] - BASE
                assert 0 <= start and start + size <= len(our_image), (path, name, bank)
                assert our.qmd.read(f"constant_buffer_valid_{bank}") == 1
                banks += our_image[start : start + size] == their_image[their_start : their_start + size]
        kernels += 1
print(kernels, banks, images)
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_programs_of_the_nv_back_end_are_made(tinygrad, version):
    """Registers, shared and local memory, constant banks and arguments, as `NVProgram` finds them in what the loader gives it."""
    done = run(tinygrad(version), NV_PROGRAM, str(FIXTURES / "cuda"))
    assert done.returncode == 0, done.stderr[-3000:]
    print(done.stdout)
    kernels, banks, images = map(int, done.stdout.split())
    assert kernels >= 20 and banks >= 20 and images >= 100


SWITCH = """
import hoist, hoist.tinygrad
import tinygrad.runtime.support.elf as elf
import tinygrad.runtime.ops_cpu as cpu
theirs = elf.jit_loader
assert cpu.jit_loader is theirs and not hoist.tinygrad.is_installed()
hoist.tinygrad.install()
hoist.tinygrad.install()
assert cpu.jit_loader is elf.jit_loader is hoist.tinygrad.jit_loader and hoist.tinygrad.is_installed()
with hoist.tinygrad.installed():
    pass
assert hoist.tinygrad.is_installed()
hoist.tinygrad.uninstall()
hoist.tinygrad.uninstall()
assert cpu.jit_loader is elf.jit_loader is theirs
with hoist.tinygrad.installed():
    assert cpu.jit_loader is hoist.tinygrad.jit_loader
assert cpu.jit_loader is theirs
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_installing_and_taking_back(tinygrad, version):
    done = run(tinygrad(version), SWITCH)
    assert done.returncode == 0, done.stderr[-3000:]


def test_code_that_must_know_its_address_is_refused(compile_c):
    import hoist

    absolute = compile_c("int x; int *p = &x; int *f(void) { return p; }")
    with pytest.raises(hoist.LinkError, match="must know its address"):
        hoist._hoist.flat(absolute, None, None)
    assert hoist._hoist.flat(absolute, 0x1000_0000, None)
    with pytest.raises(hoist.UndefinedSymbolError):
        hoist._hoist.flat(compile_c("int g(void); int f(void) { return g() + 1; }"), 0x1000_0000, None)
