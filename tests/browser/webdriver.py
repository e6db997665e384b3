"""A headless Chromium for one test, over the W3C WebDriver protocol of chromedriver. Standard library only.

with Browser() as browser:
    browser.open("file:///report.html")
    browser.run("return document.title")
    browser.requests()        # URLs asked for since the last call
    browser.complaints()      # console errors, warnings of the security policy, exceptions since the last call
    browser.shot("build/browser/report.png")
"""
import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
        "ArrowDown": "\ue015", "Home": "\ue011", "End": "\ue010", "Shift": "\ue008", "Space": " "}


def missing():
    """The programs that are not there; an empty list: tests can run."""
    return [name for name in ("chromium", "chromedriver") if not shutil.which(name)]


class WebDriverError(Exception):
    pass


class Browser:
    def __init__(self, width=1440, height=900, dark=False, args=(), trace=""):
        """trace: categories of the browser's own trace, for tasks()."""
        self.width, self.height, self.dark, self.args, self.trace = width, height, dark, list(args), trace

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="tandem-browser-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        with open(os.path.join(self.folder, "driver.log"), "wb") as log:
            self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"], stdout=log, stderr=log, start_new_session=True)
        self.session = None
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self):
        for _ in range(200):
            try:
                if self._call("GET", "/status")["ready"]:
                    break
            except (OSError, WebDriverError):
                pass
            time.sleep(0.1)
        else:
            raise WebDriverError("chromedriver does not answer")
        args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
                "--disable-sync", "--disable-dev-shm-usage", "--disable-extensions", "--force-device-scale-factor=1",
                f"--user-data-dir={self.folder}/profile", f"--window-size={self.width},{self.height}"] + self.args
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": args, "binary": shutil.which("chromium")},
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        if self.trace:
            wanted["goog:chromeOptions"]["perfLoggingPrefs"] = {"traceCategories": self.trace}
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}}, timeout=120)
        self.session = answer["sessionId"]
        self.look(self.width, self.height, self.dark)
        self.open("about:blank")
        self.requests(), self.complaints()  # those of the page that a new browser shows

    def __exit__(self, *_):
        try:
            if self.session:
                self._call("DELETE", f"/session/{self.session}")
        except (OSError, WebDriverError):
            pass
        self.driver.terminate()
        try:
            self.driver.wait(10)
        except subprocess.TimeoutExpired:
            self.driver.kill()
            self.driver.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, method, path, body=None, timeout=60):
        data = None if method == "GET" or method == "DELETE" else json.dumps(body or {}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method, headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise WebDriverError(f"{value['error']}: {value['message'].splitlines()[0] if value['message'] else ''}") from None

    def _in(self, method, path, body=None):
        return self._call(method, f"/session/{self.session}{path}", body)

    # ---- What a person does ----

    def look(self, width=None, height=None, dark=None, media=""):
        """Size in CSS pixels, the system's colours; media="print" as on paper."""
        self.width, self.height = width or self.width, height or self.height
        self.dark = self.dark if dark is None else dark
        self.devtools("Emulation.setDeviceMetricsOverride", width=self.width, height=self.height, deviceScaleFactor=1, mobile=self.width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def open(self, url):
        self._in("POST", "/url", {"url": url})

    def find(self, css):
        return self._in("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        self._in("POST", f"/element/{self.find(css)}/click")

    def type(self, css, text):
        self._in("POST", f"/element/{self.find(css)}/value", {"text": text})

    def press(self, *names):
        """Keys by name or as characters, one after the other, to what has the focus."""
        actions = []
        for name in names:
            value = KEYS.get(name, name)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self._in("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    # ---- What is there ----

    def run(self, script, *args):
        return self._in("POST", "/execute/sync", {"script": script, "args": list(args)})

    def run_async(self, script, *args):
        """The script calls its last argument with the result."""
        return self._in("POST", "/execute/async", {"script": script, "args": list(args)})

    def wait(self, script, seconds=20):
        """Until the script returns something true, which is returned."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script)
            if value:
                return value
            if time.monotonic() > end:
                raise WebDriverError(f"waited {seconds} s for: {script}")
            time.sleep(0.05)

    def text(self, css):
        return self.run("return document.querySelector(arguments[0]).textContent", css)

    def devtools(self, command, **params):
        return self._in("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def complaints(self):
        return [f"{entry['level']}: {entry['message']}" for entry in self._in("POST", "/se/log", {"type": "browser"}) if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        urls = []
        for entry in self._in("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.append(message["params"]["request"]["url"])
        return urls

    def tasks(self, mark):
        """(Milliseconds, of them on the processor) of each task of the page's main thread since performance.mark(mark), by the browser's trace.
        The trace begins with open() and ends with this call."""
        events = []
        for entry in self._in("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Tracing.dataCollected":
                events.append(message["params"])
        began = next((e for e in events if e.get("name") == mark), None)
        if not began:
            raise WebDriverError(f"no mark '{mark}' among {len(events)} events of the trace")
        return [(e["dur"] / 1000, e["tdur"] / 1000) for e in events
                if e.get("name") == "ThreadControllerImpl::RunTask" and "tdur" in e and e["ts"] >= began["ts"] and (e["pid"], e["tid"]) == (began["pid"], began["tid"])]

    def shot(self, path, whole=False):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        params = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
            params["clip"] = {"x": 0, "y": 0, "width": self.width, "height": min(size["height"], 12000), "scale": 1}
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.devtools("Page.captureScreenshot", **params)["data"]))
