"""The command line of nc2zarr: parsing, wording, exit statuses, help, completion, JSON, progress."""
import json
import os
import re
import signal
import struct
import subprocess
import time

import pytest

from support import manual, paths, terminal, tool

NC2ZARR = str(paths.BUILD / "bin" / "nc2zarr")
MAKE_SAMPLE = str(paths.BUILD / "bin" / "make_sample")
SCHEMA = paths.ROOT / "tools" / "schema" / "nc2zarr.json"


def run(*args, cwd=None, stdin=subprocess.DEVNULL):
    env = {k: v for k, v in os.environ.items() if k != "TERM"}
    done = subprocess.run([NC2ZARR, *map(str, args)], capture_output=True, text=True, cwd=cwd, stdin=stdin,
                          timeout=300, env=env)
    if "--progress" not in args:
        done.stderr = tool.spoken(done.stderr)
    return done


def classic_file(first=0.0):
    """A CDF-1 file by hand: float v(y=2, x=3), FIRST and then 1 to 5."""
    def name(s):
        return struct.pack(">i", len(s)) + s.encode() + b"\0" * (-len(s) % 4)

    head = b"CDF\1" + struct.pack(">i", 0)
    head += struct.pack(">ii", 10, 2) + name("y") + struct.pack(">i", 2) + name("x") + struct.pack(">i", 3)
    head += struct.pack(">ii", 0, 0)
    var = struct.pack(">ii", 11, 1) + name("v") + struct.pack(">iii", 2, 0, 1) + struct.pack(">ii", 0, 0)
    var += struct.pack(">ii", 5, 24)
    begin = len(head) + len(var) + 4
    return head + var + struct.pack(">i", begin) + struct.pack(">6f", first, *range(1, 6))


@pytest.fixture
def work(tmp_path):
    (tmp_path / "in.nc").write_bytes(classic_file())
    return tmp_path


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("sample") / "weather.nc"
    subprocess.run([MAKE_SAMPLE, path], check=True)
    return path


# ---- wrong command lines --------------------------------------------------------------------------

WRONG = {
    "unknown": (["--qqqqqq", "in.nc"], "unknown option --qqqqqq; see nc2zarr --help"),
    "near": (["--chunk=3", "in.nc"], "unknown option --chunk; did you mean --chunks? See nc2zarr --help"),
    "swapped": (["--verfiy", "full"], "unknown option --verfiy; did you mean --verify?"),
    "abbreviated": (["--overw", "in.nc"], "unknown option --overw; did you mean --overwrite?"),
    "letter": (["-x", "in.nc"], "unknown option -x"),
    "letter in a bundle": (["-vx", "in.nc"], "unknown option -x"),
    "value missing": (["in.nc", "--chunks"], "--chunks needs a value: [VAR:]SHAPE"),
    "letter's value missing": (["in.nc", "-j"], "-j needs a value: N"),
    "value to a flag": (["--json=1", "in.nc"], "--json takes no value"),
    "choice": (["--verify", "some", "in.nc"], "--verify takes none|sample|full, not 'some'"),
    "choice, empty": (["--verify=", "in.nc"], "--verify takes none|sample|full, not ''"),
    "choice, a part": (["--verify=ful", "in.nc"], "--verify takes none|sample|full, not 'ful'"),
    "number": (["-jx", "in.nc"], "--threads: 'x' is not an integer"),
    "number out of range": (["-j0", "in.nc"], "--threads: '0' is not between 1 and 4096"),
    "number beyond 64 bits": (["-j", "99999999999999999999", "in.nc"], "--threads: "),
    "size": (["--memory", "12 parsecs", "in.nc"], "--memory: '12 parsecs' is not a size"),
    "size of nothing": (["--memory=0", "in.nc"], "--memory: '0' is less than 1"),
    "a value is swallowed": (["--sample", "in.nc"], "no input file"),
    "nothing": ([], "no input file"),
    "nothing to check": (["--check", "in.nc"], "--check compares INPUT with OUTPUT; name both"),
    "only options": (["-v"], "no input file"),
    "standard input": (["-", "out.zarr"], "@- reads paths from standard input"),
    "overflow of nothing": (["--overflow", "saturate", "in.nc"], "--overflow needs --dtype or --unpack"),
    "a pattern alone": (["*.nc"], "is a pattern; name the output too"),
}


