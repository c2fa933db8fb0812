"""Reading chunk by chunk: each chunk is a sample, also where chunks differ in length or are longer than their dimension."""

import itertools
import random

import numpy as np
import pytest
import zarr

from support import readbench as rb
from support import rectilinear, tool

LENGTHS = [[5, 4, 1, 3], 3, [2, 2, 6]]
VALUES = np.random.default_rng(4).normal(size=(12, 7, 9)).astype("f4")  # the last chunks reach past it


def boxes(shape, lengths):
    """(start, shape) of each chunk, clipped, in C order."""
    along = [[(at, min(n, length - at)) for at, n in rectilinear.spans(length, ls)] for length, ls in zip(shape, lengths)]
    return [tuple(zip(*chunk)) for chunk in itertools.product(*along)]


def measure(folder, store, order, *args):
    options = ["--variable", "v", "--order", order, "--batch", 3, "--batches", 1000, "--epochs", 1, *args]
    return rb.measure(folder, store, *options, program=rb.BARE).only


@pytest.mark.parametrize("mode", [["--mode", "sync"], [], ["--mode", "processes"]], ids=str)
@pytest.mark.parametrize("order", ["chunks", "all"])
def test_a_sample_is_a_chunk(tmp_path, order, mode):
    rectilinear.write(tmp_path / "a", "v", VALUES, LENGTHS, ["time", "y", "x"])
    session = measure(tmp_path / "out", tmp_path / "a", order, *mode)
    want = boxes(VALUES.shape, LENGTHS)
    # Along y chunks have one length: samples of that length, of which "chunks" takes only whole ones.
    want = want if order == "all" else [b for b in want if b[1][1] == 3]
    assert [(row[8], row[9]) for row in session.logged] == want
    rb.same_bytes(session, {"v": VALUES})


@pytest.mark.every
@pytest.mark.parametrize("seed", range(12))
def test_random_grids(tmp_path, seed):
    rng = random.Random(seed)
    rank = rng.randint(2, 3)
    shape = [rng.randint(2, 20) for _ in range(rank)]
    values = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    lengths = [rectilinear.cut(rng, n + rng.choice((0, 2)), 6) if rng.random() < 0.7 else rng.randint(1, n + 3) for n in shape]
    rectilinear.write(tmp_path / "a", "v", values, lengths)
    session = measure(tmp_path / "out", tmp_path / "a", "all", "--validate", "full")
    cover = np.zeros(shape, int)
    for row in session.logged:
        cover[rb.box(row[8], row[9])] += 1
    assert (cover == 1).all()
    rb.same_bytes(session, {"v": values})


@pytest.mark.parametrize("order", ["chunks", "all"])
def test_a_chunk_longer_than_its_dimension(tmp_path, order):
    """Also of a regular grid: a sample is what there is of it."""
    group = zarr.open_group(str(tmp_path / "a"), mode="w", zarr_format=3)
    group.create_array("v", shape=(6, 5), chunks=(3, 8), dtype="f4")[:] = VALUES[:6, :5, 0]
    session = measure(tmp_path / "out", tmp_path / "a", order)
    assert [(row[8], row[9]) for row in session.logged] == [((0, 0), (3, 5)), ((3, 0), (3, 5))]


@pytest.mark.parametrize("more", [["--lags", "0,1"], ["--loader", "planned"], ["--sample", "4x3x2"]], ids=str)
def test_samples_of_one_length(tmp_path, more):
    """With lags, blocks, or a shape that was typed, samples lie side by side as ever."""
    rectilinear.write(tmp_path / "a", "v", VALUES, LENGTHS, ["time", "y", "x"])
    session = measure(tmp_path / "out", tmp_path / "a", "chunks", *more)
    want = (4, 3, 2) if "--sample" in more else (5, 3, 6)
    assert {row[9] for row in session.logged} == {want}
    rb.same_bytes(session, {"v": VALUES})


def test_a_batch_meets_no_more_chunks_than_there_are(tmp_path):
    rectilinear.write(tmp_path / "a", "v", VALUES, LENGTHS, ["time", "y", "x"])
    for batch, most in ((1, 27), (10_000, 36)):
        doc = tool.run("chunkcalc", "--json", "--batch", batch, "--sample", "5x3x3", "--recommend", tmp_path / "a").json()
        present = next(entry for entry in doc["layouts"] if entry["rule"] == "present")
        assert 1 <= present["batch"]["distinct_chunks"] <= most and present["batch"]["requests"] <= most, present["batch"]
