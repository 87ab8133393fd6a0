"""What does not run anything: show, link, cubins, fatbins; GPUs that are not there; the command line; documentation."""

from __future__ import annotations

import array
import doctest
import importlib
import inspect
import io
import pathlib
import pkgutil
import pydoc
import re
import signal
import subprocess
import sys

import pytest
from conftest import FIXTURES, native_fixture

import hoist
import hoist.nv

CUDA, FATBIN = FIXTURES / "cuda", FIXTURES / "fatbin"


def test_show_of_paths_and_bytes(elftest):
    by_path = hoist.show(elftest)
    data = pathlib.Path(elftest).read_bytes()
    by_bytes = hoist.show(data)
    assert by_bytes.pop("file") == "<bytes>" and by_path.pop("file") == elftest
    assert by_path == by_bytes == {key: value for key, value in hoist.show(bytearray(data)).items() if key != "file"}
    assert by_path["header"]["type_name"] == "ET_REL"
    assert hoist.show(elftest, "symbols").keys() == {"file", "member", "size", "elf", "symbol_tables"}
    with pytest.raises(ValueError, match="no part"):
        hoist.show(elftest, "everything")
    with pytest.raises(hoist.CommandError, match="not an ELF|no ELF|ELF"):
        hoist.show(b"text")


def test_show_of_archives():
    members = hoist.show(native_fixture("libpair.a"), "header")
    assert isinstance(members, list) and all(member["member"] for member in members)


def test_links_for_other_machines(compile_c):
    for path in sorted(FIXTURES.glob("*/elftest*.o")):
        image = hoist.link(path, base=0x40_0000)
        assert image.address_of("foo") >= 0x40_0000 and len(image) > 0
    with pytest.raises(hoist.NoSymbolError):
        image.address_of("bar")


