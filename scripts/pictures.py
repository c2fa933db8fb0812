#!/usr/bin/env python3
"""pictures.py BUILD: measures what the README shows, on this machine, and renews docs/demo.png and docs/readbench.png.

Nothing else may run meanwhile.  Needs Chromium.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from support import browser  # noqa: E402

WIDTH = 960
SAMPLE = "time=4,lat=32,lon=32"


def photograph(page, last, picture):
    """PAGE, down to the section with the heading LAST."""
    with tempfile.TemporaryDirectory() as profile:
        b = browser.Browser(profile)
        b.open(page.resolve(), width=WIDTH)
        headings = f"[...document.querySelectorAll('section')].find(s => s.querySelector('h2').textContent == {last!r})"
        b.picture(picture, bottom=b.evaluate(f"{headings}.getBoundingClientRect().bottom + scrollY"))
        b.close()


def main(build):
    if browser.find() is None:
        sys.exit("pictures.py: Chromium is not installed")
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder, "demo")
        subprocess.run([ROOT / "scripts" / "demo.sh", build, demo], check=True)
        subprocess.run(
            ["readbench", "--variable", "z", "--sample", SAMPLE, "--batch", "16", "--batches", "20",
             "--step-time", "20ms", "--out", "before", "weather.zarr"],
            cwd=demo, env=os.environ | {"PATH": f"{build}/bin:{os.environ['PATH']}"}, check=True)  # fmt: skip
        photograph(demo / "comparison" / "report.html", "Where the time goes", ROOT / "docs" / "demo.png")
        photograph(demo / "before" / "report.html", "Timeline", ROOT / "docs" / "readbench.png")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())
