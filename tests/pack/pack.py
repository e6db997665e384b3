"""Shared by the tests of what is handed out: a file is a list of functions marked @case("what is shown") and ends with main()."""
import os
import subprocess
import sys
import tempfile
import traceback

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CASES = []


def case(what):
    def take(function):
        CASES.append((what, function))
        return function
    return take


def run(*command, cwd=TOP, env=None, ok=(0,), text=None):
    """What a command prints on standard output."""
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, input=text, timeout=5400)
    assert done.returncode in ok, f"{' '.join(command)}: {done.returncode}: {(done.stdout + done.stderr)[-3000:]}"
    return done.stdout


def clone(folder):
    """HEAD of this tree, somewhere else."""
    run("git", "clone", "--quiet", TOP, folder)
    return folder


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="tandem-pack-") as folder:
        for what, function in CASES:
            try:
                function(folder)
                passed += 1
                print(f"ok   {what}", flush=True)
            except Exception:  # any: the next case is told too
                failed += 1
                print(f"FAIL {what}\n{traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)