def test_a_link_is_what_is_loaded(compile_c):
    """The image for an address, put there by hand, runs."""
    import mmap

    source = "extern int g(int); static int table[] = {1, 2, 3}; int *p = table; int f(int x) { return p[x] + g(x); }"
    target = hoist.load(compile_c("int g(int x) { return 100 * x; }"))
    probe = hoist.link(compile_c(source), base=0x1000_0000, undefined=0x1000_0000)
    memory = mmap.mmap(-1, len(probe) + 8192, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    base, _, _ = hoist._hoist.address_of(memory)
    image = hoist.link(compile_c(source), base=base, symbols={"g": target.address_of("g")})
    memory[: len(image)] = image.data
    f = hoist.function(image.address_of("f"), [hoist.i32], hoist.i32, owner=(memory, target))
    assert [f(n) for n in range(3)] == [1, 102, 203]
    assert {segment["permissions"] for segment in image.segments} >= {"r-x", "rw-"}
    assert bytes(image) == bytes(image.data) and "f" in {row["name"] for row in image.symbols}


def test_links_take_what_is_asked_for_of_archives():
    archive = native_fixture("libpair.a")
    names = [row["name"] for row in hoist.show(archive, "symbols")[0]["symbol_tables"][0]["symbols"] if row["section_name"] == ".text" and row["name"] != ".text"]
    image = hoist.link(archive, base=0, wanted=[names[0]], undefined=0)
    assert names[0] in {row["name"] for row in image.symbols}
    with pytest.raises(hoist.LinkError, match="no objects"):
        hoist.link(archive, base=0)


def test_values_that_do_not_fit_are_told():
    overflow = native_fixture("overflow.o")
    undefined = {row["name"] for table in hoist.show(overflow, "symbols")["symbol_tables"] for row in table["symbols"] if row["section"] == 0 and row["name"]}
    with pytest.raises(hoist.RelocationError) as caught:
        hoist.link(overflow, base=0x7FFF_0000_0000, symbols={name: 0x1234_5678_9ABC for name in undefined})
    error = caught.value
    assert error.relocation.startswith("R_X86_64_") and error.section and error.offset is not None
    assert not error.least <= error.value <= error.limit
    with pytest.raises(hoist.ResourceError) as caught:
        hoist.link(native_fixture("elftest.o"), base=0, limit=4)
    assert caught.value.limit == 4


def test_packed_links(elftest):
    image = hoist.link(elftest, base=0, packed=128)
    assert [section["address"] % 128 for section in image.sections] == [0] * len(image.sections)
    assert len(image.segments) == 1


def test_kernels_are_as_the_command_says():
    compared = 0
    for path in sorted(CUDA.glob("*.cubin")):
        cubin = hoist.Cubin(path)
        told = hoist.command("cubin", "show", path, "--json")
        import json

        told = json.loads(told)["files"][0]["kernels"]
        assert list(cubin.kernels) == [kernel["name"] for kernel in told]
        for row in told:
            kernel = cubin.kernels[row["name"]]
            for key in ("registers", "shared", "local", "stack", "barriers", "parameter_size", "code_size", "max_registers"):
                assert kernel.row[key] == row[key], (path.name, row["name"], key)
            assert len(kernel.params) == row["parameters"]
            if row["occupancy"]:
                found = kernel.occupancy(row["occupancy"]["threads"])
                assert found._asdict() == row["occupancy"], (path.name, row["name"])
            compared += 1
    assert compared >= 40


def test_what_a_cubin_tells():
    cubin = hoist.Cubin((CUDA / "kernels-13.5-sm_90a.cubin").read_bytes())
    assert (cubin.sm, cubin.arch, cubin.toolkit, cubin.is_linked) == (90, "sm_90a", (13, 5), True)
    kernel = cubin.kernels["shared_memory"]
    assert kernel.max_threads == (64, 2, 1)
    assert cubin.kernels["local_memory"].required_threads == (32, 1, 1)
    assert [one["size"] for one in cubin.kernels["parameters"].params] == [8, 1, 24, 2, 8]
    assert kernel.occupancy().threads == 128
    assert 0 < kernel.occupancy(256, shared=20000).fraction <= 1
    assert kernel.occupancy(64, sm=80).of_warps == 64
    with pytest.raises(hoist.UnsupportedError):
        kernel.occupancy(64, sm=7)
    assert len(cubin.rows()) == len(cubin.kernels) and "code" not in cubin.rows()[0]
    assert cubin.attributes() and isinstance(cubin.relocations(), list)
    with pytest.raises(hoist.NoSymbolError) as caught:
        cubin.kernels["none"]
    assert caught.value.symbols == list(cubin.kernels)
    with pytest.raises(hoist.FormatError):
        hoist.Cubin(b"text")
    with pytest.raises(hoist.FormatError):
        hoist.Cubin(native_fixture("elftest.o"))


def test_cubins_are_linked_as_the_command_does(tmp_path):
    a, b = (CUDA / f"calls_{name}-13.5-sm_80.cubin" for name in "ab")
    out = tmp_path / "linked"
    hoist.command("cubin", "link", a, b, "-o", out)
    linked = hoist.Cubin.link(a, b.read_bytes())
    assert bytes(linked.data) == out.read_bytes() and linked.is_linked and linked.kernels
    first = next(iter(linked.kernels))
    assert list(hoist.Cubin.link(a, b, kernels=first).kernels) == [name for name in linked.kernels if first in name]
    joined = hoist.Cubin.link(a, b, relocatable=True)
    assert not joined.is_linked
    assert list(hoist.Cubin.link(joined.data).kernels) == list(linked.kernels)
    with pytest.raises(hoist.UndefinedSymbolError) as caught:
        hoist.Cubin.link(a)
    assert caught.value.symbol in str(caught.value) and caught.value.file == str(a)
    with pytest.raises(hoist.UnsupportedError):
        hoist.Cubin.link(a, b, sm=90)
    with pytest.raises(hoist.UnsupportedError, match="linked already"):
        hoist.Cubin.link(linked.data)
    with pytest.raises(hoist.FormatError):
        hoist.Cubin.link(a.read_bytes()[:100])
    with pytest.raises(TypeError):
        hoist.Cubin.link()


def test_fatbins_are_as_the_command_lists_them():
    import json

    compared = 0
    for path in sorted(FATBIN.iterdir()):
        status = subprocess.run([sys.executable, "-m", "hoist", "fatbin", "list", "--json", str(path)], capture_output=True)
        if status.returncode != 0:
            continue
        told = json.loads(status.stdout)["files"][0]["regions"]
        fatbin = hoist.Fatbin(path)
        assert len(fatbin.regions) == len(told), path.name
        for region, row in zip(fatbin.regions, told):
            assert [entry.arch for entry in region.entries] == [entry["arch"] for entry in row["entries"]]
            assert (region.container, region.offset, region.size) == (row["container"], row["offset"], row["size"])
            compared += len(region.entries)
    assert compared >= 20


def test_entries_unpack(tmp_path):
    # what is not compressed is padded with zeros
    plain = [entry.data.rstrip(b"\0") for entry in hoist.Fatbin(FATBIN / "none.fatbin")]
    assert plain and all(data[:4] == b"\x7fELF" or b".version" in data for data in plain)
    for name in ("lz4.fatbin", "zstd.fatbin", "zlib.fatbin"):
        fatbin = hoist.Fatbin((FATBIN / name).read_bytes())
        assert [entry.data.rstrip(b"\0") for entry in fatbin] == plain, name
        assert [entry.size for entry in fatbin] == [len(entry.data) for entry in fatbin]
        assert any(entry.compression for entry in fatbin)
    entry = next(entry for entry in hoist.Fatbin(FATBIN / "zstd.fatbin") if entry.kind == "elf")
    assert entry.cubin().sm == entry.sm and bytes(entry) == entry.data and repr(entry)


def test_selecting_and_pruning(tmp_path):
    fatbin = hoist.Fatbin(FATBIN / "none.fatbin")
    archs = [entry.arch for entry in fatbin if entry.kind == "elf"]
    for arch in archs:
        number = int("".join(filter(str.isdigit, arch)))
        (chosen,) = fatbin.select(sm=number)
        assert chosen.kind == "elf" and chosen.sm <= number
        assert fatbin.select(sm=f"sm_{number}")[0].data == chosen.data
    with pytest.raises(ValueError):
        fatbin.select(sm="ninety")
    pruned = hoist.Fatbin(fatbin.prune(keep=archs[0]))
    assert [entry.arch for entry in pruned] == [archs[0]]
    done = fatbin.prune(keep=["ptx", archs[0]], output=tmp_path / "out")
    assert done["size_after"] <= done["size_before"]
    library = hoist.Fatbin(FATBIN / "libt.so")
    smaller = library.prune(keep="elf")
    assert {entry.kind for entry in hoist.Fatbin(smaller)} == {"elf"}
    with pytest.raises(hoist.CommandError, match="nothing"):
        fatbin.prune(keep="sm_20")


def test_rows_are_dictionaries():
    rows = hoist.Fatbin(FATBIN / "none.fatbin").rows()
    assert all(isinstance(row, dict) and row["region"] == 0 and "kind" in row for row in rows)
    assert len({frozenset(row) for row in rows}) == 1, "the same keys in all, as pandas wants them"


def test_files_without_device_code():
    fatbin = hoist.Fatbin(native_fixture("elftest.o"))
    assert len(fatbin) == 0 and list(fatbin) == [] and fatbin.select(sm=90) == []
    assert len(hoist.Fatbin(b"")) == 0


def test_a_gpu_that_is_not_there_is_an_error_with_a_name():
    if hoist.nv.is_available():
        assert hoist.nv.device_count() > 0
        return
    with pytest.raises(hoist.NoDeviceError) as caught:
        hoist.nv.Device()
    assert caught.value.kind in ("NoLibrary", "NoDevice", "OldDriver", "Driver")
    assert isinstance(caught.value, hoist.DeviceError) and str(caught.value)


def test_a_gpu_adds():
    if not hoist.nv.is_available():
        pytest.skip("skipped: test_a_gpu_adds: needs an NVIDIA GPU")
    device = hoist.nv.Device()
    kernel = device.load(CUDA / "gpu-13.0-ptx.fatbin").kernel("vector_add")
    x = array.array("f", range(1024))
    a, b, out = device.buffer(x), device.buffer(x), device.buffer(4096, zeroed=True)
    took = kernel(out, a, b, (hoist.i32, 1024), grid=4, block=256, wait=True)
    assert took > 0 and array.array("f", out.read()).tolist() == [2 * one for one in x]


def test_a_cubin_for_a_device_is_relocated():
    plan = hoist._hoist.DeviceImage((CUDA / "kernels-13.5-sm_80.cubin").read_bytes())
    low, high = plan.write(0), plan.write(0x7F00_0000_0000)
    assert len(low) == len(high) and low != high and plan.alignment >= 128
    with pytest.raises(hoist.DeviceError):
        hoist._hoist.DeviceImage((CUDA / "kernels-11.8-sm_35.cubin").read_bytes())


def run(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "hoist", *words], capture_output=True, text=True)


