#!/usr/bin/env python3
"""`hoist fatbin` beside cuobjdump, in turn, on one library; fastest round and processor time of each.

    python3 benches/peers/fatbin.py HOIST LIBRARY FOLDER [ROUNDS]

FOLDER is where files are extracted to: in memory (/dev/shm), so that no disk is measured. A plain read of the tree that
`scan` looks through stands for the disk; "cold" rows come after the system was told to forget these files. The floor of
`extract` is `fatbin/tests/speed.rs`. Commands that change the library run once, and write beside it: for their memory,
and how much of it are pages of files, which the system takes back when it needs them.
"""

import os
import shutil
import subprocess
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


def forget(files):
    """Drops files from the system's cache."""
    os.sync()
    for path in files:
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def written(folder):
    """Files and bytes in a folder."""
    sizes = [entry.stat().st_size for entry in os.scandir(folder)]
    return len(sizes), sum(sizes)


def change(words):
    """Seconds, and the most memory of its own and of files in MB, of a command that is looked at while it runs."""
    start = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    most = {"RssAnon": 0, "RssFile": 0}
    while child.poll() is None:
        try:
            lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
        except OSError:
            continue
        for key, value in (line.split(":", 1) for line in lines):
            if key in most:
                most[key] = max(most[key], int(value.split()[0]) // 1000)
        time.sleep(0.01)
    assert child.returncode == 0, words
    return time.monotonic() - start, most["RssAnon"], most["RssFile"]


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
        "scan, cold: hoist": [hoist, "fatbin", "scan", tree],
        "scan, cold: plain read": ["cat", *files],
    }
    best, files_written = {}, {}
    folder = os.path.join(parent, "extracted")
    for _ in range(rounds):
        for name, words in commands.items():
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
            if "cold" in name:
                forget(files)
            best.setdefault(name, []).append(run(words, folder))
            files_written[name] = written(folder)
    shutil.rmtree(folder)
    for name, times in best.items():
        wall, processor, memory = (min(column) for column in zip(*times))
        print(f"{name:28} {wall:8.3f} s wall {processor:8.3f} s processor {memory:7.0f} MB", end="")
        count, size = files_written[name]
        print(f"  {count} files, {size} bytes, {wall / size * 1e9:.2f} ns a byte" if size else "")
    target = library + ".changed"
    for words in (["recompress", "--with", "none"], ["recompress", "--with", "lz4"], ["prune", "--allow-gaps", "--keep", "sm_90,ptx"]):
        seconds, own, mapped = change([hoist, "fatbin", *words, library, "-o", target])
        os.remove(target)
        print(f"{' '.join(words):28} {seconds:8.1f} s wall {own:7} MB of its own {mapped:7} MB of files")


main()
