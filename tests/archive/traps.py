"""Every row of the table of disagreements, planted alone in one file of an archive.

A trap changes file K of a list; it says what the survey must find, which options decide it,
and what the store then holds: `mend` turns the files into ones that simply join.
"""

from dataclasses import dataclass

import numpy as np

from . import files as F

DECISION, WARNING, NOTE = "decision", "warning", "note"


@dataclass
class Trap:
    plant: object  # (files, k) -> files
    kind: str  # of the finding
    weight: str
    option: str = None  # what the finding proposes
    decide: tuple = ()  # the options that are tried; empty: it converts as it is, or never
    mend: object = None  # (files, k) -> files, after planting; None: there is no way
    refuses: tuple = ()  # options beside the default under which it is a decision
    moves: bool = False  # the findings' file is a neighbour's, or the gap's edge
    survey: bool = True  # seen by the survey; otherwise while data move
    variable: str = None
    or_kind: str = None


def edit(change):
    """A trap's `plant` that changes one file."""

    def plant(files, k):
        files = list(files)
        files[k] = F.changed(files[k])
        change(files[k], k)
        return files

    return plant


def each(change):
    """A `mend` that changes all files."""

    def mend(files, k):
        files = [F.changed(f) for f in files]
        for f in files:
            change(f)
        return files

    return mend


def as_it_is(files, k):
    return files


# ---- time -------------------------------------------------------------------------------------------


def other_time(**kw):
    def change(f, k):
        first = round(float(f.vars["time"].data[0]) * 2)
        f.vars.update(F.time_vars(first, f.steps(), **kw))

    return edit(change)


def hours(f, k):
    """Times that a double of days cannot hold: the steps lie a third of an hour late, and so does the store's."""
    for name in ("time", "time_bnds"):
        f.vars[name].data = f.vars[name].data * 24 + 1 / 3
    f.vars["time"].attrs["units"] = "hours since 2000-01-01"


def first_proleptic(f, k):
    f.vars["time"].attrs["calendar"] = "proleptic_gregorian"


# ---- values -----------------------------------------------------------------------------------------


def degrees(f, k):
    f.vars["tas"].data = f.vars["tas"].data - np.float32(273.15)
    f.vars["tas"].attrs["units"] = "degC"


def repacked(f, k):
    f.vars["pr"].attrs["scale_factor"] = 0.25


def unpacked(f):
    v = f.vars["pr"]
    missing = v.data == v.fill
    values = v.data * v.attrs.pop("scale_factor") + v.attrs.pop("add_offset")
    # xarray decodes int16 with a float64 scale to float64.
    v.data = np.where(missing, np.nan, values).astype("f8")


def doubled(f, k):
    f.vars["tas"].data = f.vars["tas"].data.astype("f8") + 1e-9
    f.vars["tas"].fill = np.float64(np.float32(1e20))


def widened(name, dtype):
    def change(f):
        f.vars[name].data = f.vars[name].data.astype(dtype)

    return each(change)


def longer_flags(f, k):
    f.vars["flag"].data = f.vars["flag"].data.astype("i4") * 1000
    f.vars["flag"].attrs["flag_values"] = f.vars["flag"].attrs["flag_values"].astype("i4")


def noted(length, name="note_length"):
    """Texts of LENGTH characters, all of them used."""

    def change(f, k):
        v = f.vars["note"]
        v.data, v.dims = F.characters(["z" * length] * f.steps(), length), ("time", name)

    return edit(change)


def all_noted(length, name="note_length"):
    def change(f):
        v = f.vars["note"]
        v.data, v.dims = F.padded(v.data, length), ("time", name)

    return each(change)


def encoded(f, k):
    f.vars["note"].attrs["_Encoding"] = "latin-1"


def other_fill(f, k):
    v = f.vars["pr"]
    v.data = np.where(v.data == v.fill, np.int16(-9999), v.data)
    v.fill = np.int16(-9999)


