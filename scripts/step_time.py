#!/usr/bin/env python3
"""Times the training step of a PyTorch model and prints it as readbench takes it: --step-time forward=…,backward=…,other=…

    scripts/step_time.py FILE.py                                 # calls its step_time()
    scripts/step_time.py --model torchvision.models:resnet18 --input 32x3x224x224 --device cuda
    readbench $(scripts/step_time.py FILE.py) --sample … era5.zarr

FILE.py has a function step_time() that returns (model, inputs) or (model, inputs, loss): a module, a
tensor or a tuple of them, and a function of what the module gives (its mean by default). A model named
by --model is called without arguments and gets random numbers of the shape --input.

Of --steps steps after --warmup the medians are printed: forward (with the loss), backward, and
other, which is the optimizer's. On a GPU each part is timed to the end of its kernels. Anything but the
option goes to standard error.
"""

import argparse
import importlib
import importlib.util
import statistics
import sys
import time
from pathlib import Path


def from_file(path):
    """Calls step_time() of the file."""
    spec = importlib.util.spec_from_file_location("step_time_of", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec.loader.exec_module(module)
    if not hasattr(module, "step_time"):
        sys.exit(f"step_time.py: {path}: has no function step_time()")
    return module.step_time()


def from_name(name, shape):
    import torch

    module, _, attribute = name.partition(":")
    if not attribute:
        sys.exit(f"step_time.py: --model {name}: give MODULE:NAME")
    model = getattr(importlib.import_module(module), attribute)()
    return model, torch.randn([int(n) for n in shape.split("x")])


def mean_of(result):
    tensors = result if isinstance(result, (tuple, list)) else [result]
    return sum(t.float().mean() for t in tensors)


def measure(model, inputs, loss, device, steps, warmup):
    """Seconds of the parts of each step."""
    import torch

    where = torch.device(device)
    inputs = tuple(t.to(where) for t in (inputs if isinstance(inputs, (tuple, list)) else (inputs,)))
    model = model.to(where).train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])

    def now():
        if where.type == "cuda":
            torch.cuda.synchronize(where)
        return time.perf_counter()

    times = []
    for step in range(warmup + steps):
        optimizer.zero_grad(set_to_none=True)
        start = now()
        value = loss(model(*inputs))
        forward = now()
        value.backward()
        backward = now()
        optimizer.step()
        end = now()
        if step >= warmup:
            times.append((forward - start, backward - forward, end - backward))
    return times


def text(seconds):
    """As readbench reads times: microseconds, whole."""
    return f"{max(1, round(seconds * 1e6))}us"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="a file of Python with step_time()")
    parser.add_argument("--model", metavar="MODULE:NAME")
    parser.add_argument("--input", metavar="SHAPE", help="of the tensor that --model takes, such as 32x3x224x224")
    parser.add_argument("--device", help="cpu, cuda, cuda:1; cuda where there is one")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    options = parser.parse_args()
    if (options.file is None) == (options.model is None) or (options.model is None) != (options.input is None):
        parser.error("give a file, or --model and --input")
    if options.steps < 1 or options.warmup < 0:
        parser.error("--steps is at least 1, --warmup at least 0")
    import torch

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    given = from_file(options.file) if options.file else from_name(options.model, options.input)
    model, inputs, loss = (*given, mean_of)[:3]
    times = measure(model, inputs, loss, device, options.steps, options.warmup)
    forward, backward, other = (statistics.median(t) for t in zip(*times))
    whole = [sum(t) for t in times]
    print(f"{options.steps} steps on {device}: median {statistics.median(whole) * 1e3:.3g} ms, "
          f"{min(whole) * 1e3:.3g} to {max(whole) * 1e3:.3g} ms", file=sys.stderr)  # fmt: skip
    print(f"--step-time forward={text(forward)},backward={text(backward)},other={text(other)}")


if __name__ == "__main__":
    main()
