"""The samples that all contenders of a reading work read: written for read_roofline.c, read by peers."""

from dataclasses import dataclass


@dataclass
class Plan:
    array: str  # its folder
    shape: tuple
    chunk: tuple
    shard: tuple  # () for none
    sample: tuple
    batch: int
    starts: list
    itemsize: int = 4

    def write(self, path):
        def line(name, values):
            return f"{name} {' '.join(map(str, values))}\n"

        with open(path, "w") as f:
            f.write(line("array", [self.array]) + line("itemsize", [self.itemsize]))
            f.write(line("shape", self.shape) + line("chunk", self.chunk) + line("shard", self.shard or (0, 0, 0)))
            f.write(line("sample", self.sample) + line("batch", [self.batch]) + line("samples", [len(self.starts)]))
            f.writelines(" ".join(map(str, start)) + "\n" for start in self.starts)

    def batches(self):
        """For each batch the boxes of its samples, as slices."""
        boxes = [tuple(slice(a, a + n) for a, n in zip(start, self.sample)) for start in self.starts]
        return [boxes[i : i + self.batch] for i in range(0, len(boxes), self.batch)]


def read(path):
    with open(path) as f:
        lines = f.read().splitlines()
    value = {name: rest.split() for name, rest in (line.split(" ", 1) for line in lines[:8])}
    lengths = {name: tuple(map(int, value[name])) for name in ("shape", "chunk", "shard", "sample")}
    lengths["shard"] = lengths["shard"] if any(lengths["shard"]) else ()
    starts = [tuple(map(int, line.split())) for line in lines[8:]]
    return Plan(lines[0].split(" ", 1)[1], batch=int(value["batch"][0]), starts=starts, **lengths)