def fill_of(value):
    """All files' own fill values are VALUE, as the first file's becomes the store's."""

    def mend(files, k):
        files = [F.changed(f) for f in files]
        want = files[0].vars["pr"].fill if value is None else value
        for f in files:
            v = f.vars["pr"]
            v.data = np.where(v.data == v.fill, np.int16(want), v.data)
        return files

    return mend


def lacks(f, k):
    del f.vars["pr"]


def filled(files, k):
    files = [F.changed(f) for f in files]
    like = files[1 if k == 0 else 0].vars["pr"]
    v = F.Var(like.dims, np.full((files[k].steps(), 4, 6), like.fill, "i2"), like.attrs, like.fill)
    files[k].vars["pr"] = v
    return files




def moved_ground(f, k):
    f.vars["orog"].data = f.vars["orog"].data.copy()
    f.vars["orog"].data[1, 2] += 8


def other_height(f, k):
    f.vars["height"].data = np.array(10.0)


def first_of(name):
    def mend(files, k):
        files = [F.changed(f) for f in files]
        for f in files[1:]:
            f.vars[name].data = files[0].vars[name].data
        return files

    return mend


def promoted(f):
    v = f.vars["height"]
    f.vars["height"] = F.Var(("time",), np.full(f.steps(), v.data), v.attrs)


def shaken(f, k):
    f.vars["lat"].data = f.vars["lat"].data + 1e-7


def other_grid(f, k):
    f.vars["lat"].data = f.vars["lat"].data + 5.0


def upside_down(f, k):
    for name, axis in (("lat", 0), ("orog", 0), ("tas", 1), ("pr", 1)):
        f.vars[name].data = np.flip(f.vars[name].data, axis)


def turned(f, k):
    for name in ("tas", "pr"):
        v = f.vars[name]
        v.dims, v.data, v.chunks = ("time", "lon", "lat"), v.data.transpose(0, 2, 1), None


def turned_like_first(files, k):
    files = [F.changed(f) for f in files]
    first = files[0].vars["tas"].dims
    for f in files:
        for name in ("tas", "pr"):
            v = f.vars[name]
            if v.dims != first:
                v.dims, v.data = first, v.data.transpose(0, 2, 1)
    return files


def narrower(f, k):
    """One longitude is left out."""
    for v in f.vars.values():
        if "lon" in v.dims:
            v.data, v.chunks = np.delete(v.data, 5, axis=v.dims.index("lon")), None


# ---- steps ------------------------------------------------------------------------------------------


def neighbour(files, k):
    """The file that K overlaps."""
    return k - 1 if k > 0 else 1


def overlapping(differs):
    """File K has one step more, which its neighbour has too."""

    def plant(files, k):
        files = list(files)
        first = 2 * k - 1 if k > 0 else 0
        name = files[k].name
        files[k] = F.half_days(k, steps=3, first=first)
        files[k].name = name
        if differs:
            step = 0 if k > 0 else 2
            v = files[k].vars["tas"]
            v.data = v.data.copy()
            v.data[step, 2, 3] += 1
        return files

    return plant


def without_step(files, j, step):
    files[j] = F.changed(files[j])
    for v in files[j].vars.values():
        if v.dims and v.dims[0] == "time":
            v.data = np.delete(v.data, step, axis=0)


def overlap_keeps(which):
    """FIRST and LAST are by file name; files are in that order."""

    def mend(files, k):
        files = list(files)
        j = neighbour(files, k)
        early, late = min(j, k), max(j, k)
        loser = late if which == "first" else early
        # The shared step is the last of the earlier file and the first of the later one.
        without_step(files, loser, -1 if loser == early else 0)
        return files

    return mend


def gap(files, k):
    """A file is gone; at either end nothing is missing, so its neighbour goes."""
    files = list(files)
    del files[k if 0 < k < len(files) - 1 else 1 if k == 0 else k - 1]
    return files


