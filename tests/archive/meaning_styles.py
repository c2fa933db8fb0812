"""How a file encodes a variable, drawn at random: type, fill value, missing_value, packing, units and epoch."""

from dataclasses import dataclass, replace

import numpy as np

from .meaning_reference import SPELLED, UNIT, decode, time_axis

EPOCHS = ("1970-01-01", "2000-01-01", "1999-12-30 12:00:00", "2000-02-01", "1900-01-01", "2000-01-01 06:00:00")
ODD_EPOCHS = ("1970-01-01T00:00:00Z", "2000-1-1 6:0:0", "2000-01-01 06:00:00 +02:00", "2000-01-01 06:00:00 UTC", "1999-12-30T12:00")
FILLS = (-1, -2, -999, 0, 4, 9999, -32767)
APART = (-1, -2, -99, -999, 9999, -32767)
RANGE = {"i1": 127, "i2": 32767, "i4": 2**31 - 1, "i8": 2**53, "u1": 255, "f4": 2**24, "f8": 2**53}
WIDER = {"i1": ("i2",), "i2": ("i1", "i4", "f4"), "i4": ("i2", "f8"), "i8": ("i4",), "u1": ("i2",), "f4": ("f8", "i2"), "f8": ("f4", "i4")}


@dataclass(frozen=True)
class Style:
    """How a file encodes a variable."""

    dtype: str = "f8"
    fill: object = None
    missing: object = None
    scale: object = None
    offset: object = None
    unsigned: object = None
    units: str = None  # of times
    calendar: str = None

    def attrs(self):
        kind = np.dtype(self.dtype).type
        pairs = {"scale_factor": self.scale, "add_offset": self.offset, "_Unsigned": self.unsigned, "units": self.units, "calendar": self.calendar}
        pairs["missing_value"] = None if self.missing is None else np.array(self.missing, kind) if isinstance(self.missing, list) else kind(self.missing)
        return {k: v for k, v in pairs.items() if v is not None}

    def packed(self):
        return self.scale is not None or self.offset is not None

    def nothing(self):
        """A number that stands for what is missing, or None."""
        if self.fill is not None:
            return self.fill
        if self.missing is not None:
            return self.missing[0] if isinstance(self.missing, list) else self.missing
        return np.nan if self.dtype[0] == "f" else None

    def store(self, truth):
        """Raw elements for TRUTH, numbers or microseconds, None what is missing; None: this style cannot hold them."""
        raw = np.zeros(truth.shape, self.dtype)
        for at in np.ndindex(truth.shape):
            value = truth[at]
            if value is None:
                number = self.nothing()
            else:
                if self.units:
                    _, origin, unit = time_axis(self.units, self.calendar or "standard")
                    value = (value - origin) / unit
                number = (value - float(self.offset or 0)) / float(self.scale or 1)
            if number is None or (self.dtype[0] != "f" and (number != round(number) or not self.holds(number))):
                return None
            raw[at] = number if self.dtype[0] == "f" else self.wrapped(int(round(number)))
        if self.units and raw.size:
            got = decode(raw, {**self.attrs(), **({} if self.fill is None else {"_FillValue": self.fill})})
            if any(w is not None and (g is None or g[1] != w) for g, w in zip(got.ravel(), truth.ravel())):
                return None
        return raw

    def holds(self, number):
        most = RANGE[self.dtype]
        if self.unsigned == "true":
            return number in (self.fill,) or 0 <= number <= 2 * most + 1
        return (0 if self.dtype[0] == "u" else -most - 1) <= number <= most

    def wrapped(self, number):
        info = np.iinfo(self.dtype)
        return number - (1 << info.bits) if number > info.max else number


