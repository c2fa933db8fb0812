"""Files and stores as readers see them, by the rules of xarray and CF in numpy and cftime; and whether a store shows what its files do."""

import base64
import functools
import struct
from dataclasses import dataclass, field, replace
from fractions import Fraction

import cftime
import netCDF4
import numpy as np
import zarr

UNIT = {
    "days": 86_400_000_000,
    "hours": 3_600_000_000,
    "minutes": 60_000_000,
    "seconds": 1_000_000,
    "milliseconds": 1000,
    "microseconds": 1,
}
SPELLED = {"day": "days", "d": "days", "hour": "hours", "hr": "hours", "h": "hours", "minute": "minutes", "min": "minutes"}
SPELLED |= {"second": "seconds", "sec": "seconds", "s": "seconds", **{u: u for u in UNIT}}
# Since 1582 the same dates: days are counted alike.
CALENDARS = {"standard": "gregorian", "gregorian": "gregorian", "proleptic_gregorian": "gregorian"}
CODING = {"_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned"}
LAYOUT = {"_ARRAY_DIMENSIONS", "coordinates", "_ChunkSizes"}
EPOCH = cftime.datetime(1970, 1, 1, calendar="standard")


@dataclass
class Shown:
    """A variable as a reader sees it: of each element a number, (calendar, microseconds) or a text; None where it is missing."""

    dims: tuple
    values: np.ndarray  # of objects
    attrs: dict
    raw: np.ndarray


@dataclass(eq=False)
class Dataset:
    name: str
    vars: dict
    attrs: dict = field(default_factory=dict)


# ---- decoding ---------------------------------------------------------------------------------------


def is_time(attrs):
    units = attrs.get("units")
    return isinstance(units, str) and " since " in units and units.split()[0].lower() in SPELLED


@functools.cache
def time_axis(units, calendar):
    """(the calendar's family, microseconds of the date that is counted from, microseconds of the unit)."""
    origin = cftime.num2date(0, units, calendar, only_use_cftime_datetimes=True)
    us = cftime.date2num(origin, "microseconds since 1970-01-01", calendar)
    return CALENDARS.get(calendar, calendar), int(us), UNIT[SPELLED[units.split()[0].lower()]]


def fills(attrs, dtype):
    """The stored elements that say nothing."""
    return [x.item() for k in ("_FillValue", "missing_value") if k in attrs for x in np.ravel(attrs[k]) if x == x]


def float_type(dtype, scale, offset):
    """The type in which a reader unpacks numbers."""
    kinds = [np.asarray(x).dtype for x in (scale, offset) if x is not None]
    if len(kinds) == 2 and kinds[0] == kinds[1] and kinds[0] in (np.float32, np.float64):
        return np.dtype("f8") if dtype.kind in "iu" and dtype.itemsize == 4 else kinds[0]
    return np.dtype("f8") if offset is not None else kinds[0]


def texts(raw):
    if raw.dtype.kind == "S" and raw.ndim and raw.dtype.itemsize == 1:
        flat = [b"".join(row) for row in raw.reshape(-1, raw.shape[-1]).tolist()] if raw.shape[-1] else [b""] * int(np.prod(raw.shape[:-1]))
        shape = raw.shape[:-1]
    else:
        flat, shape = raw.ravel().tolist(), raw.shape
    flat = [t.decode("utf-8", "replace") if isinstance(t, bytes) else t for t in flat]
    out = np.empty(len(flat), object)
    out[:] = [t.rstrip("\0") for t in flat]
    return out.reshape(shape)


