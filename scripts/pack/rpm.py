"""An RPM, by rpmbuild, of a tree that is built already; without the names of the machine and the day."""
import datetime
import os
import shutil
import tempfile

import tree

SPEC = """\
Name: tandem
Version: {version}
Release: 1
Summary: Autoscaler of Kubernetes pods: requests, replicas or both
License: Apache-2.0
Group: System/Management
Recommends: ca-certificates

%description
Tandem decides how big Kubernetes pods are and how many there are, the
two together. It takes over the work of the Vertical Pod Autoscaler and
of the HorizontalPodAutoscaler controller, explains every decision, and
can be tried on a laptop with a local cluster inside the program.

%install
cp -a {root}/. %{{buildroot}}/

%files
{files}

%changelog
* {day} Tandem maintainers <maintainers@tandem.dev> - {version}-1
- Release {version}; see CHANGELOG.md of the source.
"""
# Symbols of libcurl have a version on Debian only.
MACROS = {
    "_buildhost": "tandem", "use_source_date_epoch_as_buildtime": "1", "clamp_mtime_to_source_date_epoch": "1",
    "source_date_epoch_from_changelog": "0", "_build_id_links": "none", "debug_package": "%{nil}", "__os_install_post": "%{nil}",
    "_binary_payload": "w9.gzdio", "__requires_exclude": "^libcurl.*CURL", "_vendor": "tandem",
}


def _list(files):
    rows = ["%dir /usr/share/doc/tandem"]
    for path in sorted(files):
        mark = "%doc " if path.startswith("usr/share/man/") else "%license " if path.endswith("/LICENSE") else ""
        rows.append(f"{mark}/{path}")
    return "\n".join(rows)


def package(arch, files, programs):
    """Name and bytes of the package."""
    version, epoch = tree.version(), tree.commit()[1]
    placed = {path + ".gz" if "/share/man/" in path else path: tree.gz(content) if "/share/man/" in path else content
              for path, content in files.items()}
    for name in ("kubectl-tandem", "kubectl_complete-tandem"):
        placed[f"usr/share/man/man1/{name}.1.gz"] = "tandem.1.gz"
    day = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%a %b %d %Y")
    machine = tree.ARCHES[arch]["rpm"]
    top = tempfile.mkdtemp(prefix="tandem-rpm-")
    try:
        tree.lay_out(placed, f"{top}/root", programs)
        for at, folders, names in os.walk(f"{top}/root"):
            for name in folders + names:
                os.utime(os.path.join(at, name), (epoch, epoch), follow_symlinks=False)
        tree.write(f"{top}/tandem.spec", SPEC.format(version=version, root=f"{top}/root", files=_list(placed), day=day).encode())
        defines = [word for name, value in {**MACROS, "_topdir": top}.items() for word in ("--define", f"{name} {value}")]
        tree.run(["rpmbuild", "-bb", "--quiet", "--target", f"{machine}-linux", *defines, f"{top}/tandem.spec"],
                 {**os.environ, "LC_ALL": "C", "TZ": "UTC", "SOURCE_DATE_EPOCH": str(epoch), "HOME": top})
        name = f"tandem-{version}-1.{machine}.rpm"
        return name, tree.read(f"{top}/RPMS/{machine}/{name}")
    finally:
        shutil.rmtree(top)