@pytest.mark.every
@pytest.mark.parametrize("args, sentence", WRONG.values(), ids=WRONG)
def test_wrong_command_line(work, args, sentence):
    done = run(*args, cwd=work)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("nc2zarr: ") and done.stderr.count("\n") == 1
    assert sentence in done.stderr and "nc2zarr --help" in done.stderr
    assert os.listdir(work) == ["in.nc"]


@pytest.mark.parametrize("url", ["ftp://host/out.zarr", "az://bucket/out.zarr"])
def test_other_urls_are_refused(work, url):
    done = run("in.nc", url, cwd=work)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(rf"nc2zarr: {url}: cannot be opened: use .*\n", done.stderr)
    assert os.listdir(work) == ["in.nc"]


# ---- what is accepted -----------------------------------------------------------------------------

def threads_of(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["threads"]


@pytest.mark.every
@pytest.mark.parametrize("args", [["-j1"], ["-j", "1"], ["--threads=1"], ["--threads", "1"], ["-vj1"],
                                  ["-j9", "--threads=1"]], ids=" ".join)
def test_spellings_of_a_value(work, args):
    assert threads_of(run("--json", "--dry-run", *args, "in.nc", cwd=work)) == 1


def test_options_may_stand_anywhere(work):
    done = run("in.nc", "--json", "out.zarr", "--zarr-format", "2", cwd=work)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["output"]["zarr_format"] == 2
    assert (work / "out.zarr" / ".zgroup").exists()


def test_two_dashes_end_the_options(work):
    (work / "--json").write_bytes(classic_file())
    done = run("-q", "--", "--json", "--help", cwd=work)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert (work / "--help" / "zarr.json").exists()


def test_variables_is_variable(work):
    one, other = (run("--json", "--dry-run", o, "v", "in.nc", cwd=work) for o in ("--variable", "--variables"))
    assert one.returncode == other.returncode == 0, one.stderr
    assert [v["name"] for v in json.loads(one.stdout)["variables"]] == ["v"]
    assert json.loads(one.stdout)["variables"] == json.loads(other.stdout)["variables"]


@pytest.mark.every
@pytest.mark.parametrize("name, made", [("in.nc", "in.zarr"), ("in.nc4", "in.zarr"), ("a.b.NC", "a.b.zarr"),
                                        ("plain", "plain.zarr"), ("x.Height", "x.Height.zarr"),
                                        (".nc", ".nc.zarr")])
def test_default_output_is_in_the_working_folder(work, name, made):
    (work / "elsewhere").mkdir()
    (work / "elsewhere" / name).write_bytes(classic_file())
    done = run("-q", f"elsewhere/{name}", cwd=work)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(work)) == sorted(["in.nc", "elsewhere", made])
    assert (work / made / "zarr.json").exists()


def test_an_output_that_exists_is_refused(work):
    assert run("-q", "in.nc", "out.zarr", cwd=work).returncode == 0
    again = run("in.nc", "out.zarr", cwd=work)
    assert again.returncode == 1
    assert "out.zarr" in again.stderr and "--overwrite" in again.stderr
    assert run("-q", "--overwrite", "in.nc", "out.zarr", cwd=work).returncode == 0


def test_a_dry_run_writes_nothing(work):
    done = run("--dry-run", "in.nc", cwd=work)
    assert done.returncode == 0, done.stderr
    assert "planned" in done.stdout and "xarray" not in done.stdout
    assert os.listdir(work) == ["in.nc"]


def test_quiet_says_nothing(work):
    done = run("-q", "in.nc", cwd=work)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_verbose_says_more(work):
    plain, verbose = run("in.nc", "a.zarr", cwd=work), run("-v", "in.nc", "b.zarr", cwd=work)
    assert plain.returncode == verbose.returncode == 0
    assert "Where the time went" in verbose.stdout and "Where the time went" not in plain.stdout


