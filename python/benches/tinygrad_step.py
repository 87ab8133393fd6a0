"""The first step of a model in tinygrad, from nothing, with its loader and with ours.

    HOIST_TINYGRAD=FOLDER target/xtask/python/venv/bin/python python/benches/tinygrad_step.py

FOLDER is that of an unpacked tinygrad. The model has two convolutions and a linear layer; a step is forward, backward and SGD. Nothing is
cached on disk. Each way runs in processes of its own, in turns; told are the seconds of the step, and of its loads.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

ROUNDS = 3

STEP = """
import json, os, sys, time
sys.path.insert(0, os.environ["HOIST_TINYGRAD"])
if sys.argv[1] == "with":
    import hoist.tinygrad
    hoist.tinygrad.install()
import tinygrad.runtime.support.elf as elf
import tinygrad.runtime.ops_cpu
inner, spent, loads = elf.jit_loader, 0.0, 0
def timed(*args, **kwargs):
    global spent, loads
    start = time.perf_counter()
    try:
        return inner(*args, **kwargs)
    finally:
        spent += time.perf_counter() - start
        loads += 1
for name, module in list(sys.modules.items()):
    if name.startswith("tinygrad") and getattr(module, "jit_loader", None) is inner:
        module.jit_loader = timed
from tinygrad import Context, Tensor, nn
Tensor.manual_seed(1)
class Net:
    def __init__(self):
        self.a, self.b, self.c = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3), nn.Linear(16 * 5 * 5, 10)
    def __call__(self, x):
        x = self.a(x).relu().max_pool2d()
        x = self.b(x).relu().max_pool2d()
        return self.c(x.flatten(1))
net = Net()
optimizer = nn.optim.SGD(nn.state.get_parameters(net), lr=0.01)
x, y = Tensor.rand(32, 1, 28, 28), Tensor([n % 10 for n in range(32)])
# since 0.14 it is a variable of the context
with Tensor.train() if hasattr(Tensor, "train") else Context(TRAINING=1):
    start = time.perf_counter()
    loss = net(x).sparse_categorical_crossentropy(y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    value = loss.item()
    took = time.perf_counter() - start
print(json.dumps([took, spent, loads, value]))
"""


def step(how: str) -> "list[float]":
    environment = {**os.environ, "CACHELEVEL": "0", "DISABLE_COMPILER_CACHE": "1", "DEV": "CPU"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", STEP, how], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    rounds = [{how: step(how) for how in ("without", "with")} for _ in range(ROUNDS)]
    print("| loader | objects | first step, seconds | of these loading, milliseconds | loss |")
    print("|---|---:|---:|---:|---:|")
    for how in ("without", "with"):
        took, spent = (statistics.median(one[how][column] for one in rounds) for column in (0, 1))
        _, _, loads, loss = rounds[0][how]
        print(f"| {'its own' if how == 'without' else 'ours'} | {loads} | {took:.2f} | {spent * 1000:.2f} | {loss:.6f} |")


if __name__ == "__main__":
    main()
