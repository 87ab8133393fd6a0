#!/usr/bin/env python3
"""Asks lld and GNU ld what they make of every row of a table of relocation kinds.

    make.py x86_64|i386|aarch64 > FILE.txt      (needs lld-19, lld-22 and the binutils of the architecture)

Each question is an object of one relocation, written by hand, linked alone. The rows of the table only say what to ask: a place,
a symbol and an addend such that the value is about the ends of its range. What is written down is what the linkers answer.
"""
import os, re, struct, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor

ARCH = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
BITS = 32 if ARCH == "i386" else 64
MACHINE = {"x86_64": 62, "i386": 3, "aarch64": 183}[ARCH]
SOURCE = {"aarch64": "../../../reloc-aarch64/src/aarch64.rs"}.get(ARCH, f"../../src/{ARCH}.rs")
EMULATION = {"x86_64": "elf_x86_64", "i386": "elf_i386", "aarch64": "aarch64linux"}[ARCH]
LINKERS = {
    "lld": ["ld.lld-19", "-m", EMULATION],
    "ld": {"x86_64": ["x86_64-linux-gnu-ld"], "i386": ["i686-linux-gnu-ld"], "aarch64": ["aarch64-linux-gnu-ld"]}[ARCH],
}
NEWER = "ld.lld-22"  # is asked of kinds that the other does not know
PLACE = 0x10008  # 8 bytes into .text
TEXT = PLACE - 8
GOT_AT = 0x20000
S_GOT = 0x12345678  # a value to find in the GOT
MASK = (1 << BITS) - 1
# type of the dynamic relocation that fills a GOT entry
DYNAMIC = {
    "x86_64": {"GD": 16, "LD": 16, "IE": 18, "DESC": 36},
    "i386": {"GD": 35, "LD": 35, "IE": 14, "DESC": 41},
    "aarch64": {"GD": 1028, "LD": 1028, "IE": 1030, "DESC": 1031},
}[ARCH]
ROW = re.compile(r'^ +(R_\w+) *= *(\d+): new\((\w+), +(Any|(\w+)\((\d+)\)), +(\w+)\)', re.M)


def rows():
    text = open(os.path.join(HERE, SOURCE)).read()
    for name, number, formula, _, check, bits, field in ROW.findall(text):
        yield int(number), name, formula, check or "Any", int(bits or 64), field


def template(name, field):
    """The word before, and its size."""
    if field.startswith(("WORD", "DATA")):
        size = int(re.sub(r"\D", "", field)) // 8
        return (0 if ARCH == "i386" else 0xA5A5A5A5A5A5A5A5 & ((1 << 8 * size) - 1)), size
    group = int(field[-1]) << 21 if "MOVW" in field else 0
    words = {
        "ADR": 0x10000005, "ADRP": 0x90000005, "ADD_LO12": 0x910000A5, "ADD_HI12": 0x914000A5, "LDST8": 0x394000A5,
        "LDST16": 0x794000A5, "LDST32": 0xB94000A5, "LDST64": 0xF94000A5, "LDST128": 0x3DC000A5, "LO15": 0xF94000A5,
        "IMM14": 0x36000005, "IMM19": 0x54000005 if "BR19" in name else 0x58000005,
        "IMM26": 0x94000000 if "CALL" in name else 0x14000000,
    }
    if "MOVW" in field:
        return (0xF2800005 if "_NC" in name else 0xD2800005) | group, 4
    return words[field], 4


def scale(field):
    return {"LDST16": 2, "LDST32": 4, "LDST64": 8, "LDST128": 16, "LO15": 8, "IMM14": 4, "IMM19": 4, "IMM26": 4}.get(field, 1)


