"""Starting servers and schedulers for tests."""

import random
import socket

import pytest

try:
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        EPHEMERAL = int(f.read().split()[0])
except OSError:
    EPHEMERAL = 32768


def is_free(port):
    with socket.socket() as s:
        try:
            s.bind(("", port))
        except OSError:
            return False
    return True


def free_ports(n=1, apart=()):
    """The first of N free ports side by side, with those that lie APART above each also free.

    All lie below the ports that the kernel gives to clients, for each connection of another test may take one of those
    between this call and the server's start.
    """
    offsets = (0, *apart)
    for _ in range(1000):
        first = random.randrange(10000, max(EPHEMERAL, 20000) - max(offsets) - n)
        if all(is_free(first + i + k) for i in range(n) for k in offsets):
            return first
    raise RuntimeError(f"no {n} free ports side by side")


class NotStarted(Exception):
    """With what the daemon said last."""


def started(kind, new_folder, times=3):
    """A daemon of KIND; the test is skipped where it is missing or does not run, for the tools cannot answer for that.

    Another process may take a port before the daemon does, so it is tried anew, elsewhere.
    """
    if kind.missing():
        pytest.skip(kind.missing())
    while True:
        daemon, times = kind(new_folder(kind.__name__)), times - 1
        try:
            daemon.start()
        except NotStarted as e:
            daemon.stop()
            if not times:
                pytest.skip(str(e))
        else:
            return daemon
