"""Reads Icechunk repositories of format 2, from the specification alone: an oracle for what the programs
write and read that shares no line with either."""
import os
import struct

import numcodecs

LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
MAGIC = "ICE\N{ICE CUBE}CHUNK".encode()
SNAPSHOT, MANIFEST, LOG, REPO = 1, 2, 4, 6


def letters(ident):
    """Crockford's base 32, the last letter filled up with zeros."""
    bits = "".join(f"{byte:08b}" for byte in ident)
    bits += "0" * (-len(bits) % 5)
    return "".join(LETTERS[int(bits[i : i + 5], 2)] for i in range(0, len(bits), 5))


def flatbuffer(path, kind):
    """The flatbuffer in a metadata file."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:12] == MAGIC, path
    version, found, compression = data[36:39]
    assert (version, found, compression) == (2, kind, 1), path
    flat = bytes(numcodecs.Zstd().decode(data[39:]))
    assert flat[4:8] == b"Ichk"
    return flat


class Table:
    """A table of a flatbuffer; fields by their slot."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        self.vtable = at - struct.unpack_from("<i", data, at)[0]
        self.nbytes = struct.unpack_from("<H", data, self.vtable)[0]
        assert self.nbytes % 2 == 0 and 4 <= self.nbytes, "vtable"

    @classmethod
    def root(cls, data):
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def place(self, slot):
        if 4 + 2 * slot >= self.nbytes:
            return None
        off = struct.unpack_from("<H", self.data, self.vtable + 4 + 2 * slot)[0]
        return self.at + off if off else None

    def scalar(self, slot, form, default=0):
        at = self.place(slot)
        if at is None:
            return default
        size = struct.calcsize(form)
        assert at % min(size, 8) == 0, f"field {slot} at {at} is not aligned"
        return struct.unpack_from("<" + form, self.data, at)[0]

    def struct(self, slot, nbytes):
        at = self.place(slot)
        return None if at is None else bytes(self.data[at : at + nbytes])

    def _follow(self, at):
        assert at % 4 == 0
        to = at + struct.unpack_from("<I", self.data, at)[0]
        assert to % 4 == 0
        return to, struct.unpack_from("<I", self.data, to)[0]

    def vector(self, slot, form):
        at = self.place(slot)
        if at is None:
            return None
        first, n = self._follow(at)
        size = struct.calcsize("<" + form)
        values = [struct.unpack_from("<" + form, self.data, first + 4 + i * size) for i in range(n)]
        return [v[0] if len(v) == 1 else v for v in values]

    def bytes(self, slot):
        at = self.place(slot)
        if at is None:
            return None
        first, n = self._follow(at)
        return bytes(self.data[first + 4 : first + 4 + n])

    def text(self, slot):
        found = self.bytes(slot)
        return None if found is None else found.decode()

    def table(self, slot):
        at = self.place(slot)
        return None if at is None else Table(self.data, self._follow(at)[0])

    def tables(self, slot):
        at = self.place(slot)
        if at is None:
            return []
        first, n = self._follow(at)
        offsets = struct.unpack_from(f"<{n}I", self.data, first + 4)
        return [Table(self.data, first + 4 + 4 * i + off) for i, off in enumerate(offsets)]


class Repo:
    """The file "repo"."""

    def __init__(self, path):
        self.path = str(path)
        root = Table.root(flatbuffer(os.path.join(path, "repo"), REPO))
        assert root.scalar(0, "B") == 2
        self.snapshots = [(t.struct(0, 12), t.scalar(1, "i"), t.scalar(2, "Q"), t.text(3)) for t in root.tables(4)]
        assert [s[0] for s in self.snapshots] == sorted(s[0] for s in self.snapshots)
        self.branches = {t.text(0): t.scalar(1, "I") for t in root.tables(2)}
        assert list(self.branches) == sorted(self.branches, key=str.encode)
        assert "main" in self.branches
        self.updates = [(t.scalar(0, "B"), t.scalar(2, "Q"), t.text(3)) for t in root.tables(7)]
        times = [u[1] for u in self.updates]
        assert times == sorted(times, reverse=True) and len(set(times)) == len(times)
        assert self.updates[0][2] is None
        for *_, backup in self.updates[1:]:
            assert backup is None or os.path.exists(os.path.join(path, "overwritten", backup))

    def tip(self, branch="main"):
        return self.snapshots[self.branches[branch]][0]

    def history(self, branch="main"):
        """Ids from the tip back to the first."""
        at, ids = self.branches[branch], []
        while at >= 0:
            ids.append(self.snapshots[at][0])
            at = self.snapshots[at][1]
        return ids


