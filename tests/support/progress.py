"""A line every ten seconds, and the name of each test that fails, for whoever waits for a long run: a pytest plugin.

CHUNKMILL_PROGRESS names the file descriptor that gets the lines; without it there are none.
"""

import os
import threading
import time

PERIOD = 10  # seconds


class Progress:
    def __init__(self, fd):
        self.fd, self.done, self.failed, self.total = fd, 0, 0, 0
        self.start, self.over = time.monotonic(), threading.Event()

    def pytest_sessionstart(self):
        threading.Thread(target=self.tell, daemon=True).start()

    def pytest_xdist_node_collection_finished(self, node, ids):
        self.total = len(ids)

    def pytest_collection_finish(self, session):
        self.total = self.total or len(session.items)

    def pytest_runtest_logreport(self, report):
        self.done += report.when == "teardown"
        self.failed += report.failed
        if report.failed:
            os.write(self.fd, f"  failed: {report.nodeid}\n".encode())

    def pytest_sessionfinish(self):
        self.over.set()

    def tell(self):
        while not self.over.wait(PERIOD):
            seconds = time.monotonic() - self.start
            count = f"{self.done} of {self.total} tests" if self.total else "collecting tests"
            os.write(self.fd, f"  {count}, {self.failed} failed, {seconds:.0f} s\n".encode())


def install(config):
    fd = os.environ.get("CHUNKMILL_PROGRESS")
    if fd and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(int(fd)), "progress")
