"""gs:// is read by the dialect of S3 that Google's XML interface speaks, with keys of its own."""

import numpy as np
import pytest
import zarr
from append import files as F

from support import objects, tool


def google(bucket, **more):
    """The settings of BUCKET as those of gs://, and keys of AWS that must not go there."""
    e = bucket.environment()
    return {
        "GS_ENDPOINT_URL": e["AWS_ENDPOINT_URL"],
        "GS_ACCESS_KEY_ID": e["AWS_ACCESS_KEY_ID"],
        "GS_SECRET_ACCESS_KEY": e["AWS_SECRET_ACCESS_KEY"],
        "AWS_ACCESS_KEY_ID": "of-amazon",
        "AWS_SECRET_ACCESS_KEY": "of-amazon",
        **more,
    }


@pytest.fixture
def bucket():
    server = objects.Server(region="auto")  # Google takes any
    yield server
    server.close()


@pytest.fixture
def anonymous():
    server = objects.Server(signed=False)
    yield server
    server.close()


@pytest.mark.every
def test_a_store_and_files_are_read(bucket, tmp_path):
    F.days(tmp_path, 0, 3)
    days = [tmp_path / f"day{i:05}.nc" for i in range(3)]
    local = tmp_path / "local.zarr"
    tool.nc2zarr("-q", *days, local).ok()
    tool.nc2zarr("-q", *days, "s3://bucket/s.zarr", env=bucket.environment()).ok()
    (tmp_path / "in").mkdir()
    for day in days:
        day.rename(tmp_path / "in" / day.name)
    bucket.put_folder(tmp_path / "in", "in")
    env = google(bucket)
    digests = [tool.run("rechunk", "--digest", local).ok().out, tool.run("rechunk", "--digest", "gs://bucket/s.zarr", env=env).ok().out]
    assert digests[0] == digests[1]
    tool.run("chunkcalc", "GS://bucket/s.zarr", env=env).ok()
    joined = tmp_path / "joined.zarr"
    tool.nc2zarr("-q", "gs://bucket/in/day*.nc", joined, env=env).ok()
    assert tool.run("rechunk", "--digest", joined).ok().out == digests[0]


@pytest.mark.every
def test_what_google_gets(bucket, anonymous, tmp_path):
    """No key of AWS; keys of its own or none; and nothing is written."""
    zarr.create_array(str(tmp_path / "a.zarr"), data=np.arange(10))
    for server in (bucket, anonymous):
        server.put_folder(tmp_path / "a.zarr", "a.zarr")
    env = google(bucket, GS_ACCESS_KEY_ID="")
    tool.run("chunkcalc", "gs://bucket/a.zarr", env=env).fails(1, "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY")
    assert bucket.asked == []
    tool.run("chunkcalc", "--anonymous", "gs://bucket/a.zarr", env=google(anonymous, GS_ACCESS_KEY_ID="")).ok()
    tool.run("chunkcalc", "gs://", env=env).fails(2, "gs://BUCKET/PREFIX is the form")
    for options in ((), ("--overwrite",), ("-q", "--part", "1/1")):
        tool.run("rechunk", *options, tmp_path / "a.zarr", "gs://bucket/a.zarr", env=google(bucket)).fails(2, "buckets are only read")
    assert all(method in ("GET", "HEAD") for method, *_ in bucket.asked)
