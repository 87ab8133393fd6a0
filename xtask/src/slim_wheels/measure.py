"""Runs a command; prints seconds, seconds of processors, and the most memory of its own in bytes, as JSON."""

import json
import resource
import subprocess
import sys
import time

start = time.time()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
most = 0
while child.poll() is None:
    try:
        with open(f"/proc/{child.pid}/status") as status:
            most = max([most, *(int(line.split()[1]) for line in status if line.startswith("RssAnon"))])
        child.wait(0.05)
    except (FileNotFoundError, ProcessLookupError, subprocess.TimeoutExpired):
        pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
said = json.load(child.stdout) if child.returncode == 0 else None
print(json.dumps({
    "ok": child.returncode == 0,
    "seconds": time.time() - start,
    "processor": used.ru_utime + used.ru_stime,
    "own": most * 1024,
    "said": said,
}))
