#!/usr/bin/env python3
"""What `make release` makes is the same in two clones, is installed and removed by dpkg and rpm, and names what is inside."""
import filecmp
import glob
import json
import os
import re
import shutil
import subprocess

from pack import case, clone, main, run

URL = "https://example.com/releases"
CHROOT = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"]


def dist(folder):
    return f"{folder}/one/build/dist"


def only(folder, form):
    names = glob.glob(f"{dist(folder)}/{form}")
    assert len(names) == 1, (form, names)
    return names[0]


@case("two clones in different places make the same release, bit for bit, and say its hashes")
def same(folder):
    one, two = clone(f"{folder}/one"), clone(f"{folder}/some/where/else")
    said = run("scripts/release", URL, cwd=one)
    run("scripts/release", URL, cwd=two, env={"CCACHE_DISABLE": "1", "TZ": "Asia/Tokyo", "CFLAGS": "-O0", "LC_ALL": "C.UTF-8"})
    names = sorted(os.listdir(dist(folder)))
    assert names == sorted(os.listdir(f"{two}/build/dist")), names
    for name in names:
        assert filecmp.cmp(f"{dist(folder)}/{name}", f"{two}/build/dist/{name}", shallow=False), f"{name} differs"
    sums = only(folder, "tandem-*.sha256")
    run("sha256sum", "--check", "--strict", "--quiet", sums, cwd=dist(folder))
    with open(sums) as file:
        rows = dict(reversed(line.split()) for line in file)
    assert sorted([*rows, os.path.basename(sums)]) == names, names
    assert all(re.search(rf"^{re.escape(name)} .*{digest}$", said, re.M) for name, digest in rows.items()), said


@case("changes that are not committed are refused, and a URL that is none")
def refused(folder):
    two = f"{folder}/some/where/else"
    with open(f"{two}/README.md", "a") as file:
        file.write("more\n")
    done = subprocess.run(["scripts/release"], cwd=two, capture_output=True, text=True)
    assert done.returncode != 0 and done.stderr.startswith("tandem: the checkout has changes"), done
    done = subprocess.run(["scripts/release", "ftp://x"], cwd=two, capture_output=True, text=True)
    assert done.returncode != 0 and "must be a URL" in done.stderr, done


@case("the source is the commit, and knows it")
def source(folder):
    path = [name for name in glob.glob(f"{dist(folder)}/tandem-*.tar.gz") if "linux" not in name][0]
    run("tar", "xzf", path, "-C", folder)
    top = f"{folder}/{os.path.basename(path).removesuffix('.tar.gz')}"
    commit = run("git", "rev-parse", "HEAD", cwd=f"{folder}/one").strip()
    with open(f"{top}/scripts/pack/commit.txt") as file:
        assert file.read().startswith(commit)
    listed = run("git", "ls-files", cwd=f"{folder}/one").split()
    assert all(os.path.lexists(f"{top}/{name}") for name in listed)


@case("the archive runs where it lies, and has libevent and libyaml inside")
def archive(folder):
    path = [name for name in glob.glob(f"{dist(folder)}/tandem-*-linux-*.tar.gz") if os.uname().machine.replace("x86_64", "amd64") in name][0]
    run("tar", "xzf", path, "-C", folder)
    program = f"{folder}/{os.path.basename(path).removesuffix('.tar.gz')}/bin/tandem"
    assert run(program, "--version").startswith("tandem ")
    assert run(program.replace("bin/tandem", "bin/kubectl-tandem"), "--version").startswith("tandem ")
    needed = run("ldd", program)
    assert "libevent" not in needed and "libyaml" not in needed and "libcurl" in needed, needed
    for name in glob.glob(f"{dist(folder)}/tandem-*-linux-*.spdx.json"):
        with open(name) as file:
            rows = {row["name"] for row in json.load(file)["packages"]}
        assert {"tandem", "libevent-dev", "libyaml-dev", "libcurl4"} <= rows, rows


@case("lintian finds nothing to say about the Debian package")
def lintian(folder):
    for name in glob.glob(f"{dist(folder)}/*.deb"):
        said = run("lintian", "--allow-root", "--no-tag-display-limit", "--fail-on", "error,warning,info", name, env={"LC_ALL": "C.UTF-8"})
        assert not said, said