def gap_filled(files, k):
    j = next(i for i in range(1, len(files)) if files[i].vars["time"].data[0] - files[i - 1].vars["time"].data[-1] > 0.6)
    hole = F.changed(F.half_days(0, first=round(float(files[j - 1].vars["time"].data[-1]) * 2) + 1))
    for name in ("tas", "pr"):
        v = hole.vars[name]
        v.data = np.full_like(v.data, v.fill)
    hole.vars["flag"].data = np.full_like(hole.vars["flag"].data, -127)
    hole.vars["note"].data = np.full_like(hole.vars["note"].data, b"")
    return [*files, hole]


def interleaved(files, k):
    """File K has the hours between those of its neighbour, and both reach over two days."""
    files = list(files)
    j = neighbour(files, k)
    early = min(j, k)
    both = F.half_days(early, steps=4, first=2 * early)
    for i, steps in ((early, [0, 2]), (early + 1, [1, 3])):
        files[i] = F.changed(both)
        files[i].name = F.half_days(i).name
        for v in files[i].vars.values():
            if v.dims and v.dims[0] == "time":
                v.data = v.data[steps]
    return files


# ---- what a file says -------------------------------------------------------------------------------


def attribute(variable, name, value):
    def change(f, k):
        (f.vars[variable].attrs if variable else f.attrs)[name] = value

    return edit(change)


def renamed(old, new):
    def change(f, k):
        f.vars[new] = f.vars.pop(old)
        for v in f.vars.values():
            v.dims = tuple(new if d == old else d for d in v.dims)
        f.unlimited = tuple(new if d == old else d for d in f.unlimited)

    return edit(change)


def named(old, new):
    """All files call NEW what some call OLD."""

    def change(f):
        if old in f.vars:
            f.vars[new] = f.vars.pop(old)

    return each(change)


def named_time(f):
    if "valid_time" in f.vars:
        f.vars = {
            {"valid_time": "time"}.get(n, n): F.Var(tuple("time" if d == "valid_time" else d for d in v.dims), v.data, v.attrs, v.fill)
            for n, v in f.vars.items()
        }


def rechunked(f, k):
    f.vars["tas"].chunks, f.vars["tas"].deflate = (1, 2, 3), 5




