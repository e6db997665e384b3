"""What the tests of the page share: stories that are told one after another, programs that serve, and an API server's answers.

A file story_*.py is a list of functions marked @story("what is shown"), each of which gets the bed that bed() made, and ends with main().
tests/browser/run runs them all; one by hand: tests/browser/story_shop.py BUILD [--fast] [WORD...], stories whose name holds a word.
"""
import base64
import contextlib
import http.client
import inspect
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse

import webdriver

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SKIPPED = 77  # as ctest has it
_stories = []


class Failed(Exception):
    pass


def story(name, fast=False):
    def mark(function):
        _stories.append((name, fast, function))
        return function
    return mark


def expect(is_so, *words):
    if not is_so:
        raise Failed(" ".join(str(word) for word in words))


def equal(is_value, should, *about):
    if is_value != should:
        raise Failed(f"{' '.join(map(str, about))}: {is_value!r} instead of {should!r}")


def eventually(function, seconds=20, every=0.2):
    """Until it returns something true, which is returned; a Failed of its own counts as not yet."""
    end = time.monotonic() + seconds
    while True:
        try:
            value = function()
            if value:
                return value
            problem = Failed(f"not within {seconds} s: {inspect.getsource(function).strip()}")
        except Failed as failed:
            problem = failed
        if time.monotonic() > end:
            raise problem
        time.sleep(every)


class Program:
    """build/tandem with arguments, its output in a file, killed at the end."""

    def __init__(self, build, args, folder, name):
        self.log = os.path.join(folder, f"{name}.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([os.path.join(build, "tandem"), *args], stdout=log, stderr=log, cwd=folder, start_new_session=True)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def find(self, pattern, seconds=30):
        def look():
            expect(self.process.poll() is None, "it ended:", self.said()[-2000:])
            return re.search(pattern, self.said())
        return eventually(look, seconds).group(1)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def memory(self):
        """Bytes that are in memory now, and the most that ever were."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            text = status.read()
        return tuple(int(re.search(rf"{word}:\s+(\d+) kB", text).group(1)) * 1024 for word in ("VmRSS", "VmHWM"))

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Api:
    """The API server of a kubeconfig that tandem wrote."""

    def __init__(self, kubeconfig, folder):
        with open(kubeconfig, encoding="utf-8") as file:
            text = file.read()
        get = lambda key: re.search(rf"{key}: (\S+)", text).group(1)  # noqa: E731
        self.host = urllib.parse.urlparse(get("server")).netloc
        names = {}
        for key in ("certificate-authority-data", "client-certificate-data", "client-key-data"):
            names[key] = os.path.join(folder, key)
            with open(names[key], "wb") as file:
                file.write(base64.b64decode(get(key)))
        self.tls = ssl.create_default_context(cafile=names["certificate-authority-data"])
        self.tls.load_cert_chain(names["client-certificate-data"], names["client-key-data"])

    def call(self, method, path, body=None, kind="application/json"):
        connection = http.client.HTTPSConnection(self.host, context=self.tls, timeout=20)
        with contextlib.closing(connection):
            data = None if body is None else body if isinstance(body, str) else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": kind, "Accept": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or "null")

    def get(self, path):
        status, answer = self.call("GET", path)
        equal(status, 200, path)
        return answer

    def items(self, path):
        return self.get(path)["items"]


class Page:
    """A page's server without a browser."""

    def __init__(self, url, token=""):
        self.url = url.rstrip("/")
        self.place = urllib.parse.urlparse(self.url).netloc
        self.token = token

    def raw(self, method, path, headers=None, body=None):
        connection = http.client.HTTPConnection(self.place, timeout=30)
        with contextlib.closing(connection):
            own = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            connection.request(method, path, body, {**own, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def get(self, path, **query):
        text = "?" + urllib.parse.urlencode(query) if query else ""
        status, _, body = self.raw("GET", f"/api/{path}{text}")
        equal(status, 200, path, body[:300])
        return json.loads(body)

    def order(self, **body):
        status, _, answer = self.raw("POST", "/api/scenario", {"Content-Type": "application/json"}, json.dumps(body))
        equal(status, 200, answer[:300])
        return json.loads(answer)

    def rows(self):
        data = self.get("workloads")
        return [dict(zip(data["columns"], row)) for row in data["rows"]]


def open_view(browser, url, path, seconds=20):
    """A view, with all that it asks for."""
    # The view before it counts no more: its end comes after the new address.
    browser.run("if (location.hash !== arguments[0]) document.querySelectorAll('#main [data-ready]').forEach((e) => { delete e.dataset.ready; });"
                "location.hash = arguments[0]", path)
    browser.wait(f"return location.hash === {json.dumps(path)} && document.querySelector('#main [data-ready]') !== null", seconds)


def hash_of(row):
    return "#/workload/" + "/".join(urllib.parse.quote(row[key], safe="") for key in ("ns", "kind", "name", "by"))


def axe_source(build):
    """axe-core, installed by its name into the build folder."""
    folder = os.path.join(build, "browser", "axe")
    path = os.path.join(folder, "node_modules", "axe-core", "axe.min.js")
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["npm", "install", "--prefix", folder, "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "axe-core"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
    with open(path, encoding="utf-8") as file:
        return file.read()


class Stage:
    """What the stories of a file share; what they start ends with it."""

    def __init__(self, build, is_fast):
        self.build = build
        self.is_fast = is_fast
        self.shots = os.path.join(build, "browser")
        self.ends = contextlib.ExitStack()
        self.folder = tempfile.mkdtemp(prefix="tandem-browser-")
        self.ends.callback(shutil.rmtree, self.folder, True)

    def start(self, name, *args):
        program = Program(self.build, args, self.folder, name)
        self.ends.callback(program.end)
        return program

    def browser(self, **options):
        return self.ends.enter_context(webdriver.Browser(**options))

    def run(self, *args):
        """build/tandem to its end: status and output."""
        done = subprocess.run([os.path.join(self.build, "tandem"), *args], cwd=self.folder, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr


def main(bed):
    """Tells the stories on the stage that `bed` furnishes."""
    if len(sys.argv) < 2:
        print(f"usage: {sys.argv[0]} BUILD [--fast] [WORD...]", file=sys.stderr)
        sys.exit(2)
    missing = webdriver.missing()
    if missing:
        print(f"skipped: {', '.join(missing)} is not installed (scripts/deps browser)")
        sys.exit(SKIPPED)
    build = os.path.abspath(sys.argv[1])
    is_fast = "--fast" in sys.argv[2:]
    words = [word for word in sys.argv[2:] if not word.startswith("--")]
    told = [(name, function) for name, fast, function in _stories
            if (fast or not is_fast) and (not words or any(word in name for word in words))]
    passed = failed = 0
    stage = Stage(build, is_fast)
    with stage.ends:
        try:
            if told:
                bed(stage)
        except Exception:  # nothing can be told
            traceback.print_exc(file=sys.stdout)
            failed += 1
            told = []
        for name, function in told:
            began = time.monotonic()
            try:
                said = function(stage)
                passed += 1
                print(f"ok   {name} ({time.monotonic() - began:.1f} s){': ' + said if said else ''}", flush=True)
            except Exception as problem:  # a story fails by any of them
                failed += 1
                print(f"FAIL {name}: {problem}", flush=True)
                if not isinstance(problem, Failed):
                    traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
