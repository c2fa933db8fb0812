"""Parts under the schedulers and launchers that sites have: real ones, where they are installed."""

import json
import random
import shlex
import re
import shutil
import subprocess
import time

import jsonschema
import netCDF4
import numpy as np
import pytest

from support import daemons, failio, paths, slurm, stores, tool
from support import readbench as rb

CHUNKS = ("--chunks", "time=4,lat=32,lon=32", "-j", "1")
SLOW, QUICK = ("--codec", "zstd:19", *CHUNKS), ("--codec", "zstd:1", *CHUNKS)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    c = daemons.started(slurm.Cluster, tmp_path_factory.mktemp)
    yield c
    c.stop()


@pytest.fixture(scope="session")
def noise(tmp_path_factory):
    """Some seconds of compression."""
    path = tmp_path_factory.mktemp("noise") / "noise.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for d, n in (("time", None), ("lat", 128), ("lon", 128)):
            ds.createDimension(d, n)
        ds.createVariable("time", "f8", ("time",))[:] = np.arange(64)
        data = np.random.default_rng(5).normal(size=(64, 128, 128)).astype("f4").round(1)
        ds.createVariable("tas", "f4", ("time", "lat", "lon"), chunksizes=(1, 128, 128))[:] = data
    return path


@pytest.fixture(scope="session")
def one(noise, tmp_path_factory):
    out = tmp_path_factory.mktemp("one") / "one.zarr"
    tool.nc2zarr("-q", *SLOW, noise, out).ok()
    return out


@pytest.fixture(scope="session")
def quick(noise, tmp_path_factory):
    out = tmp_path_factory.mktemp("quick") / "quick.zarr"
    tool.nc2zarr("-q", *QUICK, noise, out).ok()
    return out


def nobjects(out):
    return sum(1 for p in out.rglob("*") if p.is_file())


@pytest.mark.long(ci=1)
def test_srun(cluster, noise, one, tmp_path):
    """Nothing but srun: each task is a part, each object is written once."""
    out = tmp_path / "o.zarr"
    done = cluster.run("srun", "-n", 4, "-l", tool.program("nc2zarr"), "--verify", "none", *SLOW, noise, out)
    assert done.returncode == 0, done.stderr
    for rank in range(4):
        assert f"{rank}: nc2zarr: part {rank + 1} of 4, by srun (SLURM_PROCID={rank})" in done.stderr
    assert done.stdout.count("it was the last: the store is complete") == 1
    stores.same_files(one, out)
    written = [int(line.split(" file")[0].split()[-1].replace(",", "")) for line in done.stdout.splitlines() if " file" in line and "input" in line]
    assert sum(written) == nobjects(out)
    again = cluster.run("srun", "-n", 4, tool.program("nc2zarr"), *SLOW, noise, out)
    assert again.returncode == 0 and again.stdout.count("was done before; the store is complete") == 4
    # A task alone is no part, and neither is one that is told so.
    for arguments in (("-n", 1, tool.program("nc2zarr")), ("-n", 2, tool.program("nc2zarr"), "--part", "none")):
        alone = cluster.run("srun", *arguments, "-q", *SLOW, noise, out)
        assert alone.returncode != 0 and "exists" in alone.stderr and "nc2zarr: part" not in alone.stderr


