#!/usr/bin/env python3
"""Every command line in README.md and docs/ is run, and what the page shows of its output is compared.

A command stands in a fenced block of the language `console` ("$ COMMAND", then its output) or `sh` (a command a line). A block without
a language holds no commands: one that does fails this test. A comment on the line above a block says how to run it:

    <!-- run: KEY=VALUE KEY=VALUE ... -->

  files=FOLDER       in a copy of tests/data/docs/FOLDER, one for each page and folder; else in a copy of the tree's top, made of links
  cluster=SCENARIO   with KUBECONFIG of a `tandem up` of it, one for each page ("none": an empty cluster; "bare": one without controllers; "bare:2": another one)
  speed=N            of that cluster's clock; at=TEXT: the block waits until the cluster's output has the text ("_" for a space)
  exit=N             the exit status of the block's commands (0)
  output=same|words|first|any
                     same: the lines shown are the lines printed, in order; "…" at the end cuts a line, a line "..." stands for any number
                     words: as same, but numbers, times and generated names count as "#"; first: the first line shown, by its words,
                     anywhere; any: not compared. Without a cluster "same", with one "first".
  until=TEXT         it serves: it is ended, as Ctrl-C does, once its output has the text
  change=FROM=>TO    before it is run, for addresses that are the reader's own ({prometheus}: a Prometheus with a week of data)
  write=NAME         the block is no command but a file of the folder that files= names
  proof=FILE         it is run by FILE instead, which has the command's words

Needs of a command (kubectl, helm, a Prometheus, the traces beside the tree) are seen in it; where one is missing the command is skipped
by name, or fails with REQUIRE set to its name.
Usage: doc_commands.py TANDEM TOP [PAGE...]. Prints TAP."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TANDEM, TOP = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
REQUIRED = os.environ.get("REQUIRE", "").split()
WORK = tempfile.mkdtemp()
KITS = os.environ.get("REALPLANE_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tandem-realplane")
SECONDS_MAX = 600
MOMENT_SECONDS_MAX = 300  # that a block waits for its moment
TRIES = 4  # of a command on a cluster: the cluster moves on between two of them, and a busy machine answers late
KEYS = ("files", "cluster", "speed", "at", "exit", "output", "until", "change", "write", "proof")
count = failed = 0
processes = []


def result(name, problem):
    global count, failed
    count += 1
    failed += bool(problem)
    print("%sok %d - %s%s" % ("not " if problem else "", count, name, ": " + problem if problem else ""), flush=True)


def skip(name, reason):
    global count
    count += 1
    print("ok %d - %s # SKIP %s" % (count, name, reason), flush=True)


# ---- Pages ----


class Block:
    def __init__(self, page, line, language, marks):
        self.page, self.line, self.language, self.marks, self.text = page, line, language, marks, []

    def commands(self):
        """(command, lines shown) of the block."""
        rows, joined = [], False
        for line in self.text:
            if joined:
                rows[-1][0] += "\n" + line
            elif self.language == "sh":
                if line.strip() and not line.startswith("#"):
                    rows.append([line, []])
            elif line.startswith("$ "):
                rows.append([line[2:], []])
            elif rows:
                rows[-1][1].append(line)
            joined = bool(rows) and line.endswith("\\") and not rows[-1][1]
        return rows


def marks_of(text):
    found = re.fullmatch(r"<!-- run: (.*) -->", text.strip())
    return dict(part.split("=", 1) for part in found.group(1).split(" ")) if found else {}


def blocks_of(page):
    block, before = None, ""
    with open(os.path.join(TOP, page), encoding="utf-8") as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            fence = re.match(r" *```(.*)$", line)
            if not fence and block:
                block.text.append(line)
            elif fence and block:
                yield block
                block = None
            elif fence:
                block = Block(page, number, fence.group(1).strip(), marks_of(before))
            before = line if line.strip() else before


# ---- Where a command runs ----


def tree(name):
    """A copy of the top of the tree, made of links, so that what a command writes does not lie in the tree."""
    folder = os.path.join(WORK, "tree-" + name)
    if not os.path.isdir(folder):
        os.mkdir(folder)
        for entry in os.listdir(TOP):
            if entry not in ("build", ".git"):
                os.symlink(os.path.join(TOP, entry), os.path.join(folder, entry))
        os.symlink(os.path.dirname(TANDEM), os.path.join(folder, "build"))
        traces = os.path.join(TOP, "..", "shared", "traces", "borg2019")
        if os.path.isdir(traces):
            os.symlink(traces, os.path.join(folder, "borg2019"))
    return folder


def copy_of(name, files):
    folder = os.path.join(WORK, name + "-" + files)
    if not os.path.isdir(folder):
        shutil.copytree(os.path.join(TOP, "tests", "data", "docs", files), folder)
    return folder


class Cluster:
    """A `tandem up`; its output is read for the moments that blocks wait for."""

    def __init__(self, name, scenario, speed):
        self.kubeconfig, self.log = os.path.join(WORK, name + ".kubeconfig"), os.path.join(WORK, name + ".up")
        arguments = [TANDEM, "up"] + ([] if scenario in ("none", "bare") else [scenario]) + ["--listen", "127.0.0.1:0", "--kubeconfig", self.kubeconfig]
        arguments += ["--controllers", "none"] if scenario == "bare" else []
        arguments += ["--speed", speed] if speed else []
        self.process = subprocess.Popen(arguments, cwd=TOP, stdout=open(self.log, "wb"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        processes.append(self.process)
        self.missed = set()

    def await_text(self, text):
        """Whether the output has the text within five minutes. A moment that did not come is not waited for again."""
        if text in self.missed:
            return False
        end = time.monotonic() + MOMENT_SECONDS_MAX
        while time.monotonic() < end and self.process.poll() is None:
            with open(self.log, encoding="utf-8") as file:
                if re.search(text, file.read()):
                    return True
            time.sleep(0.1)
        self.missed.add(text)
        return False


def prometheus():
    """The address of a Prometheus with a week of data, started once, or None with the reason."""
    if not prometheus.address:
        script = os.path.join(TOP, "tests", "cli", "serve_prometheus.sh")
        process = subprocess.Popen(["sh", script, TOP, WORK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        prometheus.address = process.stdout.readline().strip()
        prometheus.reason = "" if prometheus.address else process.stderr.read().strip()
    return prometheus.address or None, prometheus.reason


prometheus.address = prometheus.reason = ""


# ---- Running ----


def missing(command, marks):
    """The first thing that the command needs and that is not here."""
    for program in ("kubectl", "helm", "curl"):
        if re.search(r"(^|[|;&(] *)%s\b" % program, command) and not shutil.which(program, path=PATH):
            return program
    if "borg2019" in command and not os.path.exists(os.path.join(tree("shared"), "borg2019")):
        return "shared"
    if "{prometheus}" in marks.get("change", "") and not prometheus()[0]:
        return "prometheus"
    return None


def execute(command, environment, folder, until):
    """Exit status and output. The variables that it exports are there for the next command of the page."""
    script = '%s\nstatus=$?\nexport -p >"$DOC_EXPORTS"\nexit $status\n' % command if not until else "exec " + command
    if os.path.exists(environment["DOC_EXPORTS"]):
        script = '. "$DOC_EXPORTS"\n%s' % ("export KUBECONFIG='%s'\n" % environment["KUBECONFIG"] if "KUBECONFIG" in environment else "") + script
    process = subprocess.Popen(["sh", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    processes.append(process)
    if not until:
        try:
            output = process.communicate(timeout=SECONDS_MAX)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return -1, "it did not end within %d s" % SECONDS_MAX
        return process.returncode, output.decode("utf-8", "replace")
    lines, end = "", time.monotonic() + 60
    os.set_blocking(process.stdout.fileno(), False)
    while time.monotonic() < end and until not in lines and process.poll() is None:
        lines += (process.stdout.read() or b"").decode("utf-8", "replace")
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    try:
        lines += (process.communicate(timeout=30)[0] or b"").decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        process.kill()
        return -1, "Ctrl-C did not end it: " + lines
    return (process.returncode, lines) if until in lines else (-1, "%s; '%s' is not in it" % (lines, until))


def words(line):
    """Only words: what is a number, a quantity, a time, a path or a generated name differs from run to run."""
    return " ".join(re.sub(r"[^ ]*([0-9]|=/)[^ ]*", "#", line.replace("…", "")).split())


def compare(shown, printed, how):
    """What is wrong, or None."""
    shown = [line for line in shown if line.strip()]
    printed = [line.rstrip() for line in printed.split("\n") if line.strip()]
    if how == "any" or not shown:
        return None
    if how == "first":
        begin = words(shown[0])
        return None if any(begin in words(line) for line in printed) else "nothing begins with '%s'" % begin
    at, free = 0, False
    for line in shown:
        if line.strip() == "...":
            free = True
            continue
        cut = line.rstrip().endswith("…")
        wanted = words(line) if how == "words" else line.rstrip().rstrip("…").rstrip()
        while at < len(printed):
            got = words(printed[at]) if how == "words" else printed[at]
            at += 1
            if got == wanted or cut and got.startswith(wanted):
                break
            if not free:
                return "printed '%s', shown '%s'" % (printed[at - 1], line)
        else:
            return "not printed: '%s'" % line
        free = False
    return None if free or at == len(printed) else "not shown: '%s'" % printed[at]


def judge(command, shown, marks, environment, folder):
    """Runs a command; what is wrong, or None."""
    status, output = execute(command, environment, folder, marks.get("until", "").replace("_", " "))
    if status != int(marks.get("exit", "0")):
        return "status %d: %s" % (status, output[-600:])
    problem = compare(shown, output, marks.get("output", "first" if "cluster" in marks else "same"))
    return problem and problem + "; all of it: " + output[:600]


def run_block(block, environment, clusters):
    marks, name = block.marks, re.sub(r"\W", "-", block.page)
    title = "%s:%d: " % (block.page, block.line)
    unknown = [key for key in marks if key not in KEYS]
    if unknown:
        return result(title + "its mark", "unknown key '%s'" % unknown[0])
    if "cluster" in marks:
        key = (name, marks["cluster"])
        if key not in clusters:
            clusters[key] = Cluster(name + str(len(clusters)), marks["cluster"].split(":")[0], marks.get("speed"))
            clusters[key].await_text("API ")
        environment["KUBECONFIG"] = clusters[key].kubeconfig
        if "at" in marks and not clusters[key].await_text(marks["at"].replace("_", " ")):
            return result(title + "its moment", "the cluster never printed '%s'" % marks["at"])
    folder = copy_of(name, marks["files"]) if "files" in marks else tree(name)
    lack = None
    for command, shown in block.commands():
        label = title + command.split("  ")[0].replace("#", "").strip()
        if "proof" in marks:
            with open(os.path.join(TOP, marks["proof"]), encoding="utf-8") as file:
                plain = re.sub(r"\s*#.*", "", command)
                text = file.read()
                result(label + " (run by %s)" % marks["proof"], None if all(word in text for word in plain.split()) else "that file does not run it")
            continue
        lack = lack or missing(command, marks)  # what follows in the block stands on what was done
        if lack:
            (result(label, "needs " + lack) if lack in REQUIRED else skip(label, "no " + lack))
            continue
        for change in filter(None, marks.get("change", "").split(";")):
            begin, end = change.split("=>")
            command = command.replace(begin, end.replace("{prometheus}", prometheus()[0] or ""))
        for tries_left in range(TRIES if "cluster" in marks else 1, 0, -1):
            problem = judge(command, shown, marks, environment, folder)
            if not problem or tries_left == 1:
                break
            time.sleep(3)
        result(label, problem)


def run_page(page):
    environment = dict(os.environ, PATH=PATH, HOME=WORK, DOC_EXPORTS=os.path.join(WORK, re.sub(r"\W", "-", page) + ".exports"))
    environment.pop("KUBECONFIG", None)
    clusters = {}
    for block in sorted(blocks_of(page), key=lambda block: "write" not in block.marks):
        if "write" in block.marks:
            with open(os.path.join(copy_of(re.sub(r"\W", "-", page), block.marks["files"]), block.marks["write"]), "w", encoding="utf-8") as file:
                file.write("\n".join(block.text) + "\n")
        elif block.language in ("console", "sh"):
            run_block(block, environment, clusters)
        elif not block.language and any(re.match(r"(\$ |(build/)?tandem [a-z]|kubectl [a-z]|make [a-z])", line) for line in block.text):
            result("%s:%d: its language" % (page, block.line), "a block with commands is ```console or ```sh, so that they are run")
    for cluster in clusters.values():
        cluster.process.terminate()
        cluster.process.wait()


PATH = os.pathsep.join([os.path.dirname(TANDEM), os.environ["PATH"], os.path.join(KITS, "bin")])
pages = sys.argv[3:] or ["README.md", "CONTRIBUTING.md", "SECURITY.md"] + sorted(
    os.path.relpath(os.path.join(folder, name), TOP) for folder, _, names in os.walk(os.path.join(TOP, "docs")) for name in names if name.endswith(".md")
)
try:
    for page in pages:
        run_page(page)
finally:
    for process in processes:
        if process.poll() is None:
            process.terminate()
            process.wait()
    shutil.rmtree(WORK, ignore_errors=True)
print("1..%d" % count)
sys.exit(bool(failed))