@case("apt installs the Debian package in a bare Debian, and removes it without a trace")
def debian(folder):
    root = f"{folder}/debian"
    sources = [name for form in ("*.list", "*.sources") for name in glob.glob(f"/etc/apt/sources.list.d/{form}")]
    sources += [name for name in ["/etc/apt/sources.list"] if os.path.exists(name) and os.path.getsize(name) > 0]
    run("mmdebstrap", "--quiet", "--variant=minbase", "bookworm", root, *sources)
    shutil.copy("/etc/resolv.conf", f"{root}/etc/resolv.conf")
    for name in glob.glob("/etc/apt/apt.conf.d/*"):
        shutil.copy(name, f"{root}/etc/apt/apt.conf.d/")
    package = [name for name in glob.glob(f"{dist(folder)}/*.deb") if run("dpkg", "--print-architecture").strip() in name][0]
    shutil.copy(package, f"{root}/srv/tandem.deb")

    def inside(*command):
        return run("chroot", root, *CHROOT, *command)
    inside("apt-get", "update", "--quiet")
    inside("apt-get", "install", "--quiet", "--yes", "--no-install-recommends", "/srv/tandem.deb")
    assert inside("tandem", "--version").startswith("tandem ")
    assert inside("dpkg", "--verify", "tandem") == ""
    inside("apt-get", "purge", "--quiet", "--yes", "tandem")
    left = inside("find", "/usr", "/etc", "/var/lib", "-name", "*tandem*")
    assert left == "", left


@case("rpm installs the package in a root of its own, and removes it without a trace")
def rpm(folder):
    package = [name for name in glob.glob(f"{dist(folder)}/*.rpm") if os.uname().machine in name][0]
    root = f"{folder}/rpm"
    os.makedirs(root)
    assert run("rpm", "--checksig", "--nosignature", package)
    needs = run("rpm", "-qp", "--requires", package)
    assert "libcurl.so.4()(64bit)" in needs and "libssl.so.3()(64bit)" in needs and "CURL_OPENSSL" not in needs, needs
    run("rpm", "--root", root, "--initdb")
    run("rpm", "--root", root, "--install", "--nodeps", package)
    assert run(f"{root}/usr/bin/tandem", "--version").startswith("tandem ")
    assert run("rpm", "--root", root, "--verify", "--nodeps", "tandem") == ""
    run("rpm", "--root", root, "--erase", "--nodeps", "tandem")
    left = run("find", root, "-name", "*tandem*")
    assert left == "", left


@case("the manifests of krew and Homebrew name the files of the release and their hashes")
def manifests(folder):
    with open(only(folder, "tandem-*.sha256")) as file:
        rows = dict(reversed(line.split()) for line in file)
    with open(only(folder, "krew-tandem.yaml")) as file:
        krew = file.read()
    found = re.findall(rf"uri: {URL}/(\S+)\n *sha256: (\S+)\n", krew)
    assert found and all(rows[name] == digest for name, digest in found) and "@" not in krew, krew
    with open(only(folder, "tandem.rb")) as file:
        formula = file.read()
    name, digest = re.search(rf'url "{URL}/([^"]+)"\n *sha256 "([^"]+)"', formula).groups()
    assert rows[name] == digest and "@" not in formula.replace("openssl@3", ""), formula
    run("ruby", "-c", only(folder, "tandem.rb"))


@case("what krew would do by its manifest gives a plugin that kubectl runs")
def krew(folder):
    with open(only(folder, "krew-tandem.yaml")) as file:
        platforms = re.findall(r"arch: (\S+)\}\n *uri: \S+/(\S+)\n(.*?)bin: (\S+)\n", file.read(), re.S)
    assert platforms
    for arch, name, files, program in platforms:
        unpacked, home = f"{folder}/krew/{arch}/unpacked", f"{folder}/krew/{arch}/home"
        os.makedirs(unpacked)
        os.makedirs(home)
        run("tar", "xzf", f"{dist(folder)}/{name}", "-C", unpacked)
        for form, to in re.findall(r'from: "([^"]+)", to: (\S+)\}', files):
            found = glob.glob(f"{unpacked}/{form}")
            assert len(found) == 1 and to == ".", (form, found)
            shutil.copy(found[0], home)
        os.symlink(f"{home}/{program}", f"{home}/kubectl-tandem")
        if {"amd64": "x86_64", "arm64": "aarch64"}[arch] == os.uname().machine:
            path = f"{home}:{os.environ['PATH']}:{os.path.expanduser('~/.cache/tandem-realplane/bin')}"
            kubectl = shutil.which("kubectl", path=path)
            command = [kubectl, "tandem"] if kubectl else [f"{home}/kubectl-tandem"]
            assert run(*command, "--version", env={"PATH": path}).startswith("tandem ")


main()
