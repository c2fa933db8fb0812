"""Archives at random: units, epochs, packing, fill values, masks, lengths and types vary together from file to file.

A case follows from its seed alone.  What its variables ought to mean is drawn first, then each file encodes it in its
own way; now and then files store the same numbers under different attributes, or mean different things.
"""

from dataclasses import dataclass, field, replace

import cftime
import numpy as np

from . import files as F
from .meaning_reference import UNIT, time_axis
from .meaning_styles import EPOCHS, FILLS, RANGE, Style, Styles

STEPS = {"days": 1, "hours": 1, "minutes": 10, "seconds": 30}
TRAPS = ("static", "static", "stored", "stored", "stored", "joined", "joined", "text", "axis", "step", "length", "length", "lacks", "units")
CLASSIC = ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF4_CLASSIC")


@dataclass
class Case:
    seed: int
    files: list
    axes: dict  # of each joined dimension, the coordinate in the files
    options: dict = field(default_factory=dict)
    mode: str = "one"
    zarr: list = field(default_factory=list)
    within: tuple = None  # the first and last instant that are taken, in microseconds

    def command(self, layout=True):
        words = [x for k, v in self.options.items() for x in (f"--{k}", str(v))]
        return [*words, *self.zarr] if layout else words


class Maker(Styles):
    def __init__(self, seed):
        super().__init__(seed)
        self.options = {}

    def spring(self, trap, p=0.4):
        """Whether the one thing that files of this case really disagree on is TRAP, and here; it is used up then."""
        if self.trap != trap or not self.chance(p):
            return False
        self.trap = None
        return True

    def encoded(self, dims, truth, s, time):
        """A Var that means TRUTH, by style S if that can hold it, else by one like it."""
        if not self.in_range(s):
            s = self.with_fill(s)
        for tried in (s, replace(s, fill=-999 if RANGE[s.dtype] > 999 and s.dtype[0] != "u" else s.fill)):
            raw = tried.store(truth)
            if raw is not None:
                return self.var(dims, raw, tried)
        safe = Style("f8", fill=-1e9 if s.fill is not None else None, units=s.units, calendar=s.calendar)
        raw = safe.store(truth)
        if raw is None:
            safe = replace(safe, units="seconds since 2000-01-01")
            raw = safe.store(truth)
        return self.var(dims, raw, safe)

    def var(self, dims, raw, s):
        fill = None if s.fill is None else np.dtype(s.dtype).type(s.fill)
        return F.Var(tuple(dims), raw, s.attrs(), fill=fill, chunks=None)

    def lists(self, truth):
        out = np.empty(np.shape(truth), object)
        out[...] = truth
        return out

    def numbers(self, shape, missing=0.15):
        """Even numbers, some of them missing."""
        n = int(np.prod(shape))
        values = [None if self.chance(missing) else int(x) for x in 2 * self.r.integers(-3, 30, n)]
        return self.lists(np.array(values, object).reshape(shape))

    def dates(self, shape, missing=0.15):
        n = int(np.prod(shape))
        day = UNIT["days"]
        values = [None if self.chance(missing) else self.start + int(x) * day // 2 for x in self.r.integers(-20, 60, n)]
        return self.lists(np.array(values, object).reshape(shape))

    def static(self, name, dims, shape, time=False, differs=0.0, attrs=None):
        """In all files the same, or not; or the same stored numbers under what drifts."""
        draw = self.dates if time else self.numbers
        truth = draw(shape, 0.1 if shape else 0.05)
        if name == "lat":
            truth = self.lists(np.array(range(0, 10 * shape[0], 10), object))
        styles = self.styles(truth, time, 0.3)
        other = draw(shape) if self.chance(differs) or self.spring("static") else None
        odd = int(self.r.integers(self.nfiles))
        made = [self.encoded(dims, other if other is not None and i == odd else truth, s, time) for i, s in enumerate(styles)]
        if self.spring("stored"):
            made = self.same_stored(made, time)
        for f, v in zip(self.files, made):
            v.attrs.update(attrs or {})
            f.vars[name] = v
        return other is not None

    def same_stored(self, made, time):
        """All store what the first does, under attributes of their own."""
        first = made[0]
        out = []
        for v in made:
            s = Style(first.data.dtype.str[1:], units=v.attrs.get("units"), calendar=v.attrs.get("calendar"))
            if self.chance(0.5):
                s = self.with_fill(s)
            if self.chance(0.3) and not time:
                s = self.with_packing(s) if s.dtype[0] == "i" and s.dtype != "i8" else s
            out.append(self.var(first.dims, first.data.copy(), s))
        return out

    def joined(self, name, dims, time=False, attrs=None, differs=False):
        """Along the joined dimension, of the same step the same unless DIFFERS."""
        inner = [self.length[d] for d in dims[1:]]
        draw = self.dates if time else self.numbers
        whole = draw([self.nsteps, *inner])
        made = []
        for i, (s, (a, b)) in enumerate(zip(self.styles(whole, time, 0.3), self.ranges)):
            truth = whole[a:b].copy()
            if not time and self.chance(0.05):
                made.append(self.rough(dims, truth.shape))
                continue
            if differs and b > a and i:
                truth[0] = draw(inner) if inner else draw([1])[0]
            made.append(self.encoded(dims, truth, s, time))
        if self.spring("joined"):
            k = int(self.r.integers(self.nfiles))
            made[k] = self.same_stored([made[k]], time)[0]
        for f, v in zip(self.files, made):
            v.attrs.update(attrs or {})
            f.vars[name] = v

    def rough(self, dims, shape):
        """Numbers packed by factors that are no powers of two, or integers that no double holds."""
        if self.unpacks:
            kind = self.pick((np.float32, np.float64))
            s = Style("i2", fill=-32767, scale=kind(self.pick((0.1, 0.01, 1e-3))), offset=kind(self.pick((273.15, 0.0, 0.3))))
            return self.var(dims, self.r.integers(-300, 300, shape).astype("i2"), s)
        s = Style("i4" if self.classic else "i8", fill=self.pick((None, -1)))
        return self.var(dims, self.r.integers(0, 2**30 if self.classic else 2**62, shape).astype(s.dtype), s)

    def turn(self, name):
        """In one file the order of dimensions is another."""
        f = self.pick(self.files)
        v = f.vars.get(name)
        if v is None or f.unlimited or self.classic or not v.data.size or not self.chance(0.15):
            return
        v.dims, v.data = v.dims[::-1], v.data.T

    def text(self, name, dims):
        """Characters, in files of different lengths; in one of them it may be another."""
        joined = dims == ("time",)
        strings = not self.classic and self.chance(0.4)
        words = [self.pick(("alpha", "be", "gamma-ray", "")) for _ in range(self.nsteps if joined else 1)]
        odd = int(self.r.integers(self.nfiles)) if not joined and self.spring("text", 0.9) else None
        for i, (f, (a, b)) in enumerate(zip(self.files, self.ranges)):
            length = 9 if self.mode == "append" else self.pick((9, 9, 9, 12))
            these = words[a:b] if joined else words if i != odd else ["other"]
            if strings:
                whole = np.array(these, object)
                f.vars[name] = F.Var(dims, whole if joined else whole[0:1].reshape(()))
                continue
            rows = F.characters(these, length) if these else np.zeros((0, length), "S1")
            f.vars[name] = F.Var((*dims, f"{name}_len"), rows if joined else rows[0])

    # ---- a case -------------------------------------------------------------------------------------

    def make(self):
        self.mode = {7: "append", 8: "parts", 9: "virtual"}.get(self.seed % 10, "one")
        self.nfiles = int(self.r.integers(2, 6))
        self.tiled = self.chance(0.1) and self.mode != "append"
        if self.tiled:
            self.nfiles = 4
        self.trap = self.pick(TRAPS) if self.chance(0.25 if self.mode == "append" else 0.4) else None
        self.unpacks = self.chance(0.5)  # and so packings may differ
        format = self.pick(("NETCDF4",) * 6 + CLASSIC)
        self.classic = format != "NETCDF4"
        self.calendar = self.pick(("standard",) * 5 + ("noleap", "360_day"))
        step = self.pick(list(STEPS))
        self.step = STEPS[step] * UNIT[step]
        family, origin, _ = time_axis(f"days since {self.pick(('2000-01-01', '2000-02-28', '1999-12-30 12:00:00'))}", self.calendar)
        self.start = origin
        new_dim = self.chance(0.12) and self.mode != "append" and not self.tiled
        self.lay_steps(new_dim)
        names = [f"f{i}.nc" for i in range(self.nfiles)]
        if self.chance(0.2):
            self.r.shuffle(names)
        unlimited = self.pick(((), ("time",))) if not new_dim else ()
        self.files = [F.File(n, {}, {"title": "at random"}, unlimited, format) for n in names]
        self.length = {"lat": int(self.r.integers(2 if self.tiled else 1, 4)), "obs": int(self.r.integers(1, 4)), "bnds": 2}
        axes = self.axis(new_dim)
        along = () if new_dim else ("time",)
        self.fields(along, new_dim)
        if self.tiled:
            self.cut()
            axes["lat"] = "lat"
        if not self.classic and self.chance(0.25):
            for v in (v for f in self.files for v in f.vars.values() if v.dims and v.data.dtype.kind != "O"):
                v.deflate = 1
        self.turn("o")
        self.odd_length()
        self.lacking()
        self.file_attributes()
        self.choose(new_dim and next(iter(axes)))
        return Case(self.seed, self.files, axes, self.options, self.mode, self.layout(), self.subset(new_dim))

    def subset(self, new_dim):
        """Steps between two dates, both of them taken."""
        if new_dim or self.mode not in ("one", "parts") or "gaps" in self.options or not self.chance(0.08):
            return None
        known = [x for a, b in self.ranges for x in self.instants[a:b]]
        if not known:
            return None
        within = tuple(sorted((self.pick(known), self.pick(known))))
        units = "microseconds since 1970-01-01"
        dates = [cftime.num2date(x, units, self.calendar).strftime("%Y-%m-%dT%H:%M:%S") for x in within]
        self.options["subset"] = f"time={dates[0]}..{dates[1]}"
        return within

    def cut(self):
        """Every other file has the north, its neighbour the south."""
        k = int(self.r.integers(1, self.length["lat"]))
        for i, f in enumerate(self.files):
            for v in f.vars.values():
                if "lat" in v.dims:
                    v.data = np.split(v.data, [k], axis=v.dims.index("lat"))[i % 2]

    def lay_steps(self, new_dim):
        """Which steps of the whole each file has."""
        self.ranges, at, self.overlapped = [], 0, False
        for i in range(self.nfiles // 2 if self.tiled else self.nfiles):
            n = 1 if new_dim else int(self.r.integers(1, 4)) if self.chance(0.93) else 0
            back = 0
            if i and not new_dim and n and self.ranges[-1][1] > self.ranges[-1][0] and self.chance(0.15) and not self.tiled:
                back, self.overlapped = 1, True
            if self.chance(0.1):
                at += 1
            self.ranges.append((at - back, at - back + n + (1 if back else 0)))
            at = self.ranges[-1][1]
        if self.tiled:
            self.ranges = [r for r in self.ranges for _ in range(2)]
        self.nsteps = at
        self.instants = [self.start + i * self.step for i in range(at)]

    def axis(self, new_dim):
        instants = self.lists(np.array(self.instants, object))
        styles = self.styles(instants, time=True, drifts=0.6, packs=0.3 if self.mode == "append" else 0.12)
        bounds = not new_dim and self.chance(0.35)
        own = self.chance(0.3)
        dims = () if new_dim else ("time",)
        name = "t" if new_dim else "time"
        edge = self.with_fill(Style("f8", units="days since 2000-01-01"))
        raw, lost = self.spring("axis", 1), self.spring("step", 1)
        for f, s, (a, b) in zip(self.files, styles, self.ranges):
            truth = instants[a:b] if not new_dim else instants[a : a + 1].reshape(())
            v = self.encoded(dims, truth, s, True)
            if raw and f is not self.files[0] and v.data.shape == self.files[0].vars[name].data.shape:
                first = self.files[0].vars[name]
                v = F.Var(dims, first.data.copy(), {**first.attrs, "units": v.attrs["units"]}, first.fill)
            if lost and v.data.size and self.chance(0.5):
                # A step that says nothing.
                v.attrs["missing_value"] = v.data.ravel()[-1]
            f.vars[name] = v
            if bounds:
                v.attrs["bounds"] = "time_bnds"
                edges = np.array([[x, x + self.step] for x in truth], object).reshape(-1, 2)
                like = replace(edge if self.chance(0.8) else self.with_fill(edge), units=v.attrs["units"], calendar=v.attrs.get("calendar"))
                made = self.encoded(("time", "bnds"), self.lists(edges), self.time_style(0.1) if own else like, True)
                if not own and made.attrs["units"] == v.attrs["units"]:
                    made.attrs.pop("units"), made.attrs.pop("calendar", None)
                f.vars["time_bnds"] = made
        return {"time" if self.chance(0.5) else name: name}

    def fields(self, along, new_dim):
        differs = self.overlapped and self.chance(0.5)
        if self.chance(0.6) or self.tiled:
            self.latitudes()
        if not new_dim:
            self.joined("t2m", ("time", "lat"), attrs={"units": "K", "long_name": "warmth"}, differs=differs)
            if self.chance(0.5):
                self.joined("q", ("time",), attrs={"units": "1"}, differs=differs and self.chance(0.5))
            if self.chance(0.4):
                self.joined("valid", self.pick((("time",), ("time", "lat"))), time=True)
            if self.chance(0.2):
                self.text("note", ("time",))
            if self.chance(0.35):
                self.joined("o", ("time", "obs"))
        else:
            self.static("u", ("lat",), (self.length["lat"],), differs=0.6, attrs={"units": "m s-1"})
            if self.chance(0.5):
                self.static("launch", ("lat",), (self.length["lat"],), time=True, differs=0.6)
        self.different = [n for n, p in (("ref", 0.45), ("height", 0.35)) if self.chance(p) and self.static(n, (), (), n == "ref", 0.0 if self.mode == "append" else 0.15)]
        if self.chance(0.25):
            self.static("born", ("lat",), (self.length["lat"],), time=True)
        if self.chance(0.35):
            self.static("orog", ("lat",), (self.length["lat"],), attrs={"units": "m"})
        if self.chance(0.2):
            self.static("site", ("obs",), (self.length["obs"],))
        if self.chance(0.2):
            self.text("name", ())

    def latitudes(self):
        self.static("lat", ("lat",), (self.length["lat"],), attrs={"units": "degrees_north"})
        vs = [f.vars["lat"] for f in self.files]
        if self.tiled or not self.chance(0.15) or any(v.data.dtype.kind != "f" or "scale_factor" in v.attrs or "add_offset" in v.attrs for v in vs):
            return
        for f, v in zip(self.files, vs):
            v.attrs["bounds"] = "lat_bnds"
            v.data = v.data + self.pick((0, 1e-6))
            f.vars["lat_bnds"] = F.Var(("lat", "bnds"), np.stack([v.data - 5, v.data + 5 + self.pick((0, 1e-6))], axis=-1))
        if self.chance(0.8):
            self.options["tolerance"] = 1e-3

    def odd_length(self):
        """One file has another length of a dimension that is not joined, mostly none."""
        if not self.spring("length", 1):
            return
        k, d = int(self.r.integers(self.nfiles)), self.pick(("obs", "lat"))
        keep = 0 if self.chance(0.75) else self.length[d] - 1
        if self.classic and keep == 0:
            # There only records may be none, and they come first.
            if d == "lat" or self.tiled or "o" in self.files[0].vars or any(a == b for a, b in self.ranges):
                return
            for f in self.files:
                f.unlimited = ("obs",)
        for v in self.files[k].vars.values():
            if d in v.dims:
                v.data = np.take(v.data, range(keep), axis=v.dims.index(d))

    def lacking(self):
        names = [n for n in ("q", "valid", "o", "orog", "note", "height") if n in self.files[0].vars]
        self.lacks = bool(names) and (self.spring("lacks", 1) or self.chance(0.04))
        if self.lacks:
            del self.files[int(self.r.integers(self.nfiles))].vars[self.pick(names)]

    def file_attributes(self):
        for f in self.files:
            if self.chance(0.3):
                f.attrs["history"] = self.pick(("one", "two"))
            for v in f.vars.values():
                if self.chance(0.03):
                    v.attrs["comment"] = self.pick(("here", "there"))
        if self.spring("units", 1) and "t2m" in self.files[-1].vars:
            self.files[-1].vars["t2m"].attrs["units"] = "degC"

    def choose(self, new_dim):
        """Options, mostly those that the files need."""
        o, files = self.options, self.files
        if self.unpacks:
            o["packing"] = "unpack"
        if new_dim:
            o["new-dim"] = f"{new_dim}=@t"
        if self.lacks and self.chance(0.85):
            o["missing"] = "fill"
        if self.overlapped and self.chance(0.75):
            o["overlap"] = self.pick(("first", "last"))
        scalars = [n for n in ("ref", "height") if all(n in f.vars for f in files)]
        if scalars and not new_dim and not self.tiled and self.mode != "append" and self.chance(0.8 if self.different else 0.1):
            o["promote"] = ",".join(scalars)
        if self.chance(0.12):
            o["static"] = self.pick(("first", *(f"{n}:first" for n in ("ref", "height", "orog") if n in files[0].vars)))
        if self.mode in ("one", "parts") and self.chance(0.05) and "t2m" in files[0].vars:
            o["fill-value"] = f"t2m:{self.pick(FILLS[:5])}"
        if self.mode in ("one", "parts") and self.chance(0.06):
            o["unpack"] = "all"
        if self.mode != "append" and self.chance(0.06) and "t2m" in files[0].vars:
            o["dtype"] = "t2m:float64"
        if self.chance(0.05) and not self.tiled:
            o["gaps"] = "fill"
        if self.chance(0.1) and self.mode != "append":
            o["char"] = "join"
        if self.chance(0.15):
            # Mostly one that counts the steps.
            fine = [u for u, us in UNIT.items() if self.step % us == 0 and us > 1000]
            o["time-units"] = f"{self.pick(fine if self.chance(0.8) else list(UNIT)[:4])} since {self.pick(EPOCHS[:4])}"
        if self.chance(0.08):
            o["attrs"] = "first"

    def layout(self):
        # The option's fill value is the store's; in format 2 readers mask by it, whatever the data are.
        words = ["--zarr-format", "2"] if self.chance(0.3) and self.mode != "virtual" and "fill-value" not in self.options else []
        if self.chance(0.4) and self.mode != "virtual" and "new-dim" not in self.options:
            words += self.pick((["--chunks", "time=2"], ["--chunks", "time=1", *([] if words else ["--shards", "time=2"])], ["--codec", "keep"]))
        return words


def case(seed):
    return Maker(seed).make()
