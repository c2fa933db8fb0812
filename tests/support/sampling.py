"""Which tests a run takes.

`make check` takes of each test function so many of its cases as it has time for, those that together
show the most values of its parameters, and leaves out what is marked `long`.  The mark `every` says that
a function is quick enough for all of them, `few(N)` that N of them, or one, are enough for their time.  The slow half of .ci/run takes what is marked
`long(ci=N)`, N cases of each; `make check-long` takes everything.
"""

import zlib

from . import paths

CASES = 2


def limit(item):
    """How many cases of its function a run takes; None: all."""
    long = item.get_closest_marker("long")
    if paths.LONG:
        return None
    if paths.CI:
        return long.kwargs.get("ci", 0) if long else 0
    if long:
        return 0
    if paths.ALL or item.get_closest_marker("every"):
        return None
    few = item.get_closest_marker("few")
    return (few.args or (1,))[0] if few else CASES


def values(item):
    call = getattr(item, "callspec", None)
    return set(call.indices.items()) if call else set()


def cover(items, n):
    """N of ITEMS, each the one that shows the most values which none before it has shown."""
    left, seen, chosen = list(items), set(), []
    while left and len(chosen) < n:
        best = max(left, key=lambda item: (len(values(item) - seen), zlib.crc32(item.nodeid.encode())))
        left.remove(best)
        seen |= values(best)
        chosen.append(best)
    return chosen


def choose(items):
    """Selects the items of ITEMS for this run."""
    functions = {}
    for item in items:
        long = item.get_closest_marker("long") is not None  # cases may be so, each by itself
        functions.setdefault((item.nodeid.split("[")[0], long), []).append(item)
    taken = set()
    for cases in functions.values():
        n = limit(cases[0])
        taken.update(cases if n is None else cover(cases, n))
    return [item for item in items if item in taken]
