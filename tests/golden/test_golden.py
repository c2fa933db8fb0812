"""No output differs from what was blessed (golden.py), in one byte: here a sample, in `make check-long` all of it."""

import tempfile
from pathlib import Path

import pytest

from support import paths

from . import golden, growth, rows

TABLES = {kind: rows.Table.read(kind) for kind in golden.KINDS}
# One of so many names.
SAMPLE = {
    "single": paths.tries(20, 3, 1),
    "archives": paths.tries(15, 1, 1),
    "growth": paths.tries(6, 1, 1),
    "buckets": paths.tries(2, 1, 1),
    "batches": paths.tries(3, 1, 1),
    "messages": paths.tries(6, 1, 1),
}
LEAST = {"single": 1800, "archives": 330, "growth": 36, "buckets": 36, "batches": 49, "messages": 270}
growth.MOST = paths.tries(2, 20, 1000)


@pytest.fixture(scope="session")
def bench():
    """Benches by kind, made once by each process that runs tests."""
    made = {}
    with tempfile.TemporaryDirectory() as folder:

        def get(kind):
            if kind not in made:
                made[kind] = golden.bench_of(kind, Path(folder).resolve())
            return made[kind]

        yield get
        for b in made.values():
            b.close()


@pytest.mark.skipif(paths.SANITIZED, reason="takes minutes there, and other suites run the same code")
@pytest.mark.every
@pytest.mark.parametrize("kind, name", [(k, n) for k, table in TABLES.items() for n in table.names()[:: SAMPLE[k]]])
def test_outputs_are_as_blessed(bench, kind, name):
    table = TABLES[kind]
    assert rows.check(bench(kind), table, name, rows.libraries() == table.libraries) == []


@pytest.mark.skipif(paths.SANITIZED, reason="takes minutes there, and other suites run the same code")
@pytest.mark.parametrize("kind", golden.KINDS)
def test_tables_cover_every_name(bench, kind):
    assert bench(kind).names == TABLES[kind].names()
    assert len(TABLES[kind].rows) >= LEAST[kind]


def test_what_is_blessed_as_a_refusal_is_one():
    assert [key for key, row in TABLES["messages"].rows.items() if row.status not in (1, 2, 3, 4)] == []


def test_texts_are_kept_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "FOLDER", tmp_path)
    table = rows.Table("x")
    texts = ["", "\n", "a", "a\n", "\n    a\n\\\n## b: c\n", None]
    table.put("name", {}, {f"{i}": rows.Row(0, text=t) for i, t in enumerate(texts)})
    table.write()
    assert rows.Table.read("x").rows == table.rows


def test_every_difference_has_its_sentence():
    want = rows.Row(0, "a", "b", "c", "one\ntwo\n")
    for other, said in (
        (want, []),
        (want._replace(status=1), ["exit status 1, blessed 0"]),
        (want._replace(bytes="x", content="b"), ["other bytes than blessed"]),
        (want._replace(bytes="x", content="x"), ["other content than blessed"]),
        (want._replace(document="x"), ["another document than blessed"]),
        (want._replace(text="one\nthree\n"), ["other words than blessed\n    -two\n    +three"]),
    ):
        assert rows.differences("here", want, other, True) == [f"here: {s}" for s in said]
    assert rows.differences("here", None, want, True) == ["here: not in the table"]
    assert rows.differences("here", want, want._replace(bytes="x", document="x", text="x"), False) == []
    assert rows.differences("here", want, want._replace(bytes="x", content="x"), False) == ["here: other content than blessed"]