def decode(raw, attrs, axis=None):
    """Objects in the shape of RAW; AXIS has the units of bounds that have none."""
    raw = np.asarray(raw)
    if raw.dtype.kind in "SUOT":
        return texts(raw)
    data, nothing = raw, fills(attrs, raw.dtype)
    unsigned = attrs.get("_Unsigned")
    if unsigned == "true" and raw.dtype.kind == "i":
        data = raw.view(f"u{raw.dtype.itemsize}")
        nothing = [x % (1 << 8 * raw.dtype.itemsize) for x in nothing]
    elif unsigned == "false" and raw.dtype.kind == "u":
        data = raw.view(f"i{raw.dtype.itemsize}")
        nothing = [np.array(x, raw.dtype).view(data.dtype).item() for x in nothing]
    out = data.astype(object)
    missing = np.array([x != x or x in nothing for x in out.ravel()], bool).reshape(raw.shape)
    scale, offset = attrs.get("scale_factor"), attrs.get("add_offset")
    if scale is not None or offset is not None:
        number = data.astype(float_type(data.dtype, scale, offset))
        if scale is not None:
            number *= np.asarray(scale).item()
        if offset is not None:
            number += np.asarray(offset).item()
        out = number.astype(object)
    of = attrs if "units" in attrs or axis is None else {**axis, **attrs}
    if is_time(of):
        family, origin, unit = time_axis(of["units"], of.get("calendar", "standard").lower())
        instant = lambda x: (family, origin + round(Fraction(x) * unit))  # noqa: E731
    else:
        instant = None
    flat, gone = out.ravel(), missing.ravel()
    made = np.empty(flat.size, object)
    for i, x in enumerate(flat):
        x = x.item() if isinstance(x, np.generic) else x
        made[i] = None if gone[i] or x != x else instant(x) if instant else x
    return made.reshape(raw.shape)


def decode_all(found):
    """{name: Shown} of {name: (dims, raw, attributes)}; bounds of times are times."""
    axes = {a["bounds"]: {k: a[k] for k in ("units", "calendar") if k in a} for _, _, a in found.values() if is_time(a) and "bounds" in a}
    shown = {}
    for name, (dims, raw, attrs) in found.items():
        values = decode(raw, attrs, axes.get(name))
        shown[name] = Shown(tuple(dims)[: values.ndim], values, attrs, raw)
    return shown


def show_file(path):
    with netCDF4.Dataset(path) as nc:
        nc.set_auto_maskandscale(False)
        nc.set_auto_chartostring(False)
        found = {n: (v.dimensions, np.asarray(v[...]), {k: v.getncattr(k) for k in v.ncattrs()}) for n, v in nc.variables.items()}
        return Dataset(path.name, decode_all(found), {k: nc.getncattr(k) for k in nc.ncattrs()})


def fill_of(a, attrs):
    """The fill value that xarray takes from a store's array: an attribute in format 3, the array's own in format 2."""
    if a.metadata.zarr_format == 2:
        attrs.pop("_FillValue", None)
        fill = a.metadata.fill_value
        return None if fill is None or a.dtype.kind not in "iuf" else fill
    fill = attrs.pop("_FillValue", None)
    if isinstance(fill, str):
        return struct.unpack("<d", base64.standard_b64decode(fill))[0]
    return fill


def within(dataset, dim, first, last):
    """DATASET without the steps of the coordinate DIM before the instant FIRST and after LAST."""
    keep = [i for i, (_, us) in enumerate(dataset.vars[dim].values) if first <= us <= last]
    cut = lambda v, a: np.take(a, keep, axis=v.dims.index(dim)) if dim in v.dims else a  # noqa: E731
    vars = {n: replace(v, values=cut(v, v.values), raw=cut(v, v.raw)) for n, v in dataset.vars.items()}
    return replace(dataset, vars=vars)


def show_store(group):
    found = {}
    for name, a in group.members():
        attrs = dict(a.attrs)
        dims = attrs["_ARRAY_DIMENSIONS"] if a.metadata.zarr_format == 2 else a.metadata.dimension_names or ()
        fill = fill_of(a, attrs)
        if fill is not None:
            attrs["_FillValue"] = np.asarray(fill).astype(a.dtype)[()] if np.asarray(fill).dtype.kind == "f" else fill
        for k in ("missing_value", "scale_factor", "add_offset"):
            if attrs.get(k) == "NaN":
                attrs[k] = np.nan
        found[name] = (dims, np.asarray(a[...]), attrs)
    return Dataset("store", decode_all(found), dict(group.attrs))


def open_store(path):
    if str(path).endswith(".json"):
        return zarr.open_group("reference://", mode="r", zarr_format=2, storage_options={"fo": str(path), "remote_protocol": "file"})
    return zarr.open_group(str(path), mode="r")


# ---- comparing --------------------------------------------------------------------------------------


def close(a, b, within):
    """Whether two elements are the same to a reader, numbers WITHIN of each other."""
    if a is None or b is None:
        return a is b
    if a == b:
        return True
    return within > 0 and isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a - b) <= within


def first_difference(want, got, within=0.0, where=None):
    """None, or a text; only of elements that WHERE has."""
    if want.shape != got.shape:
        return f"shape {want.shape} became {got.shape}"
    for at in np.ndindex(want.shape):
        if (where is None or where[at]) and not close(want[at], got[at], within):
            return f"element {'/'.join(map(str, at)) or 'scalar'}: {want[at]!r} became {got[at]!r}"
    return None


