"""The kernels, run without a device: an interpreter of the few PTX instructions that they use.

Threads of a warp run until each has come to a shuffle, which is where they meet.
An instruction that the interpreter does not know fails the test.
"""

import itertools
import operator
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "lib/gpu/kernels.ptx").read_text()
MASK = {"u32": 2**32 - 1, "b32": 2**32 - 1, "u64": 2**64 - 1, "b64": 2**64 - 1}
BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "and": operator.and_,
    "or": operator.or_,
}


def parse(name):
    """Parameter names, instructions as (guard, opcode, operands), and where labels stand."""
    text = re.sub(r"//.*", "", TEXT)
    entry = re.search(rf"\.visible \.entry {name}\((.*?)\)\s*\{{(.*?)^\}}", text, re.S | re.M)
    parameters = re.findall(r"\.param \.u64 (\w+)", entry[1])
    program, labels = [], {}
    for piece in re.findall(r"\w+:|[^;:]+;", entry[2]):
        piece = " ".join(piece.rstrip(";").split())
        if piece.endswith(":"):
            labels[piece[:-1]] = len(program)
        elif not piece.startswith(".reg"):
            guard, opcode, rest = re.fullmatch(r"(?:@(!?\w+) )?([\w.]+) ?(.*)", piece).groups()
            operands = [o.strip() for o in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", rest)]
            program.append((guard, opcode, operands))
    return parameters, program, labels


class Memory:
    """Global memory at an address, and the clocks."""

    def __init__(self, data=b"", base=0x10000, time_step=1000, clock_step=100):
        self.base, self.data = base, bytearray(data)
        self.time, self.cycles = itertools.count(10**9, time_step), itertools.count(5, clock_step)

    def load(self, address, nbytes):
        at = address - self.base
        assert 0 <= at and at + nbytes <= len(self.data), "a read outside memory"
        return int.from_bytes(self.data[at : at + nbytes], "little")

    def store(self, address, nbytes, value):
        at = address - self.base
        assert 0 <= at and at + nbytes <= len(self.data), "a write outside memory"
        assert address % nbytes == 0, "a write that is not aligned"
        self.data[at : at + nbytes] = (value % 256**nbytes).to_bytes(nbytes, "little")

    def add(self, address, value):
        self.store(address, 8, self.load(address, 8) + value)


def thread(kernel, arguments, memory, special):
    """A generator: yields (value, delta) at each shuffle and is sent what the shuffle gives."""
    parameters, program, labels = kernel
    registers, at, steps = {}, 0, 0

    def value(operand):
        if operand.startswith("%"):
            if operand == "%globaltimer":
                return next(memory.time)
            return next(memory.cycles) if operand == "%clock64" else special[operand]
        return registers[operand] if operand in registers else int(operand, 0)

    def address(operand):
        name, _, offset = operand.strip("[]").partition("+")
        return registers[name] + int(offset or 0)

    while True:
        guard, opcode, o = program[at]
        at += 1
        steps += 1
        assert steps < 10**6, "the kernel does not end"
        if guard and registers[guard.lstrip("!")] == guard.startswith("!"):
            continue
        op, *parts = opcode.split(".")
        kind = parts[-1] if parts else ""
        if op == "ret":
            return
        if op == "bra":
            at = labels[o[0]]
        elif opcode == "ld.param.u64":
            registers[o[0]] = arguments[parameters.index(o[1].strip("[]"))]
        elif opcode == "ld.global.v4.u32":
            assert address(o[1]) % 16 == 0, "a vector that is not aligned"
            for i, name in enumerate(o[0].strip("{}").split(",")):
                registers[name.strip()] = memory.load(address(o[1]) + 4 * i, 4)
        elif opcode == "ld.global.u8":
            registers[o[0]] = memory.load(address(o[1]), 1)
        elif opcode == "red.global.add.u64":
            memory.add(address(o[0]), value(o[1]))
        elif opcode == "mov.b64" and o[0].startswith("{"):
            low, high = (name.strip() for name in o[0].strip("{}").split(","))
            registers[low], registers[high] = value(o[1]) % 2**32, value(o[1]) >> 32
        elif opcode == "mov.b64":
            low, high = (value(name.strip()) for name in o[1].strip("{}").split(","))
            registers[o[0]] = low | high << 32
        elif op in ("mov", "cvta", "cvt"):
            registers[o[0]] = value(o[1]) & MASK[parts[0] if op == "cvt" else kind]
        elif opcode == "shfl.sync.down.b32":
            assert (o[3], o[4]) == ("31", "0xffffffff")
            registers[o[0]] = yield value(o[1]), value(o[2])
        elif op == "setp":
            a, b = value(o[1]), value(o[2])
            registers[o[0]] = {"ge": a >= b, "lt": a < b, "eq": a == b, "ne": a != b}[parts[0]]
        elif opcode == "mul.wide.u32":
            registers[o[0]] = value(o[1]) * value(o[2])
        elif op == "mad" and parts[0] in ("wide", "lo"):
            registers[o[0]] = (value(o[1]) * value(o[2]) + value(o[3])) & MASK["u64"]
        elif op in BINARY:
            registers[o[0]] = BINARY[op](value(o[1]), value(o[2])) & MASK[kind]
        else:
            raise AssertionError(f"{opcode} is not known")


def run_warp(threads):
    """Lets all threads go from one shuffle to the next; they must meet at the same ones."""
    met = [next(t, None) for t in threads]
    while met[0] is not None:
        values = [v for v, _ in met]
        sent = [values[i + d] if i + d < 32 else values[i] for i, (_, d) in enumerate(met)]
        following = []
        for t, v in zip(threads, sent):
            try:
                following.append(t.send(v))
            except StopIteration:
                following.append(None)
        met = following
    assert all(m is None for m in met)


def launch(name, arguments, memory, nblocks, nthreads):
    kernel = parse(name)
    for block in range(nblocks):
        for warp in range(0, nthreads, 32):
            places = [
                {"%tid.x": i, "%ctaid.x": block, "%ntid.x": nthreads, "%nctaid.x": nblocks}
                for i in range(warp, warp + 32)
            ]
            run_warp([thread(kernel, arguments, memory, place) for place in places])


def checksum(data):
    """As lib/gpu/checksum.h defines it."""
    padded = data + bytes(-len(data) % 4)
    words = [int.from_bytes(padded[i : i + 4], "little") for i in range(0, len(padded), 4)]
    return sum(words) % 2**64, sum((i + 1) * w for i, w in enumerate(words)) % 2**64


@pytest.mark.parametrize("nblocks, nthreads", [(1, 32), (3, 64), (2, 256)])
@pytest.mark.parametrize("nbytes", [0, 1, 4, 15, 16, 17, 30, 511, 4096, 9001])
def test_checksum(nbytes, nblocks, nthreads):
    data = bytes((i * 167 + (i >> 7) * 31 + 255) % 256 for i in range(nbytes))
    start = -(-nbytes // 16) * 16
    memory = Memory(data.ljust(start, b"\xee") + bytes(16))
    out = memory.base + start
    launch("cm_checksum", [memory.base, nbytes, out], memory, nblocks, nthreads)
    assert (memory.load(out, 8), memory.load(out + 8, 8)) == checksum(data)


def test_checksum_of_all_bits():
    data = b"\xff" * 20000
    memory = Memory(data + bytes(16))
    out = memory.base + len(data)
    launch("cm_checksum", [memory.base, len(data), out], memory, 1, 64)
    assert (memory.load(out, 8), memory.load(out + 8, 8)) == checksum(data)


def test_busy_ends_by_the_time():
    memory = Memory(time_step=1000, clock_step=1)
    launch("cm_busy", [50_000, 2**63], memory, 1, 32)
    assert next(memory.time) - 10**9 >= 32 * 50_000


def test_busy_ends_where_the_time_stands_still():
    memory = Memory(time_step=0, clock_step=100)
    launch("cm_busy", [50_000, 40_000], memory, 1, 32)
    assert next(memory.cycles) >= 40_000


@pytest.mark.parametrize("target", ["sm_75", "sm_90"])
def test_the_assembler_takes_the_text(target, tmp_path):
    ptxas = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
    if ptxas is None:
        pytest.skip("no ptxas, NVIDIA's assembler")
    source = tmp_path / "kernels.ptx"
    source.write_text(TEXT)
    command = [ptxas, f"-arch={target}", "-o", tmp_path / "kernels.cubin", source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
