#!/usr/bin/env python3
"""What `make install` lays down: manuals that linters accept, completion typed into real shells, kubectl plugin."""
import glob
import os
import re
import shutil
import subprocess
import time

from pack import TOP, case, main, run

SCREEN = ("-x", "160", "-y", "50")


def installed(folder):
    root = f"{folder}/root"
    if not os.path.exists(root):
        run("make", "--silent", "install", "PREFIX=/usr", f"DESTDIR={root}")
    return root


@case("make install lays down program, manuals, completions, licence and the plugin of kubectl")
def files(folder):
    root = installed(folder)
    names = sorted(os.path.relpath(os.path.join(at, name), root) for at, _, names in os.walk(root) for name in names)
    commands = [line.split("\t")[0] for line in run(f"{root}/usr/bin/tandem", "__complete", "").splitlines() if "\t" in line]
    wanted = ["usr/bin/kubectl-tandem", "usr/bin/kubectl_complete-tandem", "usr/bin/tandem", "usr/share/man/man1/tandem.1",
              "usr/share/man/man5/tandem-scenario.5", "usr/share/man/man7/tandem-concepts.7", "usr/share/doc/tandem/LICENSE",
              "usr/share/bash-completion/completions/tandem", "usr/share/zsh/site-functions/_tandem",
              "usr/share/fish/vendor_completions.d/tandem.fish"]
    wanted += [f"usr/share/man/man1/tandem-{name}.1" for name in commands if name not in ("help", "man")]
    assert names == sorted(wanted), set(names) ^ set(wanted)
    assert os.readlink(f"{root}/usr/bin/kubectl-tandem") == "tandem"


