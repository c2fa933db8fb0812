"""The portable build's lint on made-up packages, and what its other files say."""

import platform
import re
import shutil
import subprocess
import sys
import tarfile

import pytest
from support import paths

HERE = paths.ROOT / "scripts/packaging"
ARCH = platform.machine()
OTHER = "aarch64" if ARCH == "x86_64" else "x86_64"
VERSION = (paths.ROOT / "VERSION").read_text().strip()
DEPS = [line.split(maxsplit=4) for line in (HERE / "deps.txt").read_text().splitlines() if line and line[0] != "#"]

pytestmark = pytest.mark.skipif(ARCH not in ("x86_64", "aarch64") or shutil.which("readelf") is None,
                                reason="no readelf, or no machine that is packed for")


def library(path, *flags, code="int f(void) { return 1; }"):
    subprocess.run(["cc", "-shared", "-fPIC", "-nostdlib", "-o", path, "-x", "c", "-", "-x", "none", *flags],
                   input=code, text=True, check=True)


def newer_glibc(folder):
    """A libc.so.6 whose function came with glibc 2.99."""
    (folder / "map").write_text("GLIBC_2.99 { g; };")
    library(folder / "libc.so.6", "-Wl,-soname,libc.so.6", f"-Wl,--version-script,{folder}/map", code="int g(void) { return 1; }")
    return {"code": "int g(void); int f(void) { return g(); }", "flags": [folder / "libc.so.6"]}


def foreign(folder):
    library(folder / "libfoo.so", "-Wl,-soname,libfoo.so")
    return {"flags": ["-Wl,--no-as-needed", folder / "libfoo.so"]}


def package(folder, arch=ARCH, without="", code="int f(void) { return 1; }", flags=()):
    """A tarball that has all that is asked for, but for WITHOUT; its nc2zarr is made of CODE with FLAGS."""
    tree = folder / "tree/chunkmill"
    names = [*(f"bin/{name}" for name in ("chunkcalc", "nc2zarr", "readbench", "rechunk")), "lib/libchunkmill_deps.so",
             "lib/libchunkmill_loader.so.1", *(f"share/man/man1/{name}.1" for name in ("chunkcalc", "nc2zarr", "readbench", "rechunk")),
             "share/man/man7/chunkmill-stores.7", *(f"share/doc/licences/{name}" for name in ("zig", *(row[0] for row in DEPS)))]
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if name.startswith(("bin", "lib")):
            library(tree / name, *(flags if name == "bin/nc2zarr" else ()), code=code if name == "bin/nc2zarr" else "int f;")
        elif name != without:
            (tree / name).write_text("text")
    path = folder / f"chunkmill-1-linux-{arch}.tar.gz"
    with tarfile.open(path, "w:gz") as t:
        t.add(tree, "chunkmill")
    return path


@pytest.mark.parametrize("how, said", [
    (lambda folder: {}, []),
    (lambda folder: {"without": "share/doc/licences/zlib"}, ["has no licences/zlib"]),
    (lambda folder: {"without": "share/man/man1/rechunk.1"}, ["has no man1/rechunk.1"]),
    (newer_glibc, ["chunkmill/bin/nc2zarr: needs glibc 2.99; 2.17 is the newest allowed"]),
    (foreign, ["chunkmill/bin/nc2zarr: needs libfoo.so"]),
    (lambda folder: {"flags": ["-Wl,-rpath,$ORIGIN/../lib"]}, []),
    (lambda folder: {"flags": ["-Wl,-rpath,/opt/lib:$ORIGIN"]}, ["chunkmill/bin/nc2zarr: looks for libraries in /opt/lib:$ORIGIN"]),
    (lambda folder: {"flags": ["-Wl,-z,execstack"]}, ["chunkmill/bin/nc2zarr: has an executable stack"]),
])
def test_lint(tmp_path, how, said):
    path = package(tmp_path, **how(tmp_path))
    done = subprocess.run([sys.executable, "-B", HERE / "lint.py", path], capture_output=True, text=True)
    assert [line.removeprefix(f"lint: {path}: ") for line in done.stderr.splitlines()] == said
    assert done.returncode == (1 if said else 0)


def test_lint_of_another_machine(tmp_path):
    done = subprocess.run([sys.executable, "-B", HERE / "lint.py", package(tmp_path, arch=OTHER)], capture_output=True, text=True)
    assert done.stderr.count(", not ") == 6 and done.returncode == 1


def test_dependencies():
    """Each row has a name, a source, and a way to build that deps.sh knows."""
    assert all(len(row) >= 4 and row[2] in ("cmake", "make", "configure") for row in DEPS)
    assert len({row[0] for row in DEPS}) == len(DEPS)


def test_recipe():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((HERE / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == VERSION
    host = set(recipe["requirements"]["host"])
    conda = {"lz4": "lz4-c", "expat": "libexpat", "curl": "libcurl", "netcdf": "libnetcdf"}
    # openssl and zlib come with the libraries that use them.
    assert {conda.get(row[0], row[0]) for row in DEPS} - host == {"openssl", "zlib", "cmocka"}


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shell():
    subprocess.run(["shellcheck", *sorted(HERE.glob("*.sh"))], check=True)
    post = re.search(r"%post\n(.*?)\n\n%", (HERE / "apptainer.def").read_text(), re.DOTALL)[1]
    run = re.search(r"^RUN (.*?[^\\])\n", (HERE / "Dockerfile").read_text(), re.DOTALL | re.MULTILINE)[1]
    for script in (post, run):
        subprocess.run(["shellcheck", "-s", "sh", "-"], input=script, text=True, check=True)