def write_object(path, number, before, word, size, addend, symbol):
    """One section .text with one relocation against `symbol`: (name, value, size, kind), kind "abs", "tls" or "undefined"."""
    text = bytes(before).rjust(8, b"\x90") + word.to_bytes(size, "little") + bytes(24 - size)
    name, value, length, kind = symbol
    strings = b"\0s\0_GLOBAL_OFFSET_TABLE_\0.text\0.rel.text\0.tdata\0.symtab\0.strtab\0.data\0.rel.data\0"
    at = lambda s: strings.index(b"\0" + s + b"\0") + 1
    shndx = {"abs": 0xFFF1, "tls": 3, "undefined": 0, "got": 0}[kind]
    info = 0x10 | (6 if kind == "tls" else 0 if kind in ("undefined", "got") else 2 if "PLT" in name else 1)
    other = 2 if kind == "abs" else 0

    def sym(name, info, other, shndx, value, size):
        if BITS == 64:
            return struct.pack("<IBBHQQ", name, info, other, shndx, value & MASK, size)
        return struct.pack("<IIIBBH", name, value & MASK, size, info, other, shndx)

    def rel(offset, symbol, number, addend):
        if BITS == 64:
            return struct.pack("<QQQ", offset, symbol << 32 | number, addend & MASK)
        return struct.pack("<II", offset, symbol << 8 | number)

    symbols = sym(0, 0, 0, 0, 0, 0) + sym(at(b"s"), info, other, shndx, value, length)
    symbols += sym(at(b"_GLOBAL_OFFSET_TABLE_"), 0x10, 0, 0, 0, 0)
    word_type = {"x86_64": 1, "i386": 1, "aarch64": 257}[ARCH]  # keeps the base in the symbol table
    place = rel(8, 2 if kind == "got" else 1, number, addend)
    base = rel(0, 2, word_type, 0) if "base" in name else b""
    rel_type, rel_size = (4, 24) if BITS == 64 else (9, 8)
    sections = [  # name, type, flags, content, link, info, entry
        (b".text", 1, 6, text, 0, 0, 0, 16),
        (b".rel.text", rel_type, 0x40, place, 6, 1, rel_size, 8),
        (b".tdata", 1, 0x403, bytes(16 if kind == "tls" else 0), 0, 0, 0, 16),
        (b".data", 1, 3, bytes(8), 0, 0, 0, 8),
        (b".rel.data", rel_type, 0x40, base, 6, 4, rel_size, 8),
        (b".symtab", 2, 0, symbols, 7, 1, 24 if BITS == 64 else 16, 8),
        (b".strtab", 3, 0, strings, 0, 0, 0, 1),
    ]
    header = 64 if BITS == 64 else 52
    body, table = b"", bytes(64 if BITS == 64 else 40)
    for name, kind, flags, content, link, info, entry, align in sections:
        body += bytes(-(header + len(body)) % 16)
        row = (at(name), kind, flags, 0, header + len(body), len(content), link, info, align, entry)
        table += struct.pack("<IIQQQQIIQQ" if BITS == 64 else "<10I", *row)
        body += content
    body += bytes(-(header + len(body)) % 16)
    ident = b"\x7fELF" + bytes([BITS // 32, 1, 1]) + bytes(9)
    shape = "<HHIQQQIHHHHHH" if BITS == 64 else "<HHIIIIIHHHHHH"
    entry = 64 if BITS == 64 else 40
    fields = (1, MACHINE, 1, 0, 0, header + len(body), 0, header, 0, 0, entry, len(sections) + 1, 7)
    open(path, "wb").write(ident + struct.pack(shape, *fields) + body + table)


class Image:
    def __init__(self, path):
        self.data = data = open(path, "rb").read()
        if BITS == 64:
            phoff, shoff = struct.unpack_from("<QQ", data, 32)
            phnum, shnum, shstr = struct.unpack_from("<H", data, 56)[0], *struct.unpack_from("<HH", data, 60)
            section = lambda i: struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * i)
        else:
            phoff, shoff = struct.unpack_from("<II", data, 28)
            phnum, shnum, shstr = struct.unpack_from("<H", data, 44)[0], *struct.unpack_from("<HH", data, 48)
            section = lambda i: struct.unpack_from("<10I", data, shoff + 40 * i)
        table = [section(i) for i in range(shnum)]
        name = lambda at: data[at:data.index(b"\0", at)].decode()
        self.sections = [(name(table[shstr][4] + s[0]), s) for s in table]
        self.symbols = {}
        for _, s in self.sections:
            if s[1] == 2:
                step = 24 if BITS == 64 else 16
                for at in range(s[4], s[4] + s[5], step):
                    n = struct.unpack_from("<I", data, at)[0]
                    value = struct.unpack_from("<Q", data, at + 8)[0] if BITS == 64 else struct.unpack_from("<I", data, at + 4)[0]
                    self.symbols[name(table[s[6]][4] + n)] = value

    def bytes(self, address, size):
        for _, s in self.sections:
            if s[1] == 1 and s[3] <= address and address + size <= s[3] + s[5] and s[2] & 2:
                at = s[4] + address - s[3]
                return self.data[at:at + size]

    def entry(self, value):
        """The GOT entry that holds `value`."""
        found = []
        for name, s in self.sections:
            if name in (".got", ".got.plt", ".igot", ".igot.plt"):
                for at in range(0, s[5] - s[5] % (BITS // 8), BITS // 8):
                    if int.from_bytes(self.bytes(s[3] + at, BITS // 8), "little") == value:
                        found.append(s[3] + at)
        return found[0] if found else None

    def dynamic(self, kind):
        """The place of the dynamic relocation of type `kind`."""
        for _, s in self.sections:
            if s[1] in (4, 9) and s[2] & 2:
                for at in range(s[4], s[4] + s[5], s[9]):
                    if BITS == 64:
                        offset, info = struct.unpack_from("<QQ", self.data, at)
                        number = info & 0xFFFFFFFF
                    else:
                        offset, info = struct.unpack_from("<II", self.data, at)
                        number = info & 0xFF
                    if number == kind:
                        return offset
        return None


def link(linker, shared, *question):
    """The image, or "-" where the linker refuses the value, or "?" and its words."""
    with tempfile.TemporaryDirectory() as folder:
        write_object(f"{folder}/a.o", *question)
        command = [*LINKERS[linker], "--no-relax", "-z", "norelro", f"-Ttext={TEXT:#x}"]
        command += [f"--section-start=.got={GOT_AT:#x}"] if linker == "lld" else []
        command += ["-shared", "-z", "notext"] if shared else ["-static", "-e", "0"]
        run = subprocess.run([*command, "a.o", "-o", "a.out"], cwd=folder, capture_output=True, text=True)
        if linker == "lld" and "unknown relocation" in run.stderr:
            command += [] if shared else ["--image-base=0"]
            run = subprocess.run([NEWER, *command[1:], "a.o", "-o", "a.out"], cwd=folder, capture_output=True, text=True)
        if run.returncode == 0:
            return Image(f"{folder}/a.out"), ""
        refusal = r"out of range|truncated to fit|improper alignment|not aligned|unaligned|overflow"
        return ("-" if re.search(refusal, run.stderr) else "?"), run.stderr


def targets(check, bits, field, page):
    step = 0x1000 if page else scale(field)
    if check == "Any":
        values = [0x123456789ABCDEF0, -0x123456789ABCDEF0, 0x1230]
    else:
        low = 0 if check == "Unsigned" else -(1 << bits - 1)
        high = 1 << (bits - 1 if check == "Signed" else bits)
        values = [low - step, low, high - step, high, high // 3 & -0x1000 if page else high // 3 & -16]
    if step in (2, 4, 8, 16):
        values.append(values[-1] + step // 2)
    if BITS == 32:
        values = [v if -(1 << 31) <= v < 1 << 32 else v >> 32 for v in values]
    return values


def ask(row):
    """The lines of a row."""
    number, name, formula, check, bits, field = row
    word, size = template(name, field)
    page = formula.startswith("PG_")
    parts = [part for part in formula.split("_") if part != "PG"]
    lines = []
    for linker in LINKERS:
        for before in ([0x8B, 0x83], [0x8B, 0x05]) if "GOT32" in name and ARCH == "i386" else ([0x90],):
            for line in ask_one(linker, number, name, parts, page, check, bits, field, word, size, before):
                lines.append((linker, line))
    merged = {}
    for linker, (key, answer) in lines:
        merged.setdefault(key, {})[linker] = answer
    return [(key, answers) for key, answers in merged.items()]


def ask_one(linker, number, name, parts, page, check, bits, field, word, size, before):
    of = parts[0] if parts[0] != "A" else "TP"
    no_base = "GOT32" in name and before[-1] == 5
    minus = "P" if parts[-1] == "P" else "GOT" if parts[-1] == "GOT" or parts[-2:] == ["GOT"] else ""
    if ARCH == "i386" and of in ("G", "GD", "LD", "IE", "DESC") and parts != ["IE", "GOT", "A"]:
        minus = "" if no_base else "GOT"
    if ARCH == "x86_64" and parts == ["G", "A"]:
        minus = "GOT"
    paged_base = parts[-2:] == ["PG", "GOT"]
    if "PG_GOT" in "_".join(parts) or name.endswith("GOTPAGE_LO15"):
        minus, paged_base = "GOT", True
    shared = of in ("GD", "LD", "IE", "DESC", "DTP")
    tls = shared or of == "TP"
    rela = ARCH != "i386"
    kind = "tls" if tls else "got" if of == "GOT" else "abs"
    marked = "s base"
    # first a harmless question, to learn where the linker puts the GOT
    first = {"S": PLACE, "L": PLACE, "G": S_GOT}.get(of, 0x40)
    image, words = link(linker, shared, number, before, word, size, 0, (marked, first, 0, kind))
    if isinstance(image, str) and minus != "GOT" and of in ("S", "L", "Z", "DTP", "TP"):
        base = entry = 0
    elif isinstance(image, str):
        print(f"{linker} {name}: {words.strip()[:200]}", file=sys.stderr)
        return
    else:
        base = image.symbols.get("_GLOBAL_OFFSET_TABLE_", 0)
        entry = image.entry(S_GOT) if of == "G" else image.dynamic(DYNAMIC[of]) if of in DYNAMIC else base if of == "GOT" else 0
    if entry is None:
        print(f"{linker} {name}: no entry found", file=sys.stderr)
        return
    subtract = {"P": PLACE, "GOT": base, "": 0}[minus]
    questions = []
    if of in ("G", "GD", "LD", "IE", "DESC", "GOT"):
        questions.append((first, 0))  # no addend: the distance as it is
    ignores_addends = ARCH == "aarch64" and linker == "ld" and questions  # of what counts from a GOT entry
    for target in [] if ignores_addends else targets(check, bits, field, page):
        total = (target & ~0xFFF) + (subtract & ~0xFFF) + 0xABC if page else target + (subtract & ~0xFFF if paged_base else subtract)
        if of in ("S", "L", "Z"):
            addend = 0x10 if rela else 4
            questions.append((total - addend, addend))
        elif of == "DTP" or (of == "TP" and parts[0] != "A"):
            addend = 0x20
            questions.append((total - addend, addend))
        elif parts[0] == "A":
            questions.append((0x40, total + 0x40 - 16))
        else:
            questions.append((first, total - entry))
    for value, addend in questions:
        symbol_value, length = value, 0
        if of == "Z":
            symbol_value, length = 0x5000, value
            if not 0 <= value <= MASK:
                continue
        if of == "TP":  # `value` is the offset from the thread pointer
            symbol_value = value + 16 if ARCH != "aarch64" else value - 16
            if parts[0] == "A":
                symbol_value, value = value, value - 16
        if tls and not (0 <= symbol_value <= MASK):
            symbol_value &= MASK
        addend = (addend + (1 << BITS - 1) & MASK) - (1 << BITS - 1)
        held = word if rela else addend & (1 << 8 * size) - 1
        image, words = link(linker, shared, number, before, held, size, addend, (marked, symbol_value, length, kind))
        if isinstance(image, str):
            answer = image
            if image == "?":
                print(f"{linker} {name} {value:#x} {addend:#x}: {words.strip()[:200]}", file=sys.stderr)
        else:
            answer = f"{int.from_bytes(image.bytes(PLACE, size), 'little'):0{2 * size}x}"
        role_value = value & MASK if of in ("S", "L", "Z", "DTP", "TP") else entry
        shown_base = base if minus == "GOT" or of == "GOT" else 0
        key = (name, before[-1], f"{held:0{2 * size}x}", of, role_value, shown_base, addend)
        yield key, answer


def main():
    versions = [subprocess.run([c[0], "--version"], capture_output=True, text=True).stdout.split("\n")[0] for c in LINKERS.values()]
    print(f"# Made by reloc-x86/tests/links/make.py {ARCH}.")
    newer = subprocess.run([NEWER, "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    print(f"# lld: {versions[0]}, and {newer} of what that does not know; ld: {versions[1]}.")
    print(f"# The place is {PLACE:#x}. `-`: refuses the value; `?`: was not asked or does not know the kind.")
    print("# kind, byte before the place, word before, role, its value, GOT base, addend; words after by lld and by ld")
    with ThreadPoolExecutor(2) as pool:
        for lines in pool.map(ask, rows()):
            for (name, before, held, of, value, base, addend), answers in lines:
                after = " ".join(answers.get(linker, "?") for linker in LINKERS)
                sign = "-" if addend < 0 else ""
                print(f"{name} {before:02x} {held} {of} {value:x} {base:x} {sign}{abs(addend):x} {after}")


main()
