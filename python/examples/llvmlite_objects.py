"""Functions built with llvmlite: its target machine makes an object of them, hoist loads it. MCJIT and ORC have no part in it.

    pip install llvmlite
    python llvmlite_objects.py

It prints 5.0 and 10.0.
"""

from __future__ import annotations

import array

from llvmlite import binding as llvm
from llvmlite import ir

import hoist

DOUBLE, INT64 = ir.DoubleType(), ir.IntType(64)


def build() -> ir.Module:
    """`double hypotenuse(double x, double y)`, which calls `sqrt`, and `double total(const double *numbers, int64_t count)`."""
    module = ir.Module("example")
    sqrt = ir.Function(module, ir.FunctionType(DOUBLE, [DOUBLE]), "sqrt")
    hypotenuse = ir.Function(module, ir.FunctionType(DOUBLE, [DOUBLE, DOUBLE]), "hypotenuse")
    x, y = hypotenuse.args
    builder = ir.IRBuilder(hypotenuse.append_basic_block())
    builder.ret(builder.call(sqrt, [builder.fadd(builder.fmul(x, x), builder.fmul(y, y))]))

    total = ir.Function(module, ir.FunctionType(DOUBLE, [DOUBLE.as_pointer(), INT64]), "total")
    numbers, count = total.args
    start, body, done = (total.append_basic_block(name) for name in ("start", "body", "done"))
    builder = ir.IRBuilder(start)
    builder.cbranch(builder.icmp_signed(">", count, INT64(0)), body, done)
    builder.position_at_end(body)
    index, sum_before = builder.phi(INT64), builder.phi(DOUBLE)
    sum_after = builder.fadd(sum_before, builder.load(builder.gep(numbers, [index])))
    following = builder.add(index, INT64(1))
    for phi, first, later in ((index, INT64(0), following), (sum_before, DOUBLE(0), sum_after)):
        phi.add_incoming(first, start)
        phi.add_incoming(later, body)
    builder.cbranch(builder.icmp_signed("<", following, count), body, done)
    builder.position_at_end(done)
    result = builder.phi(DOUBLE)
    result.add_incoming(DOUBLE(0), start)
    result.add_incoming(sum_after, body)
    builder.ret(result)
    return module


def compile_object(module: ir.Module) -> bytes:
    """The module as a relocatable object for this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(opt=2, reloc="pic", codemodel="small")
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    return machine.emit_object(parsed)


def main() -> None:
    loaded = hoist.load(compile_object(build()))
    hypotenuse = loaded.fn("hypotenuse", args=[float, float], ret=float)
    print(hypotenuse(3, 4))
    numbers = array.array("d", [1, 2, 3, 4])
    print(loaded.fn("total", args=[hoist.ptr, int], ret=float)(numbers, len(numbers)))


if __name__ == "__main__":
    main()
