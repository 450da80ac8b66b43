"""A browser for tests: Chromium without a window, spoken to through a pair of pipes."""

import contextlib
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Browser:
    """One page of a headless Chromium; ``events`` is all it reported so far."""

    def __init__(self, binary, profile):
        there, self._out = os.pipe()
        self._in, back = os.pipe()
        command = [
            *("bash", "-c", f'exec "$@" 3<&{there} 4>&{back}', "bash", binary),
            *("--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}"),
            *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "about:blank"),
        ]
        self._process = subprocess.Popen(
            command,
            pass_fds=(there, back),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(there)
        os.close(back)
        # A browser that hangs is ended, and the read that waits for it fails.
        self._alarm = threading.Timer(120, self._process.kill)
        self._alarm.daemon = True
        self._alarm.start()
        self._buffer, self._last, self._session = b"", 0, None
        self.events = []
        pages = self.call("Target.getTargets")["targetInfos"]
        target = next(page["targetId"] for page in pages if page["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Send a command of the DevTools protocol and wait for its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._last:
            self.events.append(answer)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def _read(self):
        while b"\0" not in self._buffer:
            chunk = os.read(self._in, 1 << 16)
            assert chunk, "the browser has gone"
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, width, height=900, dark=False):
        """Load a file, or what is at an address, in a window of this size."""
        self.events.clear()
        scheme = "dark" if dark else "light"
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        url = str(path) if "://" in str(path) else Path(path).resolve().as_uri()
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def evaluate(self, expression):
        """The value of a JavaScript expression; of a promise, what it comes to."""
        options = {"returnByValue": True, "awaitPromise": True}
        result = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key, text=""):
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text)

    def click(self, selector):
        """Click into the middle of the first element that matches."""
        middle = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});"
            " const {x, y, width, height} = e.getBoundingClientRect();"
            " return {x: x + width / 2, y: y + height / 2}; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **middle)

    def complaints(self):
        """Errors in the console, uncaught exceptions, refused loads."""
        self.evaluate("0")  # all that was reported before this answer is now read
        errors = []
        for event in self.events:
            method, details = event["method"], event["params"]
            if (
                method == "Runtime.exceptionThrown"
                or (method == "Runtime.consoleAPICalled" and details["type"] in ("error", "assert"))
                or (method == "Log.entryAdded" and details["entry"]["level"] == "error")
            ):
                errors.append(details)
        return errors

    def requests(self):
        """The addresses the page asked for, itself left out."""
        sent = [e["params"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        urls = [params["request"]["url"] for params in sent]
        return [url for url in urls[1:] if not url.startswith("data:")]

    def close(self):
        """End the browser."""
        self._session = None
        with contextlib.suppress(AssertionError, OSError):
            self.call("Browser.close")
        self._alarm.cancel()
        self._process.wait(20)
        os.close(self._out)
        os.close(self._in)


def started(profile):
    """A browser; None where there is none."""
    binary = next(filter(None, map(shutil.which, NAMES)), None)
    return None if binary is None else Browser(binary, profile)
