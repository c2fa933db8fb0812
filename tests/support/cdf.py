"""Writes NetCDF classic files byte by byte, so that headers can also be odd or false.

The layout is that of the NetCDF classic format specification: CDF-1 (version
1), CDF-2 (2: 64-bit offsets) and CDF-5 (5: 64-bit sizes as well).
"""

import struct

import numpy as np

TYPES = {"i1": 1, "S1": 2, "i2": 3, "i4": 4, "f4": 5, "f8": 6, "u1": 7, "u2": 8, "u4": 9, "i8": 10, "u8": 11}
STREAMING = -1


def pad4(b):
    return b + b"\0" * (-len(b) % 4)


class Cdf:
    """dims: {name: length or None for records}; atts: {name: text or (type, values)};
    vars: (name, type, dim names, array[, atts]).  `lie` replaces header fields: see build()."""

    def __init__(self, version, dims, variables, atts=None, numrecs=None, **lie):
        self.version, self.dims, self.vars, self.atts, self.lie = version, dims, variables, atts or {}, lie
        records = [v[3].shape[0] for v in variables if v[2] and dims[v[2][0]] is None]
        self.nrecords = max(records, default=0)
        self.numrecs = self.nrecords if numrecs is None else numrecs

    def size(self, n):  # NON_NEG
        return struct.pack(">q" if self.version == 5 else ">i", n)

    def offset(self, n):
        return struct.pack(">i" if self.version == 1 else ">q", n)

    def name(self, s):
        b = s if isinstance(s, bytes) else s.encode()
        return self.size(self.lie.get("name_length", len(b))) + pad4(b)

    def listing(self, tag, items):
        return struct.pack(">i", tag if items else 0) + self.size(len(items)) + b"".join(items)

    def att(self, name, value):
        if isinstance(value, (str, bytes)):
            kind, raw = "S1", value if isinstance(value, bytes) else value.encode()
            n = len(raw)
        else:
            kind, values = value
            array = np.atleast_1d(np.asarray(values, ">" + kind if kind != "S1" else "S1"))
            raw, n = array.tobytes(), array.size
        n = self.lie.get("att_length", n)
        return self.name(name) + struct.pack(">i", TYPES[kind]) + self.size(n) + pad4(raw)

    def is_record(self, v):
        return bool(v[2]) and self.dims[v[2][0]] is None

    def item(self, v):
        """Bytes of a variable, or of one record of it, without padding."""
        shape = v[3].shape[1:] if self.is_record(v) else v[3].shape
        return int(np.prod(shape, dtype=np.int64)) * np.dtype(v[1]).itemsize

    def header(self, begins):
        ids = {d: i for i, d in enumerate(self.dims)}
        parts = [b"CDF" + bytes([self.lie.get("magic_version", self.version)]), self.size(self.numrecs)]
        dims = [
            self.name(d) + self.size(0 if n is None else self.lie.get("dim_length", n)) for d, n in self.dims.items()
        ]
        parts.append(self.listing(10, dims))
        parts.append(self.listing(12, [self.att(*a) for a in self.atts.items()]))
        variables = []
        for v, begin in zip(self.vars, begins):
            atts = v[4] if len(v) > 4 else {}
            vsize = min(len(pad4(bytes(self.item(v)))), 2**31 - 1) if self.item(v) < 2**20 else 2**31 - 1
            variables.append(
                self.name(v[0])
                + self.size(self.lie.get("rank", len(v[2])))
                + b"".join(self.size(self.lie.get("dimid", ids[d])) for d in v[2])
                + self.listing(12, [self.att(*a) for a in atts.items()])
                + struct.pack(">i", self.lie.get("type", TYPES[v[1]]))
                + self.size(self.lie.get("vsize", vsize))
                + self.offset(self.lie.get("begin", begin))
            )
        parts.append(self.listing(11, variables))
        return b"".join(parts)

    def build(self, gap=0):
        """The file, with GAP bytes between header and data.  Fields that `lie` may replace:
        magic_version, name_length, att_length, dim_length, rank, dimid, type, vsize, begin."""
        order = range(len(self.vars))
        start = len(self.header([0] * len(self.vars))) + gap
        begins, body = [0] * len(self.vars), []
        records = [i for i in order if self.is_record(self.vars[i])]
        at = start
        for i in order:
            if i not in records:
                raw = pad4(self.vars[i][3].astype(">" + self.vars[i][1]).tobytes())
                begins[i] = at
                body.append(raw)
                at += len(raw)
        sizes = {i: self.item(self.vars[i]) for i in records}
        if len(records) > 1:  # a record variable that is alone is not padded
            sizes = {i: -(-n // 4) * 4 for i, n in sizes.items()}
        for i in records:
            begins[i] = at
            at += sizes[i]
        for r in range(self.nrecords):
            for i in records:
                raw = self.vars[i][3][r].astype(">" + self.vars[i][1]).tobytes()
                body.append(raw.ljust(sizes[i], b"\0"))
        return self.header(begins) + b"\xaa" * gap + b"".join(body)
