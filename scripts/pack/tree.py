"""What is built: version, commit and its time, the program of an architecture, archives that come out the same everywhere."""
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile

TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.join(TOP, "build")
# Debian's names of what we build for: triple of its libraries, compiler prefix, machine number of ELF, name in an RPM.
ARCHES = {
    "amd64": {"triple": "x86_64-linux-gnu", "machine": 62, "rpm": "x86_64", "uname": "x86_64"},
    "arm64": {"triple": "aarch64-linux-gnu", "machine": 183, "rpm": "aarch64", "uname": "aarch64"},
}


def fail(text):
    sys.exit(f"tandem: {text}")


def git(*args):
    done = subprocess.run(["git", "-C", TOP, *args], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def version():
    with open(os.path.join(TOP, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(tandem VERSION ([0-9.]+)", file.read())[1]


def commit():
    """Its hash and its time in seconds: of the checkout, or what git archive wrote into the tarball."""
    if os.path.exists(os.path.join(TOP, ".git")) and git("rev-parse", "HEAD"):
        return git("rev-parse", "HEAD"), int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    with open(os.path.join(TOP, "scripts", "pack", "commit.txt"), encoding="utf-8") as file:
        words = file.read().split()
    if len(words) != 2 or not words[1].isdigit():
        fail("neither a git checkout nor a source tarball of a release: the commit is not known")
    return words[0], int(os.environ.get("SOURCE_DATE_EPOCH") or words[1])


def native():
    machine = os.uname().machine
    return next((name for name, arch in ARCHES.items() if arch["uname"] == machine), None)


def compiler(arch):
    """gcc here, Debian's cross compiler elsewhere; None: not installed."""
    name = "gcc" if arch == native() else f"{ARCHES[arch]['triple']}-gcc"
    return shutil.which(name) and name


def missing(arch):
    """Why the program cannot be built for it here; None: it can."""
    if not compiler(arch):
        return f"{ARCHES[arch]['triple']}-gcc is not installed (docs/release.md, Other architectures)"
    folder = f"/usr/lib/{ARCHES[arch]['triple']}/pkgconfig"
    for name in ("libevent_openssl", "yaml-0.1", "libcurl", "openssl"):
        if not os.path.exists(f"{folder}/{name}.pc"):
            return f"{folder}/{name}.pc is missing (docs/release.md, Other architectures)"
    return None


def run(command, env=None):
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{' '.join(command)}: {(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def build_program(arch, static=False, pages=None):
    """Builds and strips it in a folder of its own, whatever else is in build/; returns its path. `static`: with the libraries inside
    that Debian has as archives without further needs. `pages`: a folder of printed manual pages, for a program that cannot run here."""
    folder = os.path.join(BUILD, "release", arch + ("-static" if static else ""))
    triple = ARCHES[arch]["triple"]
    env = {k: v for k, v in os.environ.items() if k not in ("CFLAGS", "CPPFLAGS", "LDFLAGS", "CC", "DESTDIR")}
    env.update(LC_ALL="C", SOURCE_DATE_EPOCH=str(commit()[1]))
    options = [f"-DTANDEM_STATIC={'ON' if static else 'OFF'}"] + ([f"-DTANDEM_PAGES={pages}"] if pages else [])
    if arch != native():
        env["PKG_CONFIG_LIBDIR"] = f"/usr/lib/{triple}/pkgconfig:/usr/share/pkgconfig"
        options += ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={ARCHES[arch]['uname']}",
                    f"-DCMAKE_LIBRARY_ARCHITECTURE={triple}"]
    run(["cmake", "-S", TOP, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DTANDEM_TESTS=OFF",
         f"-DCMAKE_C_COMPILER={compiler(arch)}", "-DCMAKE_INSTALL_PREFIX=/usr", *options], env)
    run(["cmake", "--build", folder, "--target", "tandem"], env)
    stripped = os.path.join(folder, "stripped")
    os.makedirs(stripped, exist_ok=True)
    strip = "strip" if arch == native() else f"{triple}-strip"
    run([strip, "--strip-all", "-o", os.path.join(stripped, "tandem"), os.path.join(folder, "tandem")])
    return os.path.join(stripped, "tandem")


def install(folder):
    """What `make install PREFIX=/usr` lays down from a build folder, as a tree in memory, with the program stripped; and its programs."""
    root = os.path.join(folder, "root")
    shutil.rmtree(root, ignore_errors=True)
    run(["cmake", "--build", folder, "--target", "pages"])
    run(["cmake", "--install", folder, "--prefix", "/usr"], {**os.environ, "DESTDIR": root})
    files, programs = {}, set()
    for at, _, names in os.walk(root):
        for name in names:
            path = os.path.join(at, name)
            short = os.path.relpath(path, root)
            if os.path.islink(path):
                files[short] = os.readlink(path)
                continue
            files[short] = read(os.path.join(folder, "stripped", "tandem") if short == "usr/bin/tandem" else path)
            if os.access(path, os.X_OK):
                programs.add(short)
    return files, programs


# A tree of files in memory: path -> bytes of a file, str of a symbolic link's target, or None of a folder. Modes: 0755 where `programs` says.

def tar(files, epoch, programs=(), prefix=""):
    """A tar of them: names sorted, folders before what is in them, owner root, one time."""
    names = set(files)
    for name in files:
        while (name := os.path.dirname(name)):
            names.add(name)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(names):
            content = files.get(name)
            info = tarfile.TarInfo(prefix + name)
            info.mtime, info.uid, info.gid, info.uname, info.gname = epoch, 0, 0, "", ""
            info.mode = 0o755
            if content is None:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            elif isinstance(content, str):
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, content, 0o777
                archive.addfile(info)
            else:
                info.size, info.mode = len(content), 0o755 if name in programs else 0o644
                archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def gz(data):
    """Without a name and a time in its header."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(data)
    return out.getvalue()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    """Whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "wb") as file:
        file.write(data)
    os.replace(path + ".part", path)


def lay_out(files, folder, programs=()):
    """The same tree as a folder of the disk."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in sorted(files.items()):
        path = os.path.join(folder, name)
        os.makedirs(path if content is None else os.path.dirname(path), exist_ok=True)
        if isinstance(content, str):
            os.symlink(content, path)
        elif content is not None:
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, 0o755 if name in programs else 0o644)


def size(count):
    return f"{count / 2**20:.1f} MiB"
