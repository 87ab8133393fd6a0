"""Loads a library; prints the SHA-256 of each region that its wrappers lead to, read out of memory as a runtime does, as JSON."""

import ctypes
import hashlib
import json
import os
import struct
import sys

path = sys.argv[1]
library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
# the first word of ld.so's link_map is by how much the library is moved
base = ctypes.cast(library._handle, ctypes.POINTER(ctypes.c_uint64))[0]
with open(path, "rb") as file:
    header = file.read(64)
    (table,) = struct.unpack_from("<Q", header, 40)
    size, count, names = struct.unpack_from("<HHH", header, 58)
    file.seek(table)
    rows = [struct.unpack("<IIQQQQ", file.read(size)[:40]) for _ in range(count)]
    file.seek(rows[names][4])
    strings = file.read(rows[names][5])
digests = []
for row in rows:
    if strings[row[0]:].split(b"\0")[0] != b".nvFatBinSegment":
        continue
    for at in range(base + row[3], base + row[3] + row[5], 24):
        magic, _, data = struct.unpack("<IIQ", ctypes.string_at(at, 16))
        assert magic == 0x466243B1, hex(magic)
        start, _, head, rest = struct.unpack("<IHHQ", ctypes.string_at(data, 16))
        assert start == 0xBA55ED50, hex(start)
        digests.append(hashlib.sha256(ctypes.string_at(data, head + rest)).hexdigest())
print(json.dumps(digests), flush=True)
