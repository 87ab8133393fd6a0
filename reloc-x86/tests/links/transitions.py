#!/usr/bin/env python3
"""Asks GNU ld and lld what code that uses thread-local variables becomes in an executable.

    transitions.py > transitions.txt      (needs binutils, lld-19, llvm-22, lld-22)

Each question is a piece of assembly in an object of its own, linked alone. What is written down is the code before, as the assembler
made it, and after, as each linker left it; the first record of it and where that of the call is, if it has one.
"""
import re, struct, subprocess, tempfile

X86_64 = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"] + [f"r{n}" for n in range(8, 16)]
I386 = ["eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"]
TOOLS = {
    "x86_64": (["as", "--64"], ["ld", "-m", "elf_x86_64"], ["ld.lld-19", "-m", "elf_x86_64"]),
    # GNU ld 2.40 knows no registers of APX
    "apx": (["llvm-mc-22", "-triple", "x86_64", "-filetype=obj"], None, ["ld.lld-22", "-m", "elf_x86_64"]),
    "i386": (["as", "--32"], ["ld", "-m", "elf_i386"], ["ld.lld-19", "-m", "elf_i386"]),
}


def x86_64():
    lea = ".byte 0x66; lea x@tlsgd(%rip), %rdi; "
    yield lea + ".value 0x6666; rex64; call __tls_get_addr@plt"
    yield lea + ".byte 0x66; rex64; call *__tls_get_addr@gotpcrel(%rip)"
    yield lea + "call __tls_get_addr@plt; nop; nop; nop"
    for base in ("rbx", "r15", "rcx"):
        far = f"movabs $__tls_get_addr@pltoff, %rax; add %{base}, %rax; call *%rax"
        yield "lea x@tlsgd(%rip), %rdi; " + far
        yield "lea x@tlsld(%rip), %rdi; " + far
    yield "lea x@tlsgd(%rip), %rsi; " + ".value 0x6666; rex64; call __tls_get_addr@plt"
    yield "lea x@tlsld(%rip), %rdi; call __tls_get_addr@plt"
    yield "lea x@tlsld(%rip), %rdi; call *__tls_get_addr@gotpcrel(%rip)"
    yield "lea x@tlsld(%rip), %rsi; call __tls_get_addr@plt"
    yield "lea x@tlsld(%rip), %rdi; jmp __tls_get_addr@plt"
    for register in X86_64:
        yield f"mov x@gottpoff(%rip), %{register}"
        yield f"add x@gottpoff(%rip), %{register}"
        yield f"lea x@tlsdesc(%rip), %{register}"
    yield "sub x@gottpoff(%rip), %rax"
    yield "mov %rax, x@gottpoff(%rip)"
    yield "mov x@gottpoff(%rax), %rax"
    yield "mov x@tlsdesc(%rip), %rax"
    for register in ("rax", "rcx"):
        yield f"call *x@tlscall(%{register})"
    yield "mov x@dtpoff(%rax), %ecx"
    yield "movabs $x@dtpoff, %rax"


def apx():
    for number in range(16, 32):
        yield f"mov x@gottpoff(%rip), %r{number}"
        yield f"add x@gottpoff(%rip), %r{number}"
        yield f"lea x@tlsdesc(%rip), %r{number}"
    yield "mov %r16, x@gottpoff(%rip)"
    yield "sub x@gottpoff(%rip), %r16"
    yield "mov x@tlsdesc(%rip), %r16"


