"""A real Slurm of one machine: munged, slurmctld and two slurmd, so that a job can span "nodes"."""

import contextlib
import os
import shutil
import socket
import subprocess
import time

from support.daemons import NotStarted, free_ports

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "squeue", "scancel", "scontrol", "sinfo")

CONF = """ClusterName=loop
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge/socket
CryptoType=crypto/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool-%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=2
MinJobAge=300
SchedulerParameters=sched_interval=1,bf_interval=1
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cpus} State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


class Cluster:
    def __init__(self, directory):
        self.dir = directory
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH"))}
        self.env["PATH"] += ":/usr/sbin:/sbin"
        self.env["SLURM_CONF"] = str(directory / "slurm.conf")
        self.daemons = []

    @staticmethod
    def missing():
        """A reason to skip, or None."""
        absent = [p for p in PROGRAMS if not shutil.which(p, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
        if absent:
            return f"Slurm is not installed: {', '.join(absent)}"
        return None if os.geteuid() == 0 else "Slurm's daemons need root"

    def start(self):
        host = socket.gethostname().split(".")[0]
        for name in ("munge", "state", "spool-n1", "spool-n2"):
            (self.dir / name).mkdir(parents=True)
        for parent in (self.dir, *self.dir.parents):  # munged insists on folders that others may pass
            if parent.owner() == "root" and str(parent).startswith("/tmp/"):
                parent.chmod(0o755)
        key = self.dir / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        first = free_ports(3)
        conf = CONF.format(host=host, dir=self.dir, ports=range(first, first + 3), cpus=max(os.cpu_count(), 4))
        (self.dir / "slurm.conf").write_text(conf)
        m = self.dir / "munge"
        files = [f"--{what}-file={m}/{what}" for what in ("pid", "seed", "log")]
        self.daemon("munged", "-F", "--force", f"--key-file={key}", f"--socket={m}/socket", *files)
        self.begin(lambda: (m / "socket").is_socket(), "munged")
        self.daemon("slurmctld", "-D", "-f", self.env["SLURM_CONF"])
        for node in ("n1", "n2"):
            self.daemon("slurmd", "-D", "-N", node, "-f", self.env["SLURM_CONF"])
        self.begin(lambda: self.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() == "2", "idle nodes")

    def begin(self, ready, what, seconds=300):
        end = time.monotonic() + seconds
        while not ready():
            dead = [d.args[0] for d in self.daemons if d.poll() is not None]
            if dead or time.monotonic() > end:
                said = (self.dir / f"log-{len(self.daemons) - 1}").read_text(errors="replace")[-500:]
                raise NotStarted(f"Slurm does not start: no {what}, dead: {', '.join(dead) or 'none'}: {said}")
            time.sleep(0.05)

    def daemon(self, *argv):
        log = open(self.dir / f"log-{len(self.daemons)}", "w")
        self.daemons.append(subprocess.Popen(argv, env=self.env, stdout=log, stderr=log))

    def stop(self):
        self.run("scancel", "-u", "root")
        for d in reversed(self.daemons):
            d.terminate()
        for d in self.daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                d.wait(10)
            d.kill()

    def run(self, *argv, timeout=300, **kw):
        return subprocess.run(list(map(str, argv)), env=self.env, capture_output=True, text=True, timeout=timeout, **kw)

    @staticmethod
    def wait(ready, what, seconds=300):
        end = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < end, f"waited in vain for {what}"
            time.sleep(0.05)

    def submit(self, *argv):
        done = self.run("sbatch", "--parsable", *argv)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def states(self, job):
        return self.run("squeue", "-h", "-r", "-j", job, "-o", "%K %T").stdout.split("\n")

    def is_over(self, job):
        """Whether no task of JOB is left; those that were requeued need not wait two minutes for their turn."""
        left = self.run("squeue", "-h", "-r", "-j", job, "-o", "%A %T %r").stdout.split("\n")
        for line in filter(None, left):
            number, state, reason = line.split(maxsplit=2)
            if state == "PENDING" and reason == "BeginTime":
                self.run("scontrol", "update", f"JobId={number}", "StartTime=now")
        return not any(left)

    def drain(self, job, seconds=300):
        """Waits for the end of all tasks of JOB."""
        self.wait(lambda: self.is_over(job), f"the end of job {job}", seconds)
