#!/usr/bin/env python3
"""`tandem up` on a terminal: up_pty.py TANDEM WORK [ARGS...]. Runs the program on pseudo terminals, keeps the screen that a
person would see, and prints one TAP line for each check, without numbers and plan."""
import fcntl, os, pty, re, resource, select, signal, struct, sys, termios, time

tandem, work, args = sys.argv[1], sys.argv[2], sys.argv[3:]
failed = 0


def check(name, is_good, why=""):
    global failed
    failed += not is_good
    print("ok - %s" % name if is_good else "not ok - %s: %s" % (name, why), flush=True)


class Run:
    """One run, and its screen: enough of a VT100 for what the program says."""

    def __init__(self, columns=160, lines=30, env=None, args=args, name="terminal"):
        self.columns, self.lines = columns, lines
        self.raw, self.rest = b"", b""
        self.screen, self.x, self.y, self.has_cursor = [""], 0, 0, True
        self.started = time.monotonic()
        master, slave = pty.openpty()
        self.master, self.slave = master, slave
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(slave, fd)
            os.close(master)
            os.close(slave)
            environ = {"PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8"}
            environ.update(env or {})
            kubeconfig = os.path.join(work, name + ".kubeconfig")
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            try:
                os.execve(tandem, [tandem, "up", "--listen", "127.0.0.1:0", "--kubeconfig", kubeconfig] + args, environ)
            finally:
                os._exit(127)

    def resize(self, columns, lines):
        self.columns, self.lines = columns, lines
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def control(self, parameter, letter):
        if letter == b"A":
            self.y = max(0, self.y - int(parameter or 1))
        elif letter == b"H":
            self.x = self.y = 0
        elif letter == b"J" and parameter == b"2":
            self.screen = [""]
        elif letter == b"J":
            self.screen = self.screen[: self.y] + [""]
        elif letter == b"K":
            self.screen[self.y] = ""
        elif parameter == b"?25":
            self.has_cursor = letter == b"h"

    def take(self, data):
        self.raw += data
        self.rest += data
        while self.rest:
            order = re.match(rb"\x1b\[(\??[0-9;]*)([A-Za-z])", self.rest)
            if order:
                self.control(order.group(1), order.group(2))
                self.rest = self.rest[order.end():]
                continue
            if re.match(rb"\x1b(\[\??[0-9;]*)?$", self.rest):
                return
            text = re.match(rb"[^\x1b\r\n]+", self.rest)
            if text:
                line = self.screen[self.y]
                self.screen[self.y] = line[: self.x] + text.group().decode("utf-8", "replace")
                self.x = len(self.screen[self.y])
                self.rest = self.rest[text.end():]
                continue
            if self.rest[:1] == b"\r":
                self.x = 0
            elif self.rest[:1] == b"\n":
                self.y += 1
                while len(self.screen) <= self.y:
                    self.screen.append("")
            self.rest = self.rest[1:]

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.take(os.read(self.master, 65536))
            except OSError:
                pass

    def text(self):
        return "\n".join(self.screen)

    def wait(self, pattern, seconds=15):
        """Until the screen shows it."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text()) and time.monotonic() < end:
            self.read(0.05)
        return re.search(pattern, self.text()) is not None

    def press(self, keys):
        os.write(self.master, keys)

    def end(self, seconds=10):
        """Exit status, or minus the signal; how long it took; settings as before?"""
        begin = time.monotonic()
        status = None
        while status is None and time.monotonic() - begin < seconds:
            self.read(0.02)
            pid, code = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                status = os.waitstatus_to_exitcode(code)
        took = time.monotonic() - begin
        self.read(0.05)
        if status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        is_restored = termios.tcgetattr(self.slave) == self.before and self.has_cursor
        os.close(self.master)
        os.close(self.slave)
        return status, took, is_restored


def table_is_whole(run):
    text = run.text()
    return text.count("local cluster") == 1 and text.count(" day 1 ") == 1 and text.find("local cluster") < text.find(" day 1 ")


run = Run()
has_table = run.wait(r"(?m)^ day \d+ \d\d:\d\d   pods")
check("a table appears", has_table, run.text())
if not has_table:
    run.end()
    sys.exit(1)
check("within seconds", time.monotonic() - run.started < 10)
check("below the greeting", table_is_whole(run), run.text())
check("the cursor is hidden", not run.has_cursor)
for _ in range(4):
    run.read(0.6)
check("drawn in place", table_is_whole(run), run.text())
run.press(b"?")
check("? explains the columns", run.wait("LAST DECISION +when an autoscaler last changed it"), run.text())
check("in place of the table", table_is_whole(run) and "keys:" in run.text(), run.text())
run.press(b"?")
run.wait("(?s)^(?!.*keys:).*$", 5)
check("? goes back", table_is_whole(run) and "keys:" not in run.text(), run.text())
run.resize(60, 20)
run.read(0.3)
run.wait("(?m)^ day ")
check("a smaller window is drawn anew", table_is_whole(run), run.text())
wide = [line for line in run.screen if len(line) > 60 and "KUBECONFIG" not in line and "local cluster" not in line]
check("and nothing is wider than it", not wide, wide)
os.kill(run.pid, signal.SIGTSTP)
pid, code = os.waitpid(run.pid, os.WUNTRACED)
run.read(0.1)
check("Ctrl-Z stops it", os.WIFSTOPPED(code))
check("and gives the terminal back", termios.tcgetattr(run.slave) == run.before and run.has_cursor)
os.kill(run.pid, signal.SIGCONT)
run.read(0.5)
check("it goes on with its table", run.wait("(?m)^ day ") and not run.has_cursor and table_is_whole(run), run.text())
run.press(b"q")
status, took, is_restored = run.end()
check("q ends it", status == 0, status)
check("at once", took < 1, took)
check("the terminal is as it was", is_restored)

for number, expected in ((signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGABRT, -signal.SIGABRT)):
    run = Run()
    run.wait("(?m)^ day ")
    if number == signal.SIGINT:
        run.press(b"\x03")
    else:
        os.kill(run.pid, number)
    status, took, is_restored = run.end()
    name = signal.Signals(number).name
    check("%s ends it" % name, status == expected and took < 1, (status, took))
    check("%s leaves the terminal as it was" % name, is_restored)

run = Run(env={"NO_COLOR": "1", "LANG": "C"})
run.wait("(?m)^ day ")
run.read(0.6)
check("NO_COLOR means no colour", b"\x1b[3" not in run.raw and b"\x1b[1m" not in run.raw)
check("a locale without UTF-8 gets ASCII", run.raw.isascii())
run.press(b"q")
run.end()
run = Run(env={"TERM": "dumb"})
run.wait("stop ")
run.read(0.6)
check("a dumb terminal gets lines", b"\x1b" not in run.raw and " WORKLOAD " not in run.text(), run.raw)
os.kill(run.pid, signal.SIGTERM)
run.end()
sys.exit(failed > 0)
