"""The package as tools see it: complete types, docstrings of all that is public, and PyTorch's side of it."""

import ast
import inspect
import os
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest
import zarr

from support import paths

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python")

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
import chunkmill  # noqa: E402
from chunkmill import _library  # noqa: E402

PACKAGE = paths.ROOT / "tools" / "python" / "chunkmill"
SOURCES = sorted(PACKAGE.glob("*.py"))


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_annotations_are_complete(path):
    for f in functions(ast.parse(path.read_text())):
        named = [*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs, f.args.vararg, f.args.kwarg]
        without = [a.arg for a in named if a and a.annotation is None and a.arg not in ("self", "cls")]
        assert not without and f.returns is not None, f"{f.name}: {without}"


def test_library_of_an_environment(tmp_path, monkeypatch):
    """conda keeps libraries in the environment's lib, which the system's loader does not search."""
    monkeypatch.delenv("CHUNKMILL_LIBRARY")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert _library.find() == _library.NAME
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / _library.NAME).touch()
    assert _library.find() == str(tmp_path / "lib" / _library.NAME)


def test_mypy():
    pytest.importorskip("mypy", reason="mypy is not installed")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "-p", "chunkmill"],
                          env={**os.environ, "MYPYPATH": str(PACKAGE.parent)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_wheel_says_that_it_has_types():
    assert (PACKAGE / "py.typed").exists() and "py.typed" in (paths.ROOT / "scripts" / "wheel.py").read_text()


def public_classes(path):
    return [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_docstrings(path):
    """Of the module, of public classes with their attributes, and of public functions and methods."""
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name[0] != "_":
            assert ast.get_docstring(node), node.name
    for cls in public_classes(path):
        text = ast.get_docstring(cls)
        assert text, cls.name
        for f in cls.body:
            if isinstance(f, ast.FunctionDef) and (f.name[0] != "_" or f.name in ("__getitem__", "__len__", "__dlpack__")):
                assert ast.get_docstring(f) or f.name.startswith("__") and cls.name == "_Epoch", f"{cls.name}.{f.name}"
        if path.name.startswith("_") and path.name not in ("_tensor.py", "_dates.py") or cls.name in ("Variable", "Since"):
            continue  # not seen from outside
        stored = {t.attr for n in ast.walk(cls) for t in getattr(n, "targets", [getattr(n, "target", None)])
                  if isinstance(n, (ast.Assign, ast.AnnAssign)) and isinstance(t, ast.Attribute)
                  and isinstance(t.value, ast.Name) and t.value.id == "self" and t.attr[0] != "_"}
        stored |= {n.target.id for n in cls.body if isinstance(n, ast.AnnAssign)}
        listed = textwrap.dedent(text).partition("Attributes:")[2]
        for name in stored:
            assert f"    {name}: " in listed or name == "status" and cls.name != "Error", f"{cls.name}.{name}"


def test_all_is_there():
    for name in chunkmill.__all__:
        assert inspect.getdoc(getattr(chunkmill, name)), name


# ---- chunkmill.torch, over what it takes of PyTorch ----

@pytest.fixture
def torch(monkeypatch):
    """PyTorch, or as much of it as chunkmill.torch asks for."""
    monkeypatch.delitem(sys.modules, "chunkmill.torch", raising=False)
    state = types.SimpleNamespace(rank=None, worker=None)
    torch, data, distributed = (types.ModuleType(n) for n in ("torch", "torch.utils.data", "torch.distributed"))
    torch.utils = types.ModuleType("torch.utils")
    torch.utils.data, torch.distributed, torch.from_dlpack, torch.state = data, distributed, np.from_dlpack, state
    data.IterableDataset = type("IterableDataset", (), {})
    data.get_worker_info = lambda: state.worker
    distributed.is_available = lambda: True
    distributed.is_initialized = lambda: state.rank is not None
    distributed.get_rank, distributed.get_world_size = (lambda: state.rank), (lambda: 3)
    for name, module in (("torch", torch), ("torch.utils", torch.utils), ("torch.utils.data", data),
                         ("torch.distributed", distributed)):
        monkeypatch.setitem(sys.modules, name, module)
    yield torch
    sys.modules.pop("chunkmill.torch", None)


@pytest.fixture
def store(tmp_path):
    array = zarr.create_array(str(tmp_path / "a.zarr"), shape=(12, 4), chunks=(2, 4), dtype="f4", dimension_names=("time", "x"))
    array[...] = np.arange(48).reshape(12, 4)
    return tmp_path / "a.zarr"


OPTIONS = {"sample": {"time": 2}, "batch": 2}


def test_an_iterable_dataset(torch, store):
    from chunkmill.torch import IterableDataset

    rows = IterableDataset(store, **OPTIONS)
    assert isinstance(rows, torch.utils.data.IterableDataset) and len(rows) == len(rows.loader)
    assert [{k: v.shape for k, v in row.items()} for row in rows] == [{"/": (2, 2, 4)}] * 5 + [{"/": (1, 2, 4)}]
    rows.set_epoch(4)
    running = iter(rows)
    next(running)
    state, due = rows.state_dict(), next(running)["/"].copy()
    rows.load_state_dict(state)
    assert (next(iter(rows))["/"] == due).all()
    with chunkmill.Loader(store, **OPTIONS) as loader:
        assert [row for row in loader.dataset(len)] == [2] * 5 + [1]
        with pytest.raises(chunkmill.InvalidError, match="batch: the loader is open already"):
            IterableDataset(loader, batch=3)


def test_ranks_of_torch_distributed(torch, store, monkeypatch):
    from chunkmill.torch import IterableDataset

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, more, want in ((None, {}, (1, 2)), (2, {}, (2, 3)), (2, {"rank": 0, "world_size": 1}, (0, 1))):
        torch.state.rank = rank
        loader = IterableDataset(store, **OPTIONS, **more).loader
        assert (loader.rank, loader.world_size) == want
        loader.close()


def test_worker_processes_are_refused(torch, store):
    from chunkmill.torch import IterableDataset

    rows = IterableDataset(store, **OPTIONS)
    torch.state.worker = object()
    with pytest.raises(chunkmill.InvalidError, match="num_workers=0"):
        next(iter(rows))