@pytest.mark.long(ci=1)
def test_sbatch_without_srun_is_one_process(cluster, noise, one, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\nexec {tool.program('nc2zarr')} {' '.join(SLOW)} {noise} {tmp_path / 'o.zarr'}\n")
    job = cluster.submit("-n", 4, "-o", tmp_path / "log", script)
    cluster.drain(job)
    log = (tmp_path / "log").read_text()
    assert "one process: this job has 4 tasks, but no step; srun starts one in each" in log, log
    stores.same_files(one, tmp_path / "o.zarr")
    assert not (tmp_path / "o.zarr.chunkmill").exists()


def missing_of(status):
    return [p["number"] for p in status["parts"] if p["state"] in ("missing", "stale")]


def disturb(cluster, first, double, rng):
    """Tasks are requeued and cancelled, in any state, any number of times."""
    for _ in range(rng.randrange(1, 7)):
        time.sleep(rng.choice((0, 0, rng.uniform(0, 0.5))))
        for job, command in ((first, "requeue"), (double, "cancel"), (double, "requeue"), (first, "cancel")):
            tasks = [s.split()[0] for s in cluster.states(job) if s.endswith("RUNNING")]
            if not tasks or rng.random() < 0.5:
                continue
            task = f"{job}_{rng.choice(tasks)}"
            cluster.run(*(("scontrol", "requeue", task) if command == "requeue" else ("scancel", task)))


@pytest.mark.long(ci=1)
def test_an_array_with_accidents_and_a_rerun_of_two(cluster, noise, one, tmp_path):
    """Requeued, cancelled and doubled tasks; then 3 and 7 alone, which counts two and is eight."""
    for round_ in range(paths.tries(1, 4, 40)):
        rng = random.Random(round_)
        here = tmp_path / str(round_)
        here.mkdir()
        out, script = here / "o.zarr", here / "job.sh"
        script.write_text(
            f"#!/bin/sh\ncase $SLURM_ARRAY_TASK_ID in 3 | 7) [ -e {here}/again ] || exit 1;; esac\n"
            f"exec {tool.program('nc2zarr')} --part auto --verify none {' '.join(SLOW)} {noise} {out}\n"
        )
        first = cluster.submit("--array=1-8", "--requeue", "-o", here / "a.%a", "--open-mode=append", script)
        double = cluster.submit("--array=1-8", "--requeue", "-o", here / "b.%a", "--open-mode=append", script)
        disturb(cluster, first, double, rng)
        cluster.drain(first)
        cluster.drain(double)

        def logs():
            return {p.name: p.read_text() for p in here.glob("[abc].*")}

        status = tool.nc2zarr("--parts-status", "--json", out).json()
        assert status["nparts"] == 8 and status["launcher"] == "a Slurm array", (status, logs())
        missing = missing_of(status)
        assert {3, 7} <= set(missing) and not tool.opens_as_store(out), (status, logs())
        assert f"sbatch --array={','.join(map(str, missing))} JOBSCRIPT" in tool.nc2zarr("--parts-status", out).ok().out
        (here / "again").touch()
        for array in (set(missing) - {3, 7}, {3, 7}):
            if array:
                cluster.drain(cluster.submit(f"--array={','.join(map(str, sorted(array)))}", "-o", here / "c.%a", script))
        assert tool.nc2zarr("--parts-status", "--json", out).json()["outcome"] == "complete", logs()
        assert "one of 8 parts, by a Slurm array" in logs()["c.3"] or "index 3" in logs()["c.3"], logs()
        stores.same_files(one, out)
        assert sorted(p.name for p in (here / "o.zarr.chunkmill").iterdir()) == ["complete", "plan"], logs()
        shutil.rmtree(here)


def test_mpirun(noise, one, tmp_path):
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    out = tmp_path / "o.zarr"
    argv = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4", tool.program("nc2zarr"), *SLOW]
    done = subprocess.run([*argv, noise, out], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("of 4, by mpirun (OMPI_COMM_WORLD_RANK=") == 4
    stores.same_files(one, out)


@pytest.mark.parametrize("variables", [("PBS_ARRAY_INDEX", 1), ("JOB_COMPLETION_INDEX", 0), ("AWS_BATCH_JOB_ARRAY_INDEX", 0), ("PARALLEL_SEQ", 1)])
def test_an_index_without_a_count_needs_parts(noise, quick, tmp_path, variables):
    name, first = variables
    out = tmp_path / "o.zarr"

    def task(index, *args):
        return tool.nc2zarr("--part", "auto", "--verify", "none", *args, *QUICK, noise, out, env={name: str(index)})

    task(first, "-q").fails(2, "--parts")
    assert not out.exists()
    for k in (2, 0, 1):
        assert "3 parts" in task(first + k, "--parts", "3").ok().err
    stores.same_files(quick, out)
    # Without --part auto an array's task does its own job, as tasks of arrays mostly do.
    assert "exists" in tool.nc2zarr("-q", *QUICK, noise, out, env={name: str(first)}).err


def test_auto_without_a_launcher_is_one_process_and_says_so(noise, quick, tmp_path):
    done = tool.nc2zarr("--part", "auto", *QUICK, noise, tmp_path / "o.zarr").ok()
    assert done.err.splitlines()[0] == "nc2zarr: no launcher was found: this process does everything", done.err
    stores.same_files(quick, tmp_path / "o.zarr")
    assert not (tmp_path / "o.zarr.chunkmill").exists()


@pytest.mark.long(ci=1)
def test_parts_under_gnu_parallel_or_xargs(noise, one, tmp_path):
    out = tmp_path / "o.zarr"
    subprocess.run(
        f"seq 5 | xargs -P 3 -I K {shlex.join([tool.program('nc2zarr'), '-q', '--part', 'K/5', '--verify', 'none', *SLOW, str(noise), str(out)])}",
        shell=True,
        check=True,
        timeout=300,
    )
    stores.same_files(one, out)


JOBS = paths.ROOT / "scripts" / "jobs"


@pytest.mark.long(ci=1)
def test_the_job_script_of_an_array(cluster, noise, one, tmp_path):
    out = tmp_path / "o.zarr"
    cluster.env["NC2ZARR"] = tool.program("nc2zarr")
    job = cluster.submit("--array=0-3", "--cpus-per-task=1", "--mem=0", "-o", tmp_path / "%a", JOBS / "slurm-array.sh", *SLOW, noise, out)
    cluster.drain(job)
    logs = {p.name: p.read_text() for p in tmp_path.iterdir() if p.is_file()}
    assert all("one of 4 parts, by a Slurm array" in log for log in logs.values()), logs
    stores.same_files(one, out)


@pytest.mark.long(ci=1)
def test_the_job_script_of_a_step(cluster, noise, one, tmp_path):
    out = tmp_path / "o.zarr"
    cluster.env["NC2ZARR"] = tool.program("nc2zarr")
    job = cluster.submit("--ntasks=3", "--cpus-per-task=1", "--mem-per-cpu=0", "-o", tmp_path / "log", JOBS / "slurm-srun.sh", *SLOW, noise, out)
    cluster.drain(job)
    log = (tmp_path / "log").read_text()
    assert log.count("of 3, by srun") == 3, log
    stores.same_files(one, out)


@pytest.mark.long(ci=1)
def test_the_job_script_of_mpi(noise, one, tmp_path):
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    env = tool.environment({"NC2ZARR": tool.program("nc2zarr"), "MPIRUN": "mpirun --allow-run-as-root --oversubscribe -n 3"})
    subprocess.run([JOBS / "mpi.sh", "-q", *SLOW, noise, tmp_path / "o.zarr"], env=env, check=True, timeout=300)
    stores.same_files(one, tmp_path / "o.zarr")


@pytest.mark.long(ci=1)
def test_the_job_script_of_pbs(noise, one, tmp_path):
    """No PBS can be had: its variables, and the directives as PBS reads them."""
    text = (JOBS / "pbs-array.sh").read_text()
    subprocess.run(["bash", "-n", JOBS / "pbs-array.sh"], check=True)
    first, last = re.search(r"^#PBS -J (\d+)-(\d+)$", text, re.M).groups()
    assert first == "1" and f"--parts {last} " in text
    short = tmp_path / "job.sh"
    short.write_text(text.replace(f"--parts {last} ", "--parts 2 "))
    for k in (2, 1):
        env = {"NC2ZARR": tool.program("nc2zarr"), "PBS_ARRAY_INDEX": str(k), "PBS_O_WORKDIR": str(tmp_path)}
        env["ARGS"] = f"-q {' '.join(SLOW)} {noise} o.zarr"
        subprocess.run(["bash", short], env=tool.environment(env), check=True, timeout=300)
    stores.same_files(one, tmp_path / "o.zarr")


def test_the_manifest_of_kubernetes():
    """As many completions as parts, each with an index."""
    text = (JOBS / "kubernetes.yaml").read_text()
    assert re.search(r"^  completionMode: Indexed$", text, re.M)
    completions = re.search(r"^  completions: (\d+)$", text, re.M).group(1)
    command = json.loads(re.search(r"command: (\[.*\])", text).group(1))
    assert command[command.index("--parts") + 1] == completions
    assert command[command.index("--part") + 1] == "auto"
    shown = tool.run("nc2zarr", "--help").ok().out
    assert all(a in shown for a in command if a.startswith("--"))


RANK = ("--sample", "1x8x8", "--batch", "4", "--step-time", "1ms", "--batches", "3")


@pytest.mark.long(ci=1)
def test_readbench_takes_its_rank_from_the_launcher(one, tmp_path):
    argv = (*RANK, "--no-out", "--json", f"{one}::tas")
    env = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
    assert "rank 1 of 2, by mpirun" in tool.run("readbench", *argv, env=env).ok().err
    assert "rank" not in tool.run(rb.BARE, *argv, "--rank", "0", env=env).ok().err
    for odd in (("--tune",), ("--sweep", "workers=1,2"), ("--overwrite",)):
        tool.run("readbench", "-q", *odd, *RANK, "--out", tmp_path / "o", f"{one}::tas", env=env).fails(2, odd[0], "2 ranks")
    assert not list(tmp_path.iterdir())


def check_ranks(out, n):
    """A report of each, and one of all, whose sums are those of the others."""
    reports = [json.loads((out / f"rank-{k}" / "summary.json").read_text())["sessions"][0] for k in range(n)]
    together = json.loads((out / "ranks.json").read_text())
    schema = json.loads((paths.ROOT / "tools/schema/readbench-ranks.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(together)
    assert together["ranks"] == n == len(together["rank"])
    assert together["samples"] == pytest.approx(sum(r["rates"]["samples"] for r in reports))
    assert [r["wait_share"] for r in together["rank"]] == pytest.approx([r["training"]["wait_share"] for r in reports])
    assert not list(out.glob("rank-*/*.here"))


@pytest.mark.long(ci=1)
def test_ranks_under_srun_are_one_report(cluster, one, tmp_path):
    out = tmp_path / "o"
    done = cluster.run("srun", "-n", 3, tool.program("readbench"), *RANK, "--out", out, f"{one}::tas")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("3 ranks, whose epochs began together") == 1
    check_ranks(out, 3)
    again = cluster.run("srun", "-n", 3, tool.program("readbench"), "-q", *RANK, "--out", out, f"{one}::tas")
    assert again.returncode != 0 and again.stderr.count("exists already") == 3, again.stderr


@pytest.mark.long(ci=1)
def test_ranks_under_mpirun_are_one_report(one, tmp_path):
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    out = tmp_path / "o"
    argv = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", tool.program("readbench"), *RANK, "--out", out, f"{one}::tas"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2 ranks, whose epochs began together") == 1
    check_ranks(out, 2)


def start_rank(k, n, store, out, *arguments):
    env = tool.environment({"OMPI_COMM_WORLD_RANK": str(k), "OMPI_COMM_WORLD_SIZE": str(n)})
    argv = [tool.program(rb.BARE), "-q", *RANK, *arguments, "--out", out, f"{store}::tas"]
    return subprocess.Popen([str(a) for a in argv], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_no_rank_begins_before_all_have_come(one, tmp_path):
    """And one that comes late is waited for."""
    out = tmp_path / "o"
    first = start_rank(0, 2, one, out)
    here = out / "rank-0" / "epoch-0.here"
    while not here.exists():
        assert first.poll() is None
        time.sleep(0.01)
    with pytest.raises(subprocess.TimeoutExpired):
        first.wait(1)
    assert not (out / "rank-0" / "epoch-1.here").exists()
    second = start_rank(1, 2, one, out)
    results = [p.communicate(timeout=300)[1] for p in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], results
    check_ranks(out, 2)


def test_a_rank_that_never_comes_ends_the_others(one, tmp_path):
    p = start_rank(1, 2, one, tmp_path / "o", "--rank-wait", "1s")
    err = p.communicate(timeout=300)[1]
    assert p.returncode == 1 and "rank 0 did not come to epoch 1 within 1 s" in err, err
    # A rank that comes later learns of it at once, and does not start work that others gave up.
    p = start_rank(0, 2, one, tmp_path / "o")
    err = p.communicate(timeout=300)[1]
    assert p.returncode == 1 and "rank 1 failed: rank 0 did not come" in err, err


@pytest.mark.long(ci=1)
def test_a_rank_that_fails_or_is_killed_ends_the_others(one, tmp_path):
    fails = [start_rank(0, 2, one, tmp_path / "a", "--rank-wait", "60s"), start_rank(1, 2, tmp_path / "nothing.zarr", tmp_path / "a")]
    err = [p.communicate(timeout=300)[1] for p in fails]
    assert [p.returncode for p in fails] == [1, 1] and "rank 1 failed: " in err[0], err
    long = ("--batches", "60", "--step-time", "20ms", "--rank-wait", "10s")
    both = [start_rank(k, 2, one, tmp_path / "b", *long) for k in (0, 1)]
    while not all((tmp_path / "b" / f"rank-{k}" / "epoch-0.here").exists() for k in (0, 1)):
        assert both[1].poll() is None
        time.sleep(0.01)
    both[1].kill()
    err = both[0].communicate(timeout=300)[1]
    both[1].communicate()
    assert both[0].returncode == 1 and "rank 1 did not come to epoch 2 within 10 s" in err, err
    assert not (tmp_path / "b" / "ranks.json").exists()


@pytest.mark.long(ci=1)
def test_a_rank_leaves_no_part_of_a_file(one, tmp_path):
    """Renaming fails: of the first file that tells the others, and so of the run."""
    out = tmp_path / "o"
    argv = ("-q", *RANK, "--out", out, "--rank-wait", "1s", f"{one}::tas")
    env = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    done = failio.inject("readbench", *argv, root=out, state=tmp_path / "state", kind="rename", nth=1, env=env).done
    assert done.status == 1 and "epoch-0.here" in done.err, str(done)
    assert [p.name for p in (out / "rank-0").iterdir() if p.is_file()] == ["failed"]
