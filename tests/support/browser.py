"""A headless Chromium, driven through its debugging pipe."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

from . import memory

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The program; None where there is none, or no memory for it."""
    if memory.is_little():
        return None
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """Opens pages of local files.  What they log as errors, and requests beyond files, are kept."""

    def __init__(self, profile):
        to_browser, self.to = os.pipe()
        self.out, from_browser = os.pipe()
        # The browser reads on 3 and writes on 4; high numbers first, so that none is overwritten.
        keep = [os.dup(fd) for fd in (to_browser, from_browser)]

        def wire():
            high = [os.dup2(fd, 100 + i) for i, fd in enumerate(keep)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [
                find(),
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=wire,
            close_fds=False,
        )
        for fd in (to_browser, from_browser, *keep):
            os.close(fd)
        self.buffer, self.number, self.events = b"", 0, []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def read(self, timeout):
        end = time.monotonic() + timeout
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.out], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.out, 1 << 16)
            if not data:
                raise EOFError("the browser has ended")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, timeout=60, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read(timeout)
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width=1000, height=900, dark=False):
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=f"file://{path}")
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.read(60))

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def complaints(self):
        """Errors of scripts and of the page, and requests for anything that is no file or data."""
        found = [e for e in self.events if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")]
        for e in self.events:
            if e.get("method") == "Network.requestWillBeSent":
                url = e["params"]["request"]["url"]
                if not url.startswith(("file://", "data:")):
                    found.append(url)
        return found

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def picture(self, path, full=True, bottom=None):
        """Of the page, down to BOTTOM."""
        clip = {} if bottom is None else {"clip": {"x": 0, "y": 0, "width": self.evaluate("innerWidth"), "height": bottom, "scale": 1}}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full, **clip)["data"]
        path.write_bytes(base64.b64decode(data))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def close(self):
        os.close(self.to)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