def i386():
    for base in I386:
        if base != "esp":
            lea = f"lea x@tlsgd(%{base}), %eax; "
            yield lea + "call ___tls_get_addr@plt; nop"
            yield lea + f"call *___tls_get_addr@got(%{base})"
            yield lea + ".byte 0x67; call ___tls_get_addr"
            lea = f"lea x@tlsldm(%{base}), %eax; "
            yield lea + "call ___tls_get_addr@plt"
            yield lea + f"call *___tls_get_addr@got(%{base})"
            yield lea + ".byte 0x67; call ___tls_get_addr"
    yield "lea x@tlsgd(,%ebx,1), %eax; call ___tls_get_addr@plt"
    yield "lea x@tlsgd(,%ecx,1), %eax; call ___tls_get_addr@plt"
    yield "lea x@tlsgd(%ebx), %ecx; call ___tls_get_addr@plt; nop"
    yield "lea x@tlsldm(%ebx), %ecx; call ___tls_get_addr@plt"
    yield "lea x@tlsgd(%ebx,%ecx,1), %eax; call ___tls_get_addr@plt; nop"
    yield "lea x@tlsldm(%ebx,%ecx,1), %eax; call ___tls_get_addr@plt"
    yield "mov x@dtpoff(%eax), %ecx"
    for register in I386:
        yield f"mov x@indntpoff, %{register}"
        yield f"add x@indntpoff, %{register}"
        for operation in ("mov", "add", "sub"):
            yield f"{operation} x@gotntpoff(%ebx), %{register}"
        yield f"lea x@tlsdesc(%ebx), %{register}"
    yield "sub x@indntpoff, %eax"
    yield "mov %eax, x@indntpoff"
    yield "mov %ecx, x@indntpoff"
    yield "xor x@gotntpoff(%ebx), %ecx"
    yield "mov x@gotntpoff(%ebx,%ecx,1), %edx"
    yield "mov x@tlsdesc(%ebx), %eax"
    yield "lea x@tlsdesc(%ebx,%ecx,1), %eax"
    for register in ("eax", "ecx"):
        yield f"call *x@tlscall(%{register})"


def read(path):
    """The bytes of `.text`."""
    with open(path, "rb") as file:
        data = file.read()
    wide = data[4] == 2
    table, = struct.unpack_from("<Q" if wide else "<I", data, 40 if wide else 32)
    entry, count, names = struct.unpack_from("<HHH", data, 58 if wide else 46)
    rows = [struct.unpack_from("<IIQQQQ" if wide else "<6I", data, table + entry * number) for number in range(count)]
    text, = (row for row in rows if data[rows[names][4] + row[0] :].startswith(b".text\0"))
    return data[text[4] : text[4] + text[5]]


def ask(arch, code):
    assemble, *linkers = TOOLS[arch]
    with tempfile.TemporaryDirectory() as folder:
        source = f'.text\n{code.replace("; ", chr(10))}\n.fill 8, 1, 0x90\n'
        source += '.section .tdata, "awT", @progbits\n.fill 44\n.globl x\nx: .fill 20\n'
        source += ".data\n.globl __tls_get_addr, ___tls_get_addr\n__tls_get_addr: ___tls_get_addr:\n"
        with open(f"{folder}/a.s", "w") as file:
            file.write(source)
        run = subprocess.run([*assemble, "a.s", "-o", "a.o"], cwd=folder, capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(f"{code}: {run.stderr}")
        before = read(f"{folder}/a.o")
        records = subprocess.run(["llvm-readelf-22", "-rW", "a.o"], cwd=folder, capture_output=True, text=True, check=True).stdout
        records = re.findall(r"^([0-9a-f]+) +[0-9a-f]+ +(R_\w+)(?:.* ([+-]) ([0-9a-f]+))?", records, re.M)
        (place, kind, sign, addend), *call = records
        addend = int(sign + addend, 16) if addend else 0
        distance = int(call[0][0], 16) - int(place, 16) if call else 0
        answers = []
        for linker in linkers:
            if not linker:
                answers.append("?")
                continue
            run = subprocess.run([*linker, "-static", "-e", "0", "a.o", "-o", "a.out"], cwd=folder, capture_output=True, text=True)
            after = read(f"{folder}/a.out")[: len(before)] if run.returncode == 0 else b""
            answers.append(after[:-8].hex() if after[-8:] == b"\x90" * 8 else "-")
        return f"{kind} {int(place, 16)} {addend} {distance} {before[:-8].hex()} {' '.join(answers)}"


print("# Made by reloc-x86/tests/links/transitions.py.")
linkers = [TOOLS["i386"][1], TOOLS["i386"][2], TOOLS["apx"][2]]
versions = [subprocess.run([linker[0], "--version"], capture_output=True, text=True).stdout.split("\n")[0] for linker in linkers]
print(f"# ld: {versions[0]}; lld: {versions[1]}, and {versions[2]} of registers of APX.")
print("# The variable is 20 bytes before the end of a block of 64. `-`: the linker refuses, `?`: it was not asked.")
print("# kind, place, addend, how far from the place the call's record is; code before; after by ld and by lld")
for arch, pieces in (("x86_64", x86_64()), ("apx", apx()), ("i386", i386())):
    for piece in pieces:
        print(ask(arch, piece), "#", piece)