class Styles:
    """Draws styles; `unpacks` says whether files may be packed differently."""

    def __init__(self, seed):
        self.seed, self.r = seed, np.random.default_rng([31, seed])

    def chance(self, p):
        return self.r.random() < p

    def pick(self, seq):
        return seq[int(self.r.integers(len(seq)))]

    def number_style(self, packs=0.35):
        dtype = self.pick(("f8", "f4", "i4", "i2", "i2", "i1") if self.classic else ("f8", "f4", "i4", "i2", "i2", "i1", "u1", "i8"))
        s = self.with_fill(Style(dtype))
        return self.with_packing(s) if self.chance(packs) else s

    def with_fill(self, s):
        s = replace(s, fill=None, missing=None)
        fits = [x for x in (APART if s.units else FILLS) if (-RANGE[s.dtype] - 1 if s.dtype[0] != "u" else 0) <= x <= RANGE[s.dtype]]
        if self.chance(0.65):
            s = replace(s, fill=self.pick(fits))
        careful = s.packed() or self.unpacks
        if self.chance(0.25 if s.fill is not None or not careful else 0.04) and s.unsigned is None:
            alike = s.fill is not None and self.chance(0.9 if careful else 0.5)
            s = replace(s, missing=s.fill if alike else self.pick(fits))
            if self.chance(0.1) and not alike:
                s = replace(s, missing=[s.missing, self.pick(fits)])
        return s

    def with_packing(self, s):
        if s.dtype[0] == "f" or s.dtype == "i8":
            s = self.with_fill(replace(s, dtype=self.pick(("i2", "i4", "i1"))))
        single = s.dtype != "i4" and self.chance(0.2)
        kind = np.float32 if single else np.float64
        s = replace(s, scale=None, offset=None, unsigned=None, missing=s.missing if s.missing == s.fill else None)
        if self.chance(0.85):
            s = replace(s, scale=kind(self.pick((0.5, 2.0, 0.25, 1.0))))
        if self.chance(0.5) or s.scale is None:
            s = replace(s, offset=kind(self.pick((0.0, 8.0, -4.0, 2.0, 1.0))))
        if self.chance(0.15) and s.dtype[0] == "i" and s.missing is None:
            s = replace(s, unsigned="true")
        return s

    def time_style(self, packs=0.2):
        s = self.with_epoch(Style(self.pick(("f8", "f8", "i4", "f4") if self.classic else ("f8", "f8", "i8", "i4", "f4"))))
        s = self.with_fill(s)
        if self.chance(packs if self.unpacks else packs / 4):
            s = replace(s, dtype=self.pick(("i4", "i2", "f8")), scale=np.float64(self.pick((0.5, 2.0, 0.25))))
            if self.chance(0.5):
                s = replace(s, offset=np.float64(self.pick((0.0, 12.0, -4.0, 1.0))))
            s = self.with_fill(s)
        return s

    def with_epoch(self, s):
        calendar = self.calendar
        if calendar == "standard":
            calendar = self.pick((None, "standard", "gregorian", "proleptic_gregorian", "standard"))
        unit = self.pick(list(SPELLED) if self.chance(0.15) else list(UNIT)[:4])
        return replace(s, units=f"{unit} since {self.pick(ODD_EPOCHS if self.chance(0.1) else EPOCHS)}", calendar=calendar)

    def drift(self, s, time):
        """S as another file may have it."""
        how = self.pick(("epoch",) * 4 + ("fill", "fill", "all", "packing") if time else ("fill",) * 4 + ("packing",) * 3 + ("type", "type", "all"))
        if how == "packing" and not self.unpacks and self.chance(0.9):
            how = "epoch" if time else "fill"
        if how == "all":
            packs = 0.3 if self.unpacks else 0
            return self.time_style(packs) if time else self.number_style(packs)
        if how == "fill":
            other = self.with_fill(s)
            return other if time or self.chance(0.15) else replace(other, missing=s.missing)
        if how == "epoch":
            return self.with_epoch(s)
        if how == "packing":
            if time:
                return replace(s, scale=np.float64(self.pick((0.5, 0.25))), offset=s.offset)
            return self.with_packing(s)
        return replace(s, dtype=self.pick(WIDER[s.dtype])) if not s.packed() else self.with_fill(s)

    def styles(self, truth, time=False, drifts=0.4, packs=0.3):
        """One for each file, that can hold TRUTH; the same for all but where there is drift."""
        make = self.time_style if time else self.number_style
        safe = Style("f8", fill=-1e9)
        first = self.fitting(lambda: make(packs), truth) or (self.with_epoch(safe) if time else safe)
        if not self.chance(drifts):
            return [first] * self.nfiles
        again = 0.3 + 0.5 * self.r.random()
        others = [None if self.chance(again) else self.fitting(lambda: self.drift(first, time), truth) for _ in range(self.nfiles - 1)]
        return [first, *(s or first for s in others)]

    def fitting(self, make, truth):
        """One of some styles that holds TRUTH, or None."""
        for _ in range(6):
            s = make()
            if self.in_range(s) and s.store(truth) is not None:
                return s
        return None

    def in_range(self, s):
        return s.dtype[0] == "f" or all(-RANGE[s.dtype] - 1 <= x <= RANGE[s.dtype] for x in (s.fill or 0, *np.ravel(s.missing or 0)))