def test_the_command_line(elftest):
    done = run("run", elftest, "foo", "i32:321", "--ret", "f32")
    assert (done.returncode, done.stdout, done.stderr) == (0, "12345999\n", "")
    done = run("run", native_fixture("missing.o"), "calls_missing")
    assert done.returncode == 1 and done.stderr.startswith("hoist: ") and "hoist_fixture_missing is undefined" in done.stderr
    assert run("--version").stdout.startswith("hoist ")
    assert run("--help").returncode == 0 and run("nothing").returncode == 2
    from hoist.__main__ import main

    assert main(["show", "no such file"]) == 1


def test_an_interrupt_ends_the_command_line(compile_c, tmp_path):
    waits = tmp_path / "waits.o"
    waits.write_bytes(compile_c("#include <unistd.h>\nint waits(void) { write(1, \"!\", 1); for (;;) pause(); }", "-w"))
    process = subprocess.Popen([sys.executable, "-m", "hoist", "run", str(waits), "waits"], stdout=subprocess.PIPE)
    try:
        assert process.stdout.read(1) == b"!"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT
    finally:
        process.kill()
        process.stdout.close()


def test_commands_as_functions(elftest):
    assert hoist.command("run", elftest, "foo", "i32:321", "--ret", "f32") == b"12345999\n"
    with pytest.raises(hoist.CommandError, match="no such file") as caught:
        hoist.command("show", "no such file")
    assert caught.value.output == b""