def steps(dataset, axis):
    """The elements of the coordinate AXIS, one of a scalar; none where it is absent."""
    v = dataset.vars.get(axis)
    return [] if v is None else list(v.values.ravel())


def in_order(keys):
    keys = [k for k in keys if k is not None]
    return keys == sorted(keys) or keys == sorted(keys, reverse=True)


def single_packing(v):
    return any(np.asarray(v.attrs[k]).dtype == np.float32 for k in ("scale_factor", "add_offset") if k in v.attrs)


def plain(value):
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def takes_first(name, options):
    return options.get("static") in ("first", f"{name}:first")


class Judge:
    """Holds a store against its files; AXES has for each joined dimension of the store the coordinate of the files."""

    def __init__(self, files, store, axes, options, nbase=None):
        self.files, self.store, self.axes, self.options = files, store, axes, options
        self.added = files[nbase:] if nbase else []  # to a store, which keeps its attributes
        self.problems, self.at = [], {}

    def say(self, text):
        self.problems.append(text)

    def judge(self):
        for dim, axis in self.axes.items():
            if dim not in self.store.vars:
                self.say(f"{dim}: the store has no such coordinate")
                return self.problems
            self.place_steps(dim, axis)
        renamed = {axis: dim for dim, axis in self.axes.items()}
        names = {renamed.get(n, n) for f in self.files for n in f.vars}
        for name in sorted(names ^ set(self.store.vars)):
            self.say(f"{name}: {'not in any file' if name in self.store.vars else 'lost'}")
        for name in sorted(names & set(self.store.vars) - set(self.axes)):
            self.compare(name, self.store.vars[name])
        self.compare_attributes()
        return self.problems

    def place_steps(self, dim, axis):
        """Where in the store the steps of files are."""
        got, at = list(self.store.vars[dim].values), {}
        for i, key in enumerate(got):
            if key in at:
                self.say(f"{dim}: {key!r} is there twice")
            at[key] = i
        self.at[dim] = at
        want = {key for f in self.files for key in steps(f, axis)}
        for key in sorted(want - set(got), key=repr)[:2]:
            self.say(f"{dim}: {key!r} of a file is not in the store")
        added = set(got) - want if self.options.get("gaps") != "fill" or None in got else set()
        for key in sorted(added, key=repr)[:2]:
            self.say(f"{dim}: {key!r} of the store is in no file")
        if all(in_order(steps(f, axis)) for f in self.files) and not in_order(got):
            self.say(f"{dim}: out of order: {got!r}")

    def by_name(self, files):
        """As the options `first` and `last` mean it; a store that grows comes before all that is added to it."""
        return sorted(files, key=lambda f: (f in self.added, f.name))

    def rule(self, name, made):
        """Which file's elements count where several have one: `first`, `last`, or None, all of them."""
        if name in made.dims:
            return None
        if all(d in made.dims for d in self.axes):
            return self.options.get("overlap")
        return "first" if takes_first(name, self.options) else None

    def compare(self, name, made):
        having = self.by_name(f for f in self.files if name in f.vars)
        rule = self.rule(name, made)
        shown = np.zeros(made.values.shape, bool)
        for f in reversed(having) if rule == "last" else having:
            v = f.vars[name]
            if any(d in self.at and d not in made.dims for d in v.dims):
                self.say(f"{name}: no longer along all of its dimensions")
                return
            place = np.ix_(*self.place(f, made)) or ...
            wrong = first_difference(self.spread(v, made, place), made.values[place], self.tolerance(name, v, made), ~shown[place] if rule else None)
            if wrong:
                self.say(f"{name}: {f.name}: {wrong}")
                return
            shown[place] = True
        # Steps that are added get times, and so bounds.
        if not shown.all() and not self.is_nothing(made, ~shown) and not (self.options.get("gaps") == "fill" and name == "time_bnds"):
            self.say(f"{name}: no file has it, and the store {made.values[~shown].tolist()!r}")

    def place(self, f, made):
        """Of each dimension of the store's array the indices that F has."""
        whole = zip(made.dims, made.values.shape)
        return [[self.at[d][k] for k in steps(f, self.axes[d]) if k in self.at[d]] if d in self.at else list(range(n)) for d, n in whole]

    def spread(self, v, made, place):
        """The file's elements in the order of the store's dimensions, repeated along those that it lacks there."""
        want, of = v.values, v.dims
        if not set(of) <= set(made.dims):
            return want
        want = want.transpose([of.index(d) for d in made.dims if d in of])
        for k, d in enumerate(made.dims):
            if d not in of:
                want = np.repeat(np.expand_dims(want, k), place[k].size, axis=k)
        return want

    def tolerance(self, name, v, made):
        """Of coordinates what the option says; of float32 attributes, which become JSON numbers, some bits."""
        coordinate = name in made.dims or name.endswith("_bnds")
        given = float(self.options.get("tolerance", 0)) if coordinate else 0.0
        return max(given, 3e-7 * 128 if single_packing(v) else 0.0)

    def is_nothing(self, made, where):
        if all(x is None or x == "" for x in made.values[where]):
            return True
        default = netCDF4.default_fillvals.get(made.raw.dtype.str[1:])
        return "_FillValue" not in made.attrs and default is not None and bool(np.all(made.raw[where] == np.asarray(default, made.raw.dtype)))

    def compare_attributes(self):
        self.same_attributes("global", self.store.attrs, [f.attrs for f in self.files], set())
        for name, made in self.store.vars.items():
            source = self.axes.get(name, name)
            of = [f.vars[source].attrs for f in self.files if source in f.vars]
            time = {"units", "calendar"} if is_time(made.attrs) or any(map(is_time, of)) else set()
            self.same_attributes(name, made.attrs, of, CODING | LAYOUT | time)

    def same_attributes(self, name, made, of, beside):
        for k in sorted({k for a in (made, *of) for k in a} - beside):
            said = [plain(a.get(k)) for a in of]
            got = plain(made.get(k))
            if got is None and all(s == said[0] for s in said):
                self.say(f"{name}: attribute {k} is lost")
            elif got is not None and got not in said:
                self.say(f"{name}: attribute {k}: {said!r} became {got!r}")
            elif got is not None and any(s != got for s in said) and self.options.get("attrs") != "first" and not self.added:
                self.say(f"{name}: attribute {k} differs, {said!r}, and the store says {got!r}")


