"""A Debian package, written byte by byte so that it is the same everywhere: an `ar` of two tars."""
import datetime
import email.utils
import hashlib
import os
import re
import subprocess
import tempfile

import tree

MAINTAINER = "Tandem maintainers <maintainers@tandem.dev>"
SUMMARY = "autoscaler of Kubernetes pods: requests, replicas or both"
DESCRIPTION = """\
 Tandem decides how big Kubernetes pods are and how many there are, the
 two together. It takes over the work of the Vertical Pod Autoscaler and
 of the HorizontalPodAutoscaler controller, explains every decision, and
 can be tried on a laptop with a local cluster inside the program.
"""
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tandem

Files: *
Copyright: 2026 the authors of Tandem
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
"""


def depends(program, arch):
    """What dpkg-shlibdeps says of the program."""
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/debian")
        tree.write(f"{folder}/debian/control", f"Source: tandem\nMaintainer: {MAINTAINER}\n\nPackage: tandem\nArchitecture: {arch}\n".encode())
        done = subprocess.run(["dpkg-shlibdeps", "-O", program], cwd=folder, capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C", "DEB_HOST_ARCH": arch})
    found = re.search(r"^shlibs:Depends=(.+)$", done.stdout, re.M)
    if done.returncode != 0 or not found:
        tree.fail(f"dpkg-shlibdeps {program}: {done.stderr.strip()}")
    return found[1]


def _placed(files, arch):
    """Where Debian has it: manuals and changelog compressed, completion of zsh in its own folder, no second licence."""
    placed = {}
    for path, content in files.items():
        if path.startswith("usr/share/man/"):
            placed[path + ".gz"] = tree.gz(content)
        elif path.startswith("usr/share/zsh/site-functions/"):
            placed[path.replace("site-functions", "vendor-completions")] = content
        elif not path.startswith("usr/share/doc/"):
            placed[path] = content
    for name in ("kubectl-tandem", "kubectl_complete-tandem"):
        placed[f"usr/share/man/man1/{name}.1.gz"] = "tandem.1.gz"
    made = email.utils.format_datetime(datetime.datetime.fromtimestamp(tree.commit()[1], datetime.timezone.utc))
    log = f"tandem ({tree.version()}) unstable; urgency=medium\n\n  * Release {tree.version()}; see CHANGELOG.md of the source.\n\n -- {MAINTAINER}  {made}\n"
    placed["usr/share/doc/tandem/changelog.gz"] = tree.gz(log.encode())
    placed["usr/share/doc/tandem/copyright"] = COPYRIGHT.encode()
    return placed


def _member(name, data, epoch):
    head = f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n"
    return head.encode() + data + (b"\n" if len(data) % 2 else b"")


def package(arch, program, files, programs):
    """Name and bytes of the package."""
    version, epoch = tree.version(), tree.commit()[1]
    placed = _placed(files, arch)
    sums = "".join(f"{hashlib.md5(content, usedforsecurity=False).hexdigest()}  {path}\n"
                   for path, content in sorted(placed.items()) if isinstance(content, bytes))
    size = sum(-(-len(content) // 1024) for content in placed.values())
    control = (f"Package: tandem\nVersion: {version}\nArchitecture: {arch}\nMaintainer: {MAINTAINER}\nInstalled-Size: {size}\n"
               f"Depends: {depends(program, arch)}\nRecommends: ca-certificates\nSection: admin\nPriority: optional\n"
               f"Description: {SUMMARY}\n{DESCRIPTION}")
    data = tree.tar(placed, epoch, programs, prefix="./")
    meta = tree.tar({"control": control.encode(), "md5sums": sums.encode()}, epoch, prefix="./")
    out = b"!<arch>\n" + _member("debian-binary", b"2.0\n", epoch) + _member("control.tar.gz", tree.gz(meta), epoch)
    return f"tandem_{version}_{arch}.deb", out + _member("data.tar.gz", tree.gz(data), epoch)
