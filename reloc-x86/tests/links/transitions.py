#!/usr/bin/env python3
"""Asks GNU ld and lld what code that uses thread-local variables becomes in an executable.

    transitions.py x86|aarch64 > transitions.txt      (needs binutils of the architecture, lld-19, llvm-22, lld-22)

Each question is a piece of assembly in an object of its own, linked alone. What is written down is the code before, as the assembler
made it, and after, as each linker left it, and its records.
"""
import re, struct, subprocess, sys, tempfile

X86_64 = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"] + [f"r{n}" for n in range(8, 16)]
I386 = ["eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"]
NOP = 0xD503201F
TOOLS = {
    "x86_64": (["as", "--64"], ["ld", "-m", "elf_x86_64"], ["ld.lld-19", "-m", "elf_x86_64"]),
    # GNU ld 2.40 knows no registers of APX
    "apx": (["llvm-mc-22", "-triple", "x86_64", "-filetype=obj"], None, ["ld.lld-22", "-m", "elf_x86_64"]),
    "i386": (["as", "--32"], ["ld", "-m", "elf_i386"], ["ld.lld-19", "-m", "elf_i386"]),
    "aarch64": (["aarch64-linux-gnu-as"], ["aarch64-linux-gnu-ld"], ["ld.lld-19", "-m", "aarch64linux"]),
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
    yield "lea x@tlsgd(%ebx), %eax; jmp *___tls_get_addr@got(%ebx)"
    yield "lea x@tlsldm(%ebx), %eax; jmp *___tls_get_addr@got(%ebx)"
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


def aarch64():
    call = "bl __tls_get_addr; nop"
    for x in ("x", "y"):
        yield f"adr x0, :tlsgd:{x}; {call}"
        yield f"adrp x0, :tlsgd:{x}; add x0, x0, :tlsgd_lo12:{x}; {call}"
        yield f"adrp x0, :tlsldm:{x}; add x0, x0, :tlsldm_lo12_nc:{x}; {call}"
        for register in (0, 9, 30):
            yield f"adrp x{register}, :gottprel:{x}; ldr x{register}, [x{register}, :gottprel_lo12:{x}]"
        for register in (1, 2, 17):
            page = f"adrp x0, :tlsdesc:{x}; ldr x{register}, [x0, :tlsdesc_lo12:{x}]; "
            yield page + f"add x0, x0, :tlsdesc_lo12:{x}; .tlsdesccall {x}; blr x{register}"
        yield f"ldr x1, :tlsdesc:{x}; adr x0, :tlsdesc:{x}; .tlsdesccall {x}; blr x1"
        yield f"adrp x1, :gottprel:{x}; nop; ldr x1, [x1, :gottprel_lo12:{x}]; mrs x0, tpidr_el0; add x0, x0, x1"


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
    end = struct.pack("<2I", NOP, NOP) if arch == "aarch64" else b"\x90" * 8
    with tempfile.TemporaryDirectory() as folder:
        source = f'.text\n{code.replace("; ", chr(10))}\n.byte {", ".join(map(str, end))}\n'
        source += '.section .tdata, "awT", %progbits\n.fill 44\n.globl x\nx: .fill 20\n'
        source += '.section .tbss, "awT", %nobits\n.fill 0x123400\n.globl y\ny: .fill 4\n' if arch == "aarch64" else ""
        source += ".data\n.globl __tls_get_addr, ___tls_get_addr\n__tls_get_addr: ___tls_get_addr:\n"
        with open(f"{folder}/a.s", "w") as file:
            file.write(source)
        run = subprocess.run([*assemble, "a.s", "-o", "a.o"], cwd=folder, capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(f"{code}: {run.stderr}")
        before = read(f"{folder}/a.o")
        records = subprocess.run(["llvm-readelf-22", "-rW", "a.o"], cwd=folder, capture_output=True, text=True, check=True).stdout
        records = re.findall(r"^([0-9a-f]+) +[0-9a-f]+ +(R_\w+)(?:.* ([+-]) ([0-9a-f]+))?", records, re.M)
        records = [f"{kind}:{int(place, 16)}:{int(sign + addend, 16) if addend else 0}" for place, kind, sign, addend in records]
        answers = []
        for linker in linkers:
            if not linker:
                answers.append("?")
                continue
            run = subprocess.run([*linker, "-static", "-e", "0", "a.o", "-o", "a.out"], cwd=folder, capture_output=True, text=True)
            after = read(f"{folder}/a.out")[: len(before)] if run.returncode == 0 else b""
            answers.append(after[:-8].hex() if after.endswith(end) else "-")
        return " ".join([before[:-8].hex(), *answers, *records])


asked = {
    "x86": (("x86_64", x86_64()), ("apx", apx()), ("i386", i386())),
    "aarch64": (("aarch64", aarch64()),),
}[sys.argv[1]]
print(f"# Made by reloc-x86/tests/links/transitions.py {sys.argv[1]}.")
linkers = {linker[0]: None for arch, _ in asked for linker in TOOLS[arch][1:] if linker}
versions = [subprocess.run([linker, "--version"], capture_output=True, text=True).stdout.split("\n")[0] for linker in linkers]
print(f"# ld, lld: {'; '.join(versions)}")
if sys.argv[1] == "x86":
    print("# x is 20 bytes before the end of a block of 64. `-`: the linker refuses, `?`: it was not asked.")
else:
    print("# x is 60 bytes behind the thread pointer, y 0x123450. `-`: the linker refuses.")
print("# code before; after by ld and by lld; records: kind, place, addend")
for arch, pieces in asked:
    for piece in pieces:
        print(ask(arch, piece), "#", piece)