MODULES = ["hoist", *(f"hoist.{module.name}" for module in pkgutil.iter_modules(hoist.__path__) if module.name not in ("__main__", "_hoist"))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, doctest_namespace):
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={"hoist": hoist}, verbose=False)
    assert result.failed == 0


def test_everything_is_documented():
    examples = 0
    for name in hoist.__all__:
        thing = getattr(hoist, name)
        assert inspect.getdoc(thing), name
        examples += (inspect.getdoc(thing) or "").count(">>>")
        if inspect.isclass(thing) and thing.__module__.startswith("hoist") and not issubclass(thing, Exception):
            for attribute, member in vars(thing).items():
                if not attribute.startswith("_") and callable(member):
                    assert inspect.getdoc(member), f"{name}.{attribute}"
    assert examples > 20
    assert "hoist.load" in hoist.__doc__


def test_attributes_are_documented():
    """`help()` says of every attribute what it is: of properties, slots, fields of named tuples."""
    classes = [getattr(hoist, name) for name in hoist.__all__] + [getattr(hoist.nv, name) for name in hoist.nv.__all__]
    seen = 0
    for thing in filter(inspect.isclass, classes):
        if issubclass(thing, Exception):
            continue
        slots = vars(thing).get("__slots__", ())
        for name, member in vars(thing).items():
            if name.startswith("_") or inspect.isfunction(member):
                continue
            text = slots.get(name) if isinstance(slots, dict) and name in slots else inspect.getdoc(member)
            assert text and not text.startswith("Alias for"), f"{thing.__name__}.{name}"
            seen += 1
    assert seen > 60, seen
    for name in vars(hoist.Error)["__annotations__"]:
        assert f"`{name}`" in hoist.Error.__doc__, name
    for name in ("nv", "tinygrad"):
        assert name in dir(hoist)


def test_help_reads_well():
    out = io.StringIO()
    pydoc.Helper(output=out).help(hoist.load)
    assert "libs" in out.getvalue() and ">>>" in out.getvalue()
    out = io.StringIO()
    pydoc.Helper(output=out).help(hoist.Module)
    # 3.13 puts the arguments of a long signature on lines of their own
    for word in (r"\bfn\([\s|]*self,[\s|]*name", r"\breplace\(", r"\bsections\(", r"\bunload\("):
        assert re.search(word, out.getvalue()), word


def test_stubs_are_as_the_native_part():
    """Every name of the native part stands in its stub, and the other way round."""
    import ast

    tree = ast.parse((pathlib.Path(hoist.__file__).parent / "_hoist.pyi").read_text())
    told = set()
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            told.add(node.name)
            if isinstance(node, ast.ClassDef):
                real = getattr(hoist._hoist, node.name)
                mine = {one.name for one in node.body if isinstance(one, ast.FunctionDef) and not one.name.startswith("__")}
                assert mine == {name for name in vars(real) if not name.startswith("_")}, node.name
        elif isinstance(node, ast.AnnAssign):
            told.add(node.target.id)
    real = {name for name in dir(hoist._hoist) if not name.startswith("__") or name == "__version__"}
    assert told == real
