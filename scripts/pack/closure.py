"""The shared libraries that a program needs, found by its ELF headers in Debian's folders, and the package that each came with.

Read from the files, not asked of the loader: so a program of another architecture works alike, and nothing of it is run."""
import functools
import os
import re
import struct
import subprocess

from tree import ARCHES, fail, native as tree_native, read

DT_NEEDED, DT_STRTAB = 1, 5
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3


class Elf:
    """What of a 64-bit little-endian ELF file a loader looks at first."""

    def __init__(self, path):
        self.data, self.path = read(path), path
        if self.data[:6] != b"\x7fELF\x02\x01":
            fail(f"{path}: is not a 64-bit little-endian ELF file")
        self.machine, = struct.unpack_from("<H", self.data, 18)
        offset, = struct.unpack_from("<Q", self.data, 32)
        each, count = struct.unpack_from("<HH", self.data, 54)
        self.segments = [struct.unpack_from("<IIQQQQ", self.data, offset + each * i) for i in range(count)]

    def _offset(self, address):
        return next(address - at + offset for kind, _, offset, at, _, length in self.segments if kind == PT_LOAD and at <= address < at + length)

    def _text(self, offset):
        return self.data[offset:self.data.index(b"\0", offset)].decode()

    def interpreter(self):
        return next((self._text(offset) for kind, _, offset, *_ in self.segments if kind == PT_INTERP), None)

    def needed(self):
        offset, length = next(((o, n) for kind, _, o, _, _, n in self.segments if kind == PT_DYNAMIC), (0, 0))
        rows = [struct.unpack_from("<qQ", self.data, offset + i) for i in range(0, length, 16)]
        strings = next((self._offset(value) for tag, value in rows if tag == DT_STRTAB), 0)
        return [self._text(strings + value) for tag, value in rows if tag == DT_NEEDED]


def libraries(program, arch):
    """{soname: path} of all that it loads, its loader among them; the path of the loader as the program says it."""
    triple, machine = ARCHES[arch]["triple"], ARCHES[arch]["machine"]
    found, todo = {}, [Elf(program)]
    loader = todo[0].interpreter()
    while todo:
        elf = todo.pop()
        if elf.machine != machine:
            fail(f"{elf.path}: is not made for {arch}")
        for name in elf.needed() + ([os.path.basename(loader)] if elf.path == program else []):
            if name in found:
                continue
            path = next((p for p in (f"/usr/lib/{triple}/{name}", f"/lib/{triple}/{name}", f"/usr/{triple}/lib/{name}") if os.path.exists(p)), None)
            if not path:
                fail(f"{elf.path}: needs {name}, which is in no folder of {triple}")
            found[name] = os.path.realpath(path)
            todo.append(Elf(found[name]))
    return found, loader


@functools.lru_cache(maxsize=None)
def package(path):
    """The Debian package of a file: {name, version, source, licence, copyright}; the last is its file of licences."""
    native = path
    for arch in ARCHES.values():
        native = native.replace(f"/{arch['triple']}/", f"/{ARCHES[tree_native()]['triple']}/")
    # The last is of what could only be unpacked beside this machine's own (docs/release.md, Other architectures).
    for name in (path, path.replace("/usr/lib/", "/lib/", 1), "/usr" + path, native):
        done = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        if done.returncode == 0:
            owner = done.stdout.split(": ")[0].split(",")[0]
            break
    else:
        fail(f"{path}: belongs to no package; the image is made of Debian's packages")
    form = "${Package}\t${Version}\t${source:Package}\t${source:Version}\t${Maintainer}"
    done = subprocess.run(["dpkg-query", "-W", "-f", form, owner], capture_output=True, text=True, check=True)
    name, version, source, source_version, maintainer = done.stdout.split("\t")
    licences = os.path.realpath(f"/usr/share/doc/{name}/copyright")
    if not os.path.exists(licences):
        fail(f"{licences}: the licence of {name} is missing")
    return {"name": name, "version": version, "source": source, "source_version": source_version, "maintainer": maintainer,
            "licence": declared(licences), "copyright": licences}


# Debian's short names of licences that SPDX has under another name or the same.
SPDX = {"Apache-2.0": "Apache-2.0", "Expat": "MIT", "MIT": "MIT", "BSD-3-clause": "BSD-3-Clause", "BSD-3-Clause": "BSD-3-Clause",
        "BSD-2-clause": "BSD-2-Clause", "curl": "curl", "Zlib": "Zlib", "zlib": "Zlib", "LGPL-2.1+": "LGPL-2.1-or-later",
        "LGPL-2.1": "LGPL-2.1-only", "LGPL-2+": "LGPL-2.0-or-later", "LGPL-3+": "LGPL-3.0-or-later", "GPL-2+": "GPL-2.0-or-later",
        "GPL-3+": "GPL-3.0-or-later", "GPL-2": "GPL-2.0-only", "MPL-2.0": "MPL-2.0", "ISC": "ISC", "LGPLv2.1+": "LGPL-2.1-or-later"}


def declared(path):
    """What a copyright file in Debian's format says of all files, in SPDX's words; NOASSERTION where it says it otherwise."""
    text = read(path).decode(errors="replace")
    match = re.search(r"^Files: \*\s*$.*?^License: *(\S[^\n]*)$", text, re.M | re.S)
    return SPDX.get(match[1].strip(), "NOASSERTION") if match else "NOASSERTION"
