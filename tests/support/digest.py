"""The digest of chunkmill-digest(7), written from its definition alone.

`python3 digest.py` prints the test vectors of the man page and of
tests/unit/model/test_digest.c.
"""

import struct

MASK = (1 << 64) - 1
INDEX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
FINAL = (
    (33, 0xFF51AFD7ED558CCD, 33, 0xC4CEB9FE1A85EC53, 33),
    (30, 0xBF58476D1CE4E5B9, 27, 0x94D049BB133111EB, 31),
)


def mix(lane, x):
    a, m, b, n, c = FINAL[lane]
    x &= MASK
    x = (x ^ x >> a) * m & MASK
    x = (x ^ x >> b) * n & MASK
    return x ^ x >> c


def short_element(index, data):
    """A fixed-length element of at most 8 bytes."""
    v = int.from_bytes(data, "little")
    lo, hi = (mix(lane, v + (index + 1) * INDEX[lane]) for lane in (0, 1))
    return hi << 64 | lo


def long_element(index, data):
    """A fixed-length element of more than 8 bytes, or a string of any length."""
    lanes = []
    for lane in (0, 1):
        x = (index + 1) * INDEX[lane]
        for at in range(0, len(data), 8):
            x = mix(lane, x + int.from_bytes(data[at : at + 8], "little"))
        lanes.append(mix(lane, x + len(data)))
    return lanes[1] << 64 | lanes[0]


def fixed(elements, first=0):
    """Elements of one length, given as bytes."""
    one = short_element if elements and len(elements[0]) <= 8 else long_element
    return sum(one(first + i, e) for i, e in enumerate(elements)) % (1 << 128)


def strings(texts, first=0):
    return sum(long_element(first + i, t.encode()) for i, t in enumerate(texts)) % (1 << 128)


def text(digest):
    return f"{digest:032x}"


def vectors():
    yield "no elements", fixed([])
    yield "uint8 0", fixed([b"\0"])
    yield "uint8 0 at index 1", fixed([b"\0"], 1)
    yield "int16 0, 1, ..., 9", fixed([struct.pack("<h", v) for v in range(10)])
    yield "int16 -1", fixed([struct.pack("<h", -1)])
    yield "float32 0.0, 0.5, ..., 499.5", fixed([struct.pack("<f", v / 2) for v in range(1000)])
    yield "float64 1.5, NaN", fixed([struct.pack("<d", 1.5), struct.pack("<Q", 0x7FF8 << 48)])
    yield "int64 -1 at index 2^32", fixed([struct.pack("<q", -1)], 1 << 32)
    yield "bytes of length 3, abc", fixed([b"abc"])
    yield "complex128 1+2i", fixed([struct.pack("<dd", 1, 2)])
    yield "bytes of length 12, hello world and a NUL", fixed([b"hello world\0"])
    yield 'string ""', strings([""])
    yield 'strings "Grüße", "", "chunkmill"', strings(["Grüße", "", "chunkmill"])


if __name__ == "__main__":
    for name, digest in vectors():
        print(text(digest), name)
