"""The protocol of `readbench --engine exec:CMD`: lines of JSON on standard input and output.

A loader gives serve() a function that opens a store, and gets asked for boxes.
README.md describes the lines.
"""

import argparse
import json
import os
import sys
import time

import numpy as np


class Refusal(Exception):
    """A sentence for the user: the batch cannot be read, or the loader cannot begin."""


def reason(error):
    """One line that says what went wrong."""
    text = " ".join(str(error).split()) or "no reason given"
    return text if isinstance(error, Refusal) else f"{type(error).__name__}: {text}"


class Lines:
    """Standard input and output.  What else is printed goes to standard error."""

    def __init__(self):
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def read(self):
        line = sys.stdin.readline()
        return json.loads(line) if line else None

    def write(self, answer):
        self.out.write(json.dumps(answer) + "\n")
        self.out.flush()


def options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--checksum", action="store_true", help="answer with the CRC32C of each batch")
    return parser.parse_args()


def slices(start, shape):
    return tuple(slice(first, first + length) for first, length in zip(start, shape))


def crc32c(parts, wholes):
    """Of parts, lists of samples, whose places hold as many elements as WHOLES say."""
    import google_crc32c

    crc = google_crc32c.Checksum()
    for samples, whole in zip(parts, wholes):
        for sample in samples:
            values = np.ascontiguousarray(sample)
            values = values.astype(values.dtype.newbyteorder("<"), copy=False)
            crc.update(values.tobytes())
            crc.update(bytes((int(np.prod(whole)) - values.size) * values.itemsize))
    return int.from_bytes(crc.digest(), "big")


def answer(request, parts, seconds, wholes, checksum):
    """PARTS are for each part of the request its samples, as arrays."""
    result = {
        "batch": request["batch"],
        "nbytes": sum(int(sample.nbytes) for samples in parts for sample in samples),
        "seconds": seconds,
    }
    if checksum:
        result["crc32c"] = crc32c(parts, wholes)
    return result


def begin(lines, opener):
    """Greets: what opener(greeting) returned and the greeting, or None when there is nothing to do."""
    greeting = lines.read()
    if greeting is None:
        return None
    try:
        if greeting.get("protocol") != 1:
            raise Refusal(f"this loader speaks protocol 1, not {greeting.get('protocol')}")
        opened = opener(greeting)
    except Exception as error:  # whatever a library raises is the user's to read
        lines.write({"error": reason(error)})
        return None
    lines.write({"ready": True})
    return opened, greeting


def serve(opener, checksum=False):
    """Answers until the input ends.

    opener(greeting) returns a function read(variable, start, shape) that gives a
    NumPy array with the elements of that box, in the array's own type.
    """
    lines = Lines()
    begun = begin(lines, opener)
    if begun is None:
        return
    read, greeting = begun
    while (request := lines.read()) is not None:
        try:
            before = time.perf_counter()
            parts = [
                [read(part["variable"], *box) for box in zip(part["start"], part["shape"])]
                for part in request["parts"]
            ]
            seconds = time.perf_counter() - before
            lines.write(answer(request, parts, seconds, greeting["sample"], checksum))
        except Exception as error:
            lines.write({"error": reason(error)})
