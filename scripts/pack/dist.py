"""Everything that is handed out but the image: build/dist/ with source, archives, packages, bills of materials and their hashes.

The archive and the RPM hold the program with libevent and libyaml inside, since distributions name those differently; the Debian package
holds the one that Debian's own libraries serve, as Debian wants it."""
import datetime
import os
import shutil
import subprocess
import sys

import closure
import deb
import rpm
import sbom
import tree

DIST = os.path.join(tree.BUILD, "dist")


def keep(name, data):
    tree.write(os.path.join(DIST, name), data)
    return name


def source():
    """The tree of the commit; None where there is no checkout."""
    name = f"tandem-{tree.version()}"
    if not os.path.exists(os.path.join(tree.TOP, ".git")):
        return None
    done = subprocess.run(["git", "-C", tree.TOP, "-c", "tar.umask=022", "archive", "--format=tar", f"--prefix={name}/", "HEAD"], capture_output=True)
    if done.returncode != 0:
        tree.fail(f"git archive: {done.stderr.decode().strip()}")
    return keep(f"{name}.tar.gz", tree.gz(done.stdout))


def bill(name, arch, program, static):
    """Packages of the libraries that the program loads, and of those that are inside of it."""
    paths = list(closure.libraries(program, arch)[0].values())
    if static:
        folder = f"/usr/lib/{tree.ARCHES[arch]['triple']}"
        paths += [f"{folder}/libevent.a", f"{folder}/libyaml.a"]
    packages = {row["name"]: row for row in map(closure.package, paths)}
    return sbom.document(name, arch, tree.read(program), packages.values())


def archive(arch, files, programs):
    """Folders as under a prefix, in a folder of its own: bin/, share/."""
    name = f"tandem-{tree.version()}-linux-{arch}"
    moved = {path.replace("usr/", "", 1): content for path, content in files.items()}
    moved["LICENSE"] = tree.read(os.path.join(tree.TOP, "LICENSE"))
    moved["README.md"] = tree.read(os.path.join(tree.TOP, "share", "archive.md"))
    data = tree.tar(moved, tree.commit()[1], {path.replace("usr/", "", 1) for path in programs}, prefix=name + "/")
    return keep(f"{name}.tar.gz", tree.gz(data))


def build(arch, pages):
    """Names of the files of an architecture."""
    names = []
    version = tree.version()
    program = tree.build_program(arch, static=True, pages=pages)
    folder = os.path.dirname(os.path.dirname(program))
    files, programs = tree.install(folder)
    names.append(archive(arch, files, programs))
    spdx = f"tandem-{version}-linux-{arch}.spdx.json"
    names.append(keep(spdx, bill(spdx.removesuffix(".spdx.json"), arch, program, True)))
    names.append(keep(*rpm.package(arch, files, programs)))
    shared = tree.build_program(arch, pages=pages)
    files, programs = tree.install(os.path.dirname(os.path.dirname(shared)))
    names.append(keep(*deb.package(arch, shared, files, programs)))
    return names


def make():
    """Everything for the architectures that can be built here; names in build/dist/."""
    shutil.rmtree(DIST, ignore_errors=True)
    names = [name for name in [source()] if name]
    pages = None
    for arch in sorted(tree.ARCHES, key=lambda name: name != tree.native()):
        why = tree.missing(arch)
        if why:
            print(f"{arch:8} left out: {why}")
            continue
        names += build(arch, pages)
        pages = os.path.join(tree.BUILD, "release", tree.native() + "-static", "man1")
    return names


def finish(names):
    """Writes the hashes and shows the table."""
    version = tree.version()
    sums = {name: tree.sha256(tree.read(os.path.join(DIST, name))) for name in sorted(names)}
    keep(f"tandem-{version}.sha256", "".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode())
    day = datetime.datetime.fromtimestamp(tree.commit()[1], datetime.timezone.utc).strftime("%Y-%m-%d")
    print(f"tandem {version} of {day}, commit {tree.commit()[0][:12]}, in {os.path.relpath(DIST, tree.TOP)}/\n")
    for name, digest in sums.items():
        print(f"{name:44} {tree.size(os.path.getsize(os.path.join(DIST, name))):>9}  {digest}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        tree.fail("scripts/dist takes no argument")
    if tree.native() is None:
        tree.fail(f"packages are made on {' or '.join(tree.ARCHES)}, not on {os.uname().machine}")
    finish(make())