TRAPS = {
    # time: units
    "units drift": Trap(other_time(units="days since 1999-03-01"), "time-units", NOTE, mend=as_it_is),
    "units are hours": Trap(other_time(units="hours since 2000-01-01"), "time-units", NOTE, mend=as_it_is),
    "thirds of hours": Trap(edit(hours), "time-units", NOTE, mend=as_it_is),
    "times are float32": Trap(other_time(dtype="f4"), "type", NOTE, mend=as_it_is, or_kind="time-units"),
    "times are integers of seconds": Trap(other_time(units="seconds since 1970-01-01", dtype="i4"), "time-units", NOTE, mend=as_it_is),
    "calendar noleap": Trap(other_time(calendar="noleap"), "calendar", DECISION),
    "calendar 360_day": Trap(other_time(calendar="360_day"), "calendar", DECISION),
    "calendar proleptic": Trap(edit(first_proleptic), "calendar", NOTE, mend=as_it_is, or_kind="time-units"),
    # values
    "physical units": Trap(edit(degrees), "units", DECISION, variable="tas"),
    "packing": Trap(edit(repacked), "packing", DECISION, "--packing unpack", ("--packing", "unpack"), each(unpacked), variable="pr"),
    "type float64": Trap(edit(doubled), "type", NOTE, mend=widened("tas", "f8"), variable="tas"),
    "type int32": Trap(edit(longer_flags), "type", NOTE, mend=widened("flag", "i4"), variable="flag"),
    "longer texts": Trap(noted(11), "type", NOTE, "--char join", mend=all_noted(11), variable="note"),
    "shorter texts": Trap(noted(5), "type", NOTE, "--char join", mend=all_noted(8), variable="note"),
    "texts of length 1": Trap(noted(1), "type", NOTE, "--char join", mend=all_noted(8), variable="note"),
    "longer texts, other dimension": Trap(
        noted(11, "string11"), "type", NOTE, "--char join", mend=all_noted(11, "string11"), variable="note"
    ),
    "dimension of texts": Trap(noted(8, "string8"), "dimensions", NOTE, mend=as_it_is, variable="note"),
    "fill value": Trap(edit(other_fill), "fill-value", NOTE, mend=fill_of(None), variable="pr"),
    "missing variable": Trap(edit(lacks), "missing", DECISION, "--missing fill", ("--missing", "fill"), filled, variable="pr"),
    # what is not joined
    "static field": Trap(edit(moved_ground), "static", DECISION, "--static first", ("--static", "first"), first_of("orog"), variable="orog"),
    "static scalar": Trap(edit(other_height), "static", DECISION, "--static first", ("--static", "first"), first_of("height"), variable="height"),
    "static scalar, promoted": Trap(
        edit(other_height), "static", DECISION, None, ("--promote", "height"), each(promoted), variable="height"
    ),
    "coordinate, a little": Trap(
        edit(shaken), "coordinate", DECISION, "--tolerance", ("--tolerance", "1e-6"), first_of("lat"), variable="lat"
    ),
    "coordinate, other": Trap(edit(other_grid), "coordinate", DECISION, variable="lat"),
    "axis runs the other way": Trap(edit(upside_down), "direction", DECISION, variable="lat"),
    "order of dimensions": Trap(edit(turned), "dimension-order", NOTE, mend=turned_like_first),
    "a shorter dimension": Trap(edit(narrower), "length", DECISION),
    # steps
    "overlap, identical": Trap(overlapping(False), "overlap", NOTE, mend=overlap_keeps("first"), moves=True),
    "overlap, first": Trap(
        overlapping(True), "overlap", DECISION, "--overlap first", ("--overlap", "first"), overlap_keeps("first"), moves=True, survey=False
    ),
    "overlap, last": Trap(
        overlapping(True), "overlap", DECISION, "--overlap last", ("--overlap", "last"), overlap_keeps("last"), moves=True, survey=False
    ),
    "gap": Trap(gap, "gap", WARNING, mend=as_it_is, refuses=("--gaps", "error"), moves=True),
    "gap, filled": Trap(gap, "gap", WARNING, None, ("--gaps", "fill"), gap_filled, moves=True),
    "interleaved": Trap(interleaved, "interleaved", DECISION, moves=True),
    # meaning
    "standard_name": Trap(
        attribute("tas", "standard_name", "surface_temperature"), "meaning", DECISION, "--attrs first", ("--attrs", "first"), as_it_is, variable="tas"
    ),
    "cell_methods": Trap(
        attribute("tas", "cell_methods", "time: point"), "meaning", DECISION, "--attrs first", ("--attrs", "first"), as_it_is, variable="tas"
    ),
    "grid_mapping": Trap(
        attribute("crs", "earth_radius", 6371229.0), "meaning", DECISION, "--attrs first", ("--attrs", "first"), as_it_is, variable="crs"
    ),
    "_Encoding": Trap(
        edit(encoded), "meaning", DECISION, "--attrs first", ("--attrs", "first"), as_it_is, variable="note"
    ),
    "flag_meanings": Trap(
        attribute("flag", "flag_meanings", "bad good ugly"), "meaning", DECISION, "--attrs first", ("--attrs", "first"), as_it_is, variable="flag"
    ),
    "history": Trap(attribute(None, "history", "made anew"), "attribute", NOTE, mend=as_it_is),
    "long_name": Trap(attribute("tas", "long_name", "warmth"), "attribute", NOTE, mend=as_it_is, variable="tas"),
    # names
    "variable renamed": Trap(renamed("tas", "t2m"), "name", DECISION, "--rename", ("--rename", "t2m=tas"), named("t2m", "tas")),
    "dimension renamed": Trap(
        renamed("time", "valid_time"), "name", DECISION, "--rename", ("--rename", "valid_time=time"), each(named_time)
    ),
    # nobody's business
    "chunks": Trap(edit(rechunked), "layout", NOTE, mend=as_it_is, refuses=("--strict",), variable="tas"),
}
