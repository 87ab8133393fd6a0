#!/usr/bin/env python3
"""`hoist fatbin` beside cuobjdump, in turn, on one library; fastest round and processor time of each.

    python3 benches/peers/fatbin.py HOIST LIBRARY FOLDER [ROUNDS]

FOLDER is where files are extracted to: in memory (/dev/shm), so that no disk is measured. A plain read of the same
bytes, and of a tree that `scan` looks through, stand for the disk. The floor of `extract` is
`fatbin/tests/speed.rs`.
"""

import os
import shutil
import sys
import time
from pathlib import Path


def run(words, folder):
    """Wall and processor seconds, and the most memory in MB, of a command."""
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.execvp(words[0], words)
    _, status, usage = os.wait4(child, 0)
    wall = time.monotonic() - start
    assert status == 0, (words, status)
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    hoist, library, parent = (os.path.abspath(word) for word in sys.argv[1:4])
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    tree = os.path.dirname(library)
    files = [str(path) for path in Path(tree).rglob("*") if path.is_file()]
    commands = {
        "list: hoist": [hoist, "fatbin", "list", library],
        "list: hoist --no-search": [hoist, "fatbin", "list", "--no-search", library],
        "list: cuobjdump": ["cuobjdump", "--list-elf", library],
        "extract: hoist": [hoist, "fatbin", "extract", "-q", library],
        "extract: hoist --no-search": [hoist, "fatbin", "extract", "-q", "--no-search", library],
        "extract: cuobjdump": ["cuobjdump", "-all", "-xelf", "all", "-xptx", "all", library],
        "scan: hoist": [hoist, "fatbin", "scan", tree],
        "scan: plain read": ["cat", *files],
    }
    best = {}
    folder = os.path.join(parent, "extracted")
    for _ in range(rounds):
        for name, words in commands.items():
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
            best.setdefault(name, []).append(run(words, folder))
    shutil.rmtree(folder)
    for name, times in best.items():
        wall, processor, memory = (min(column) for column in zip(*times))
        print(f"{name:28} {wall:8.3f} s wall {processor:8.3f} s processor {memory:7.0f} MB")


main()
