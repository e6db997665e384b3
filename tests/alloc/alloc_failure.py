#!/usr/bin/env python3
"""Every allocation fails once: alloc_failure.py TANDEM LIBRARY TEST_FOLDER TOP [--all] [--seconds N] [NAME...]

Each unit program, and some commands of tandem, are run again and again with one allocation that fails (failing.c), of ours and of the
libraries'. What may come of it: nothing, an error, or our one clean end ("tandem: out of memory", then abort). What may not: a crash, a
program that hangs, a leak where it ends by itself, a partial file where a whole one was asked for. Without --all a few of the allocations of
each program, evenly spread, as far as the time goes."""

import concurrent.futures
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

flags = [a for a in sys.argv[1:] if a.startswith("--")]
words = [a for a in sys.argv[1:] if not a.startswith("--")]
TANDEM, LIBRARY, FOLDER, TOP = (os.path.abspath(word) for word in words[:4])
NAMES = words[4:]
# Where OpenSSL cannot note the name of one of its own algorithms, it forgets two pieces of its own.
SLACK = 2
# It asks for memory to give memory back, at the end of the process too; where it gets none, it gives nothing back.
GIVES_BACK = "CRYPTO_free_ex_data"
ENDURES = os.path.join(os.path.dirname(LIBRARY), "endures")  # goes on after every error: what is left then is a leak
SECONDS = next((float(f.split("=")[1]) for f in flags if f.startswith("--seconds=")), 40)
IS_ALL = "--all" in flags
PATIENCE = 300 if IS_ALL else 15  # seconds for one run
# Commands that read much and write files, with what each is to have written when it ends with 0.
VALIDATE = ["validate", os.path.join(TOP, "tests", "data", "manifests", "mistakes.yaml")]
COMMANDS = {
    "tandem validate": VALIDATE,
    "tandem validate -o sarif": [*VALIDATE, "-o", "sarif"],
    "tandem manifests": ["manifests", "--image", "a"],
    "tandem run --flags": ["run", "--flags"],
    "tandem simulate": ["simulate", os.path.join(TOP, "examples", "shop"), "--for", "2m"],
}
work = tempfile.mkdtemp(prefix="alloc-")


class Judged:
    """What one run came to."""

    def __init__(self, status, said, log, left):
        self.status, self.said, self.left = status, said, left
        held = re.search(r"^left (\d+) (\d+)$", log, re.M)
        self.where, self.held = re.sub(r"^left .*$", "", log, flags=re.M).strip(), (int(held[1]), int(held[2])) if held else None

    def problem(self, held):
        """None: it is as it should be. `held` is how many blocks, of ours and of the libraries', a run without a failure does not free."""
        if self.status is None:
            return "it hangs"
        if "failed with exception" in self.said:  # cmocka's word for a signal that it caught
            return re.search(r".*failed with exception.*", self.said)[0]
        if self.status == -signal.SIGABRT and "tandem: out of memory\n" in self.said:
            return None
        if self.status < 0:
            return f"it ended by {signal.Signals(-self.status).name}: {self.said[-200:]}"
        # A test that fails goes on somewhere else, and frees nothing: only what came to its own end is held to it.
        if self.is_whole and self.held and (self.held[0] > held[0] or self.is_enduring and GIVES_BACK not in self.where and self.held[1] > held[1] + SLACK):
            return f"it leaks: {self.held} blocks are not freed, else {held}"
        return f"a partial file is left: {self.left}" if self.left else None


def run(command, who, at, place):
    """The command with that allocation failing; and how many there were, or where it was."""
    folder = os.path.join(work, place)
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, "log")
    home = tempfile.mkdtemp(dir=folder)
    env = dict(os.environ, LD_PRELOAD=LIBRARY, ALLOC_WHO=who, ALLOC_AT=str(at), ALLOC_LOG=log, TMPDIR=home, HOME=home)
    process = subprocess.Popen(command, env=env, cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        said, status = process.communicate(timeout=PATIENCE)[0].decode(errors="replace"), process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, status = process.communicate()[0].decode(errors="replace"), None
    left = [name for name in os.listdir(home) if ".tmp" in name or name.startswith(".")] if command[0] == TANDEM else []
    where = open(log, encoding="utf-8").read().strip() if os.path.exists(log) else ""
    shutil.rmtree(folder)
    judged = Judged(status, said, where, left)
    judged.is_whole, judged.is_enduring = status == 0 or command[0] == TANDEM, command[0] == ENDURES
    return judged


def programs():
    """Name -> command."""
    found = {name: [os.path.join(FOLDER, name)] for name in sorted(os.listdir(FOLDER)) if name.startswith("unit_")}
    found.update({name: [TANDEM, *rest] for name, rest in COMMANDS.items()}, endures=[ENDURES])
    return {name: command for name, command in found.items() if not NAMES or any(word in name for word in NAMES)}


def measure(name):
    """who -> how many allocations, the blocks that it does not free, and the seconds of a run; None: it did not come to its end."""
    began = time.monotonic()
    judged = run(found[name], "ours", 0, f"{name}-0".replace(" ", "_"))
    took = time.monotonic() - began
    good = judged.status == 0 or (name.startswith("tandem") and judged.status == 1)
    counts = [int(word) for word in judged.where.split()] if good and re.fullmatch(r"\d+ \d+", judged.where) else []
    return (dict(zip(("ours", "libraries"), counts)), judged.held, took) if counts else None


def places(count, tries):
    """Which of them, evenly spread."""
    return sorted({1 + (count - 1) * i // max(1, tries - 1) for i in range(min(count, tries))})


def examine(name):
    """One program: (how many allocations it makes, how many failed, what is wrong), or None where there was no time."""
    if not IS_ALL and time.monotonic() > end:
        return name, None
    measured = measure(name)
    if not measured:
        return name, (0, 0, [])
    counts, held, took = measured
    tried, wrong = 0, []
    for who, count in counts.items():
        # Of ours one looks like the other: they end in one function. Libraries have a way of their own each.
        tries = count if IS_ALL else max(1, min(12 if who == "libraries" else 4, int(1.0 / took)))
        for at in places(count, tries):
            if not IS_ALL and time.monotonic() > end:
                break
            judged = run(found[name], who, at, f"{name}-{who}-{at}".replace(" ", "_"))
            tried += 1
            problem = judged.problem(held)
            if problem:
                wrong.append((judged.where, f"allocation {at} of {who}, in {judged.where}: {problem}"))
    return name, (sum(counts.values()), tried, wrong)


found = programs()
began = time.monotonic()
end = began + SECONDS
names = list(found)
random.Random(1).shuffle(names)  # what there is no time for is of every room
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    results = dict(pool.map(examine, names))
shutil.rmtree(work, ignore_errors=True)
reached = {name: result for name, result in results.items() if result}
bad = {(name, where): what for name, (_, _, wrong) in sorted(reached.items()) for where, what in wrong}
for (name, _), what in bad.items():
    print(f"not ok - {name}: {what}")
tried = sum(result[1] for result in reached.values())
silent = sorted(name for name, result in reached.items() if result[1] == 0)
print(f"# {tried} of {sum(result[0] for result in reached.values())} allocations of {len(reached)} programs (of {len(found)}) failed, in "
      f"{time.monotonic() - began:.0f} s; nothing to be had from: {', '.join(silent) or 'none'}")
print("1..1" if bad else "ok 1 - nothing but errors and clean ends\n1..1")
sys.exit(1 if bad or not tried else 0)