class Node:
    def __init__(self, table):
        self.ident = table.struct(0, 8)
        self.path = table.text(1)
        self.document = table.bytes(2)
        self.is_array = table.scalar(3, "B") == 1
        if self.is_array:
            data = table.table(4)
            assert data.vector(0, "QQ") == []
            self.shape = [(t.scalar(0, "Q"), t.scalar(1, "I")) for t in data.tables(3)]
            self.dimensions = [t.text(0) for t in data.tables(1)]
            self.manifests = [(t.struct(0, 12), t.vector(1, "II")) for t in data.tables(2)]


class Snapshot:
    def __init__(self, path, ident):
        self.path = str(path)
        root = Table.root(flatbuffer(os.path.join(path, "snapshots", letters(ident)), SNAPSHOT))
        assert root.struct(0, 12) == ident and root.struct(1, 12) is None
        self.nodes = [Node(t) for t in root.tables(2)]
        paths = [n.path.encode() for n in self.nodes]
        assert paths == sorted(paths) and len(set(paths)) == len(paths)
        self.message = root.text(4)
        self.files = {t.struct(0, 12): (t.scalar(1, "Q"), t.scalar(2, "I")) for t in root.tables(7)}
        assert list(self.files) == sorted(self.files)
        used = {ident for n in self.nodes if n.is_array for ident, _ in n.manifests}
        assert used == set(self.files)
        log = Table.root(flatbuffer(os.path.join(path, "transactions", letters(ident)), LOG))
        assert log.struct(0, 12) == ident
        self.new_arrays = log.vector(2, "8s")
        self.updated = {t.struct(0, 8): [tuple(c.vector(0, "I")) for c in t.tables(1)] for t in log.tables(7)}
        for chunks in self.updated.values():
            assert chunks == sorted(chunks)

    def references(self, node):
        """Of an array: index -> bytes, (id, offset, length) or (url, offset, length, modified)."""
        found = {}
        for ident, extents in node.manifests:
            file = os.path.join(self.path, "manifests", letters(ident))
            assert os.path.getsize(file) == self.files[ident][0]
            root = Table.root(flatbuffer(file, MANIFEST))
            assert root.struct(0, 12) == ident
            arrays = root.tables(1)
            assert [a.struct(0, 8) for a in arrays] == sorted(a.struct(0, 8) for a in arrays)
            assert sum(len(a.tables(1)) for a in arrays) == self.files[ident][1]
            (array,) = [a for a in arrays if a.struct(0, 8) == node.ident]
            indices = []
            for ref in array.tables(1):
                index = tuple(ref.vector(0, "I"))
                assert len(index) == len(extents) and all(a <= i < b for i, (a, b) in zip(index, extents))
                indices.append(index)
                if ref.bytes(1) is not None:
                    found[index] = ref.bytes(1)
                elif ref.struct(4, 12) is not None:
                    found[index] = (ref.struct(4, 12), ref.scalar(2, "Q"), ref.scalar(3, "Q"))
                else:
                    found[index] = (ref.text(5), ref.scalar(2, "Q"), ref.scalar(3, "Q"), ref.scalar(7, "I"))
            assert indices == sorted(indices) and len(set(indices)) == len(indices)
        return found

    def store(self):
        """The snapshot as a store of Zarr: key -> bytes.  All that it refers to must be there."""
        out = {}
        for node in self.nodes:
            prefix = node.path.strip("/") + "/" if node.path != "/" else ""
            out[prefix + "zarr.json"] = node.document
            for index, ref in (self.references(node) if node.is_array else {}).items():
                key = prefix + "/".join(["c", *map(str, index)])
                out[key] = ref if isinstance(ref, bytes) else self.fetch(ref)
        return out

    def fetch(self, ref):
        place, offset, length = ref[:3]
        if isinstance(place, str):
            assert place.startswith("file:///")
            path = place[len("file://") :]
        else:
            path = os.path.join(self.path, "chunks", letters(place))
        with open(path, "rb") as f:
            f.seek(offset)
            data = f.read(length)
        assert len(data) == length > 0
        return data


def read(path, branch="main"):
    """The tip of a branch as a store of Zarr."""
    return Snapshot(path, Repo(path).tip(branch)).store()


def unpack(path, folder, branch="main"):
    """The tip of a branch as a folder, which every reader of Zarr opens."""
    for key, data in read(path, branch).items():
        os.makedirs(os.path.dirname(os.path.join(folder, key)), exist_ok=True)
        with open(os.path.join(folder, key), "wb") as f:
            f.write(data)