@case("manuals: mandoc and man find nothing to say, and what they refer to is there")
def manuals(folder):
    root = installed(folder)
    pages = glob.glob(f"{root}/usr/share/man/man*/*")
    for page in pages:
        said = subprocess.run(["mandoc", "-T", "lint", page], capture_output=True, text=True).stdout
        # mandoc looks for them where this machine has its manuals; where ours are is looked at below.
        said = [line for line in said.splitlines() if "referenced manual not found: Xr tandem" not in line]
        assert not said, said
        done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        assert done.returncode == 0 and not done.stderr, done.stderr
        with open(page, encoding="utf-8") as file:
            for name, section in re.findall(r"^\.(?:It )?Xr (\S+) (\d)", file.read(), re.M):
                assert os.path.exists(f"{root}/usr/share/man/man{section}/{name}.{section}"), f"{page}: {name}({section})"
    shown = run("man", "tandem-explain", env={"MANPATH": f"{root}/usr/share/man", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
    path = f"{root}/usr/bin:{os.environ['PATH']}"
    assert shown == run("sh", "-c", "tandem man explain | man -l -", env={"PATH": path, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
    assert "explain what an autoscaler decided" in shown and "--namespace NAMESPACE" in shown, shown


class Shell:
    """A shell in a terminal, typed into as a person does."""

    def __init__(self, folder, command, extra=None):
        self.socket = f"{folder}/tmux"
        home = f"{folder}/home"
        os.makedirs(home, exist_ok=True)
        env = {"PATH": f"{installed(folder)}/usr/bin:{os.environ['PATH']}", "HOME": home, "TERM": "screen", "LC_ALL": "C.UTF-8", **(extra or {})}
        self._tmux("new-session", "-d", *SCREEN, "env", "-i", *[f"{k}={v}" for k, v in env.items()], *command)
        self._until(lambda shown: re.search(r"[$>#%] *$", shown.rstrip("\n")))  # a prompt

    def _tmux(self, *words):
        return run("tmux", "-S", self.socket, "-f", "/dev/null", *words)

    def _until(self, is_there):
        for _ in range(100):
            shown = self._tmux("capture-pane", "-p")
            if is_there(shown):
                return shown
            time.sleep(0.1)
        raise AssertionError(f"not shown in time:\n{shown}")

    def typed(self, text, *wanted):
        """The screen after the text and tabulators, once it shows what is wanted."""
        self._tmux("send-keys", "C-u")
        self._tmux("send-keys", "C-l")
        self._tmux("send-keys", "-l", text)
        self._until(lambda shown: text.rstrip() in shown)
        self._tmux("send-keys", "Tab")
        time.sleep(0.5)
        self._tmux("send-keys", "Tab")
        return self._until(lambda shown: all(word in shown for word in wanted))

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)
        time.sleep(0.5)  # what the shell began beside goes with it


def talk(shell):
    try:
        shell.typed("tandem ex", "tandem explain")
        shell.typed("tandem explain ", "hvpa", "replicationcontroller")
        shell.typed("tandem replay --policy as-was,ad", "as-was,adaptive")
        shell.typed("tandem manifests --repl", "--replace-upstream")
        shell.typed("tandem run --horizontal=", "--horizontal=builtin")
        shell.typed("tandem up --controllers recommender,hv", "recommender,hvpa")
        shell.typed("tandem up --data /usr/sh", "/usr/share/")
    finally:
        shell.end()


def start_bash(folder, env):
    with open(f"{folder}/rc.bash", "w") as file:
        file.write(". /usr/share/bash-completion/bash_completion\nPS1='> '\n")
    return Shell(folder, ["bash", "--rcfile", f"{folder}/rc.bash", "-i"], {"XDG_DATA_DIRS": f"{installed(folder)}/usr/share", **env})


def start_zsh(folder, env):
    os.makedirs(f"{folder}/home", exist_ok=True)
    with open(f"{folder}/home/.zshrc", "w") as file:
        file.write(f"fpath=({installed(folder)}/usr/share/zsh/site-functions $fpath)\nautoload -Uz compinit; compinit -u -D\nPS1='> '\n")
    return Shell(folder, ["zsh", "-i"], env)


def start_fish(folder, env):
    os.makedirs(f"{folder}/home/.local/share/fish/generated_completions", exist_ok=True)  # else it would read every manual first
    return Shell(folder, ["fish", "-i"], {"XDG_DATA_DIRS": f"{installed(folder)}/usr/share:/usr/share", **env})


@case("completion in bash, as bash-completion finds it")
def bash(folder):
    talk(start_bash(folder, {}))


@case("completion in zsh, from site-functions")
def zsh(folder):
    talk(start_zsh(folder, {}))


@case("completion in fish, from vendor_completions.d")
def fish(folder):
    talk(start_fish(folder, {}))


def kubectl():
    return shutil.which("kubectl", path=os.environ["PATH"] + ":" + os.path.expanduser("~/.cache/tandem-realplane/bin"))


@case("names in the cluster, in each shell too, and `kubectl tandem explain` with its completion where there is a kubectl")
def plugin(folder):
    root, config = installed(folder), f"{folder}/shop.kubeconfig"
    tandem = f"{root}/usr/bin/tandem"
    cluster = subprocess.Popen([tandem, "up", f"{TOP}/examples/shop", "--speed", "120", "--listen", "127.0.0.1:0", "--page", "off", "--kubeconfig",
                                config, "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    env = {"KUBECONFIG": config, "PATH": f"{root}/usr/bin:{os.environ['PATH']}"}
    try:
        for _ in range(100):
            if "cache\n" in subprocess.run([tandem, "__complete", "explain", "-n", "shop", "vpa", ""], capture_output=True, text=True,
                                           env={**os.environ, **env}).stdout:
                break
            time.sleep(0.2)
        assert "cache\n" in run(tandem, "__complete", "explain", "-n", "shop", "vpa", "", env=env)
        assert "shop\n" in run(tandem, "__complete", "explain", "-n", "", env=env)
        assert run(tandem, "__complete", "explain", "-n", "shop", "deploy/w", env=env) == "deploy/web\ndeploy/worker\n:4\n"
        for start in (start_bash, start_zsh, start_fish):
            shell = start(folder, {"KUBECONFIG": config})
            try:
                shell.typed("tandem explain -n shop vpa ca", "tandem explain -n shop vpa cache")
            finally:
                shell.end()
        if not kubectl():
            print("     no kubectl on this machine: its plugin is not tried")
            return
        said = run(kubectl(), "tandem", "explain", "vpa", "cache", "-n", "shop", env=env)
        assert said.startswith("cache (VerticalPodAutoscaler shop/cache"), said
        assert "tandem" in run(kubectl(), "plugin", "list", env=env, ok=(0, 1))
        said = run(kubectl(), "__complete", "tandem", "explain", "-n", "shop", "vpa", "c", env=env)
        assert said.startswith("cache\n"), said
        said = run(kubectl(), "__complete", "tandem", "expl", env=env)
        assert said.startswith("explain"), said
    finally:
        cluster.terminate()
        cluster.wait(20)


main()