# ---- what may be refused ----------------------------------------------------------------------------


def disagreements(files, axes, options):
    """Why files may be refused: each thing in which they mean something else, or that an option must decide."""
    found = set()
    for axis in axes.values():
        keys = [k for f in files for k in steps(f, axis)]
        if None in keys:
            found.add("a step says nothing")
        if len({type(k) is tuple and k[0] for k in keys if k is not None}) > 1:
            found.add("calendars differ")
    for name in {n for f in files for n in f.vars}:
        vs = [f.vars[name] for f in files if name in f.vars]
        if len(vs) < len(files) and "missing" not in options:
            found.add("a variable is missing")
        if len({tuple(n for n, d in zip(v.values.shape, v.dims) if d not in axes.values()) for v in vs}) > 1:
            found.add("lengths differ")
        if len({repr([plain(v.attrs.get(k)) for k in ("scale_factor", "add_offset", "_Unsigned")]) for v in vs}) > 1 and "packing" not in options:
            found.add("packings differ")
        if not any(is_time(v.attrs) for v in vs) and len({v.attrs.get("units") for v in vs}) > 1:
            found.add("units differ")
        found |= clash(name, files, axes, options)
    return found


def clash(name, files, axes, options):
    """Whether two files show different elements at one place, and no option decides."""
    given = name in options.get("promote", "").split(",") or "new-dim" in options
    seen = {}
    for f in files:
        v = f.vars.get(name)
        if v is None:
            continue
        coordinate = name in v.dims
        beside = [a for a in axes.values() if a not in v.dims and given and not coordinate]
        along = [steps(f, d) if d in axes.values() else None for d in v.dims]
        whole = len(beside) + sum(a is not None for a in along) == len(axes)
        decided = "overlap" in options if whole else takes_first(name, options) and not coordinate
        if decided:
            return set()
        for step in np.ndindex(*(len(steps(f, a)) for a in beside)):
            there = tuple(steps(f, a)[i] for a, i in zip(beside, step))
            for at in np.ndindex(v.values.shape):
                key = there + tuple(keys[i] if keys is not None else i for keys, i in zip(along, at))
                within = float(options.get("tolerance", 0)) if coordinate or name.endswith("_bnds") else 0.0
                if not close(seen.setdefault(key, v.values[at]), v.values[at], within):
                    return {"steps differ" if whole else "static values differ"}
    return set()
