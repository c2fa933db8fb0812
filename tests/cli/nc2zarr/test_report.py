"""--report: planted faults are named and stand on the page, and clean data have none."""

import json
import re

import jsonschema
import numpy as np
import pytest

from support import fields, paths, tool

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "nc2zarr.json").read_text())


def report(source, folder, *args, status=0):
    """The member `report` of the document, and the page."""
    page = folder / "page.html"
    done = tool.run("nc2zarr", "--json", "-q", "--report", page, *args, source, folder / "out.zarr")
    assert done.status == status, done.err
    doc = json.loads(done.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(doc)
    return doc["report"], page.read_text()


def found(r):
    return [(f["kind"], f["variable"], f["first"], f["last"]) for f in r["findings"]]


@pytest.mark.every
@pytest.mark.parametrize("name", fields.FAULTS)
def test_a_fault_is_named_and_shown(name, tmp_path):
    expected = fields.plant(tmp_path / "in.nc", name)
    r, page = report(tmp_path / "in.nc", tmp_path)
    assert found(r) == [expected]
    finding = r["findings"][0]
    assert f"<code>{finding['kind']}</code>" in page and finding["sentence"] in page.replace("&quot;", '"')
    if finding["first"] is not None:
        assert finding["from"] in page
        assert re.search(r"<polygon points=\"[^\"]*\" class=\"fd55e00\"", page)
