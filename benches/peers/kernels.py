#!/usr/bin/env python3
"""Commands of `hoist fatbin` and `hoist cubin` beside cuobjdump, in turn: time, processor time and memory of each.

    python3 benches/peers/kernels.py HOIST CUOBJDUMP FOLDER ROUNDS FILE...

FOLDER is where files are extracted to: in memory (/dev/shm), so that no disk is measured. Of a wheel cuobjdump reads nothing:
there only hoist is measured. The least of all rounds is printed, as rows of a table.
"""

import os
import shutil
import sys
import tempfile
import time


def run(words, folder):
    """Wall and processor seconds, and the most memory in MB, of a command; what it prints is thrown away."""
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
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def least(words, rounds, folder):
    """The least time, with the processor time and the memory of that round."""
    best = None
    for _ in range(rounds):
        inside = tempfile.mkdtemp(dir=folder)
        found = run(words, inside)
        shutil.rmtree(inside)
        best = min(best or found, found)
    return best


def main():
    hoist, cuobjdump, folder, rounds = sys.argv[1:5]
    hoist, cuobjdump = os.path.abspath(hoist), os.path.abspath(cuobjdump)
    for path in map(os.path.abspath, sys.argv[5:]):
        is_library = not path.endswith(".whl")
        pairs = [
            (["fatbin", "list"], ["--list-elf"]),
            (["fatbin", "extract", "--no-search"], ["-all", "-xelf", "all", "-xptx", "all"]),
            (["cubin", "show"], ["-res-usage"]),
            (["fatbin", "find", "*gemm*"], None),
            (["fatbin", "size"], None),
            (["fatbin", "diff", path], None),
            (["fatbin", "ptx"], None),
        ]
        for ours, theirs in pairs:
            wall, spent, memory, status = least([hoist, *ours, path], int(rounds), folder)
            words = " ".join(os.path.basename(word) for word in ours)
            row = f"| `hoist {words}` {os.path.basename(path)} | {wall:.3f} s | {spent:.3f} s | {memory:.0f} MB |"
            if theirs and is_library:
                peer, busy, peak, _ = least([cuobjdump, *theirs, path], int(rounds), folder)
                row += f" `{' '.join(theirs)}` | {peer:.2f} s | {busy:.2f} s | {peak:.0f} MB | {peer / wall:.1f} |"
            else:
                row += " | | | | |"
            print(row, "" if status == 0 else f"status {status}", flush=True)


main()