def test_the_line_that_opens_the_store_is_quoted(work):
    name = "it's \"one\" $HOME.zarr"
    done = run("in.nc", name, cwd=work)
    assert done.returncode == 0, done.stderr
    line = done.stdout.splitlines()[-1].strip()
    words = subprocess.run(["sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True)
    python, dash_c, code = words.stdout.splitlines()
    assert (python, dash_c) == ("python3", "-c")
    opened = []
    fake = type("xarray", (), {"open_zarr": staticmethod(opened.append)})
    exec(code.replace("import xarray; ", ""), {"xarray": fake, "print": lambda *_: None})
    assert opened == [name]


def test_a_full_standard_output_is_a_failure(work):
    with open("/dev/full", "w") as full:
        done = subprocess.run([NC2ZARR, "in.nc"], cwd=work, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "standard output: the result could not be written: No space left on device" in done.stderr


def test_escapes_in_names_do_not_reach_the_terminal(work):
    done = run("no\033[31msuch\nfile.nc", "out.zarr", cwd=work)
    assert done.returncode == 1
    assert "\033" not in done.stderr and done.stderr.count("\n") == 1


# ---- one table: help, man page, completion --------------------------------------------------------

def test_bash_completes_every_option():
    script = run("--generate", "bash").stdout
    complete = subprocess.run(
        ["bash", "-c", 'eval "$1"; COMP_WORDS=(nc2zarr -); COMP_CWORD=1; compopt() { :; }; _nc2zarr; '
                       'printf "%s\\n" "${COMPREPLY[@]}"', "bash", script], capture_output=True, text=True, check=True)
    assert set(complete.stdout.split()) == manual.options_of_help("nc2zarr")
    values = subprocess.run(
        ["bash", "-c", 'eval "$1"; COMP_WORDS=(nc2zarr --verify = f); COMP_CWORD=3; compopt() { :; }; _nc2zarr; '
                       'printf "%s\\n" "${COMPREPLY[@]}"', "bash", script], capture_output=True, text=True, check=True)
    assert values.stdout.split() == ["full"]


def test_zsh_completes_every_option():
    script = run("--generate", "zsh").stdout
    assert script.startswith("#compdef nc2zarr\n")
    assert set(re.findall(r"^    '(?:\*|\([^)]*\))(--?[a-z0-9-]*[a-z0-9])", script, re.M)) == manual.options_of_help("nc2zarr")


def test_fish_completes_every_option():
    script = run("--generate", "fish").stdout
    names = {"--" + n for n in re.findall(r" -l ([a-z0-9-]+)", script)} | {"-" + c for c in re.findall(r" -s (\w)", script)}
    assert names == manual.options_of_help("nc2zarr")


def test_version_names_the_libraries():
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.startswith(f"nc2zarr (Chunkmill) {(paths.ROOT / 'VERSION').read_text().strip()}\n")
    for library in ("netCDF", "HDF5", "zstd"):
        assert library in done.stdout


# ---- --json ---------------------------------------------------------------------------------------

def check_against_schema(text):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))


@pytest.mark.parametrize("args, outcome, status", [
    (["in.nc"], "done", 0),
    (["-v", "--verify", "full", "in.nc"], "done", 0),
    (["--zarr-format", "2", "--codec", "none", "in.nc"], "done", 0),
    (["--shards", "auto", "in.nc"], "done", 0),
    (["--dry-run", "in.nc"], "planned", 0),
    (["absent.nc"], "failed", 1),
    (["--chunks", "nosuch=3", "in.nc"], "failed", 2),
], ids=lambda v: " ".join(v) if isinstance(v, list) else str(v))
def test_json_holds_against_the_schema(work, args, outcome, status):
    done = run("--json", *args, cwd=work)
    assert done.returncode == status, done.stderr
    document = json.loads(done.stdout)
    assert document["outcome"] == outcome
    assert (document["error"] is None) == (status == 0)
    assert document["output"]["written"] == (outcome == "done")
    if status:
        assert done.stderr == f"nc2zarr: {document['error']['message']}\n"
    else:
        assert [(v["name"], v["shape"], v["type"]) for v in document["variables"]] == [("v", [2, 3], "float32")]
    check_against_schema(done.stdout)


def test_json_of_a_check(work):
    (work / "other.nc").write_bytes(classic_file(first=9.0))
    assert run("-q", "in.nc", "out.zarr", cwd=work).returncode == 0
    before = sorted(p.name for p in work.rglob("*"))
    for name, outcome, status in ("in.nc", "same", 0), ("other.nc", "differs", 3):
        done = run("--json", "--check", name, "out.zarr", cwd=work)
        assert done.returncode == status, done.stderr
        document = json.loads(done.stdout)
        assert document["outcome"] == outcome
        assert document["output"]["written"] is False
        assert bool(document["verification"]["differences"]) == (status == 3)
        check_against_schema(done.stdout)
    assert sorted(p.name for p in work.rglob("*")) == before
    plain = run("--check", "other.nc", "out.zarr", cwd=work)
    assert plain.returncode == 3
    assert "difference: " in plain.stderr and "xarray" not in plain.stdout


def test_schema_describes_every_field():
    def walk(node):
        if isinstance(node, dict):
            for name, field in node.get("properties", {}).items():
                assert field.get("description"), name
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    walk(json.loads(SCHEMA.read_text()))


def test_json_of_a_real_file(sample, tmp_path):
    done = run("--json", sample, tmp_path / "out.zarr")
    assert done.returncode == 0, done.stderr
    check_against_schema(done.stdout)
    document = json.loads(done.stdout)
    assert document["decoded_nbytes"] == sum(v["decoded_nbytes"] for v in document["variables"]) > 90e6
    files = [p for p in (tmp_path / "out.zarr").rglob("*") if p.is_file()]
    assert document["output"]["nobjects"] == len(files)
    assert {d["name"] for v in document["variables"] for d in v["dimensions"] if d["unlimited"]} == {"time"}


# ---- progress and signals -------------------------------------------------------------------------

def test_progress_without_a_terminal(work):
    quiet = run("in.nc", "a.zarr", cwd=work)
    assert quiet.returncode == 0 and quiet.stderr == ""
    never = run("--progress", "never", "in.nc", "b.zarr", cwd=work)
    assert never.returncode == 0 and never.stderr == ""
    always = run("--progress", "always", "in.nc", "c.zarr", cwd=work)
    assert always.returncode == 0
    lines = always.stderr.splitlines()
    assert len(lines) >= 2 and all(line.startswith("nc2zarr: ") for line in lines)
    assert "\r" not in always.stderr and "\033" not in always.stderr


def on_terminal(args, cwd):
    return terminal.shown([NC2ZARR, *args], cwd)


@pytest.mark.long(ci=1)
def test_progress_is_a_bar_on_a_terminal(sample, tmp_path):
    seen = on_terminal(["--progress", "always", "-j1", "--codec", "zstd:12", "--variable", "msl", sample,
                        tmp_path / "out.zarr"], tmp_path)
    frames = seen.split("\r")
    assert any(re.match(r"\[=*>? *\] converting: [\d.]+ \w+ of [\d.]+ \w+ \([\d.]+ %\)", f) for f in frames), frames
    assert seen.endswith("\r\033[K")
    assert all(len(f.replace("\033[K", "")) < 80 for f in frames)


def test_no_bar_on_a_terminal_when_told(work):
    assert on_terminal(["--progress", "never", "in.nc", "a.zarr"], work) == ""
    assert on_terminal(["-q", "in.nc", "b.zarr"], work) == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_stops_says_how_to_go_on_and_leaves_nothing_that_opens(sample, tmp_path, number):
    process = subprocess.Popen([NC2ZARR, "-j1", "--codec", "zstd:19", sample, "out.zarr"], cwd=tmp_path,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tool.wait_for_handler(process, number)
    while process.poll() is None and not any(p.is_file() for p in (tmp_path / "out.zarr").rglob("c/**/*")):
        time.sleep(0.002)
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    err = tool.spoken(err)
    assert process.returncode == -number, err
    assert out == ""
    assert re.fullmatch(r"nc2zarr: out\.zarr: stopped by SIG\w+; the same command with --resume goes on\n", err)
    assert not (tmp_path / "out.zarr" / "zarr.json").exists()


def test_a_current_folder_that_was_removed(work, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(["sh", "-c", 'rmdir "$PWD" && exec "$0" -q "$1" out.zarr', NC2ZARR, str(work / "in.nc")],
                          capture_output=True, text=True, cwd=gone)  # fmt: skip
    assert done.returncode == 1 and "the current folder has been removed" in done.stderr, done
