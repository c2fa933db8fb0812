"""The certificate of many files: metadata of each file that the store lacks, and whether they suffice."""

import json

import jsonschema
import numpy as np

from support import paths, tool

from . import files as F
from . import stores

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "nc2zarr.json").read_text())


def made(tmp_path, files, *options):
    """The certificate, the document of the conversion and that of the survey."""
    F.write_all(files, tmp_path / "in")
    r = tool.nc2zarr("--json", "--verify", "full", "--certificate", tmp_path / "proof.json", *options, tmp_path / "in", tmp_path / "out.zarr").ok()
    _, survey = stores.survey(*options, tmp_path / "in")
    docs = json.loads((tmp_path / "proof.json").read_text()), json.loads(r.out), survey
    for doc in docs[1:]:
        jsonschema.Draft202012Validator(SCHEMA).validate(doc)
    return docs


def by_name(entries, path="file"):
    return {e[path].rsplit("/", 1)[1]: {k: v for k, v in e.items() if k != path} for e in entries}


def different():
    files = [F.changed(f) for f in F.clean(4)]
    for i, f in enumerate(files):
        f.attrs["history"] = f"run {i}"
    files[1].vars["tas"].attrs["long_name"] = "warmth"
    files[2].vars.update(F.time_vars(4, 2, units="hours since 1999-03-01"))
    v = files[3].vars["pr"]
    v.data, v.fill = np.where(v.data == -32767, np.int16(-9999), v.data), np.int16(-9999)
    return files


def test_what_each_file_says_alone(tmp_path):
    files = different()
    proof, conversion, survey = made(tmp_path, files)
    want = {f.name: {"attributes": {"/": {"history": f.attrs["history"]}}} for f in files}
    want[files[1].name]["attributes"]["tas"] = {"long_name": "warmth"}
    want[files[2].name]["attributes"]["time"] = {"units": "hours since 1999-03-01"}
    want[files[3].name]["fill_values"] = {"pr": "-9999"}
    assert by_name(survey["file_attributes"]) == want
    assert by_name(conversion["file_attributes"]) == want
    assert {e["path"].rsplit("/", 1)[1]: e["left_out"] for e in proof["inputs"]} == want
    assert proof["reproducible"] and proof["not_reproducible_because"] == []


def test_those_of_the_first_file(tmp_path):
    """--attrs first drops what the others say: it stands in the certificate."""
    files = different()
    proof, conversion, _ = made(tmp_path, files, "--attrs", "first")
    said = by_name(conversion["file_attributes"])
    assert files[0].name not in said and said[files[1].name]["attributes"]["/"] == {"history": "run 1"}
    assert stores.attributes(tmp_path / "out.zarr")["history"] == "run 0" and proof["reproducible"]


def test_like_files_say_nothing(tmp_path):
    proof, conversion, survey = made(tmp_path, F.clean(3))
    assert survey["file_attributes"] == conversion["file_attributes"] == []
    assert not any("left_out" in e for e in proof["inputs"])


def test_types_and_packings_of_files(tmp_path):
    files = [F.changed(f) for f in F.clean(3)]
    files[1].vars["tas"].data = files[1].vars["tas"].data.astype("f8")
    files[1].vars["tas"].fill = np.float64(np.float32(1e20))
    files[2].vars["pr"].attrs["scale_factor"] = 0.25
    proof, conversion, _ = made(tmp_path, files, "--packing", "unpack")
    said = by_name(conversion["file_attributes"])
    assert said[files[0].name]["types"] == {"tas": "float32", "pr": "int16"}
    assert said[files[2].name]["attributes"]["pr"]["scale_factor"] == 0.25
    assert not proof["reproducible"] and "pr was unpacked" in proof["not_reproducible_because"]
