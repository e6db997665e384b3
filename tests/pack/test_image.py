#!/usr/bin/env python3
"""The image is the same in two clones, holds what it should and nothing else, and starts as a Deployment says."""
import filecmp
import json
import os
import re

from pack import case, clone, main, run

ALLOWED = [r"usr/bin/tandem", r"usr/lib/[a-z0-9_-]+/[a-zA-Z0-9_.+-]+\.so[.0-9]*", r"etc/(passwd|group|nsswitch\.conf)",
           r"etc/ssl/certs/ca-certificates\.crt", r"usr/share/doc/[a-z0-9.+-]+/copyright", r"usr/share/sbom/tandem\.spdx\.json",
           r"lib|lib64|usr/lib/ld-linux[a-z0-9-]+\.so\.[0-9]"]


def files(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, folders, names in os.walk(folder)
                  for name in names + [f for f in folders if os.path.islink(os.path.join(at, f))])


@case("two clones in different places make the same image, bit for bit")
def same(folder):
    one, two = clone(f"{folder}/one"), clone(f"{folder}/some/where/else")
    said = run("scripts/image", cwd=one)
    run("scripts/image", cwd=two, env={"CCACHE_DISABLE": "1", "TZ": "Asia/Tokyo", "CFLAGS": "-O0"})
    names = [name for name in os.listdir(f"{one}/build") if name.startswith("tandem-")]
    assert len(names) >= 3, names
    for name in names:
        assert filecmp.cmp(f"{one}/build/{name}", f"{two}/build/{name}", shallow=False), f"{name} differs"
    with open(f"{one}/build/{next(n for n in names if n.endswith('.oci.digest'))}") as file:
        digest = file.read()
    assert re.fullmatch(r"sha256:[0-9a-f]{64}\n", digest) and digest.strip() in said, said


def archive(folder):
    return next(f"{folder}/one/build/{name}" for name in os.listdir(f"{folder}/one/build") if name.endswith(".oci.tar"))


@case("skopeo and umoci read it: the digest that was said, at most 12 MiB, the files of build/image")
def others(folder):
    path = archive(folder)
    with open(path.replace(".oci.tar", ".oci.digest")) as file:
        digest = file.read().strip()
    assert digest == run("skopeo", "inspect", "--format", "{{.Digest}}", f"oci-archive:{path}").strip(), digest
    run("skopeo", "copy", "--quiet", f"oci-archive:{path}", f"oci:{folder}/layout:1")
    layers = json.loads(run("skopeo", "inspect", "--raw", f"oci:{folder}/layout:1"))["layers"]
    assert layers and sum(layer["size"] for layer in layers) <= 12 * 2**20, layers
    run("skopeo", "copy", "--quiet", f"docker-archive:{path}", f"dir:{folder}/docker")
    run("umoci", "unpack", "--rootless", "--image", f"{folder}/layout:1", f"{folder}/bundle")
    ours = f"{folder}/one/build/image"
    assert files(ours) == files(f"{folder}/bundle/rootfs")
    for name in files(ours):
        a, b = f"{ours}/{name}", f"{folder}/bundle/rootfs/{name}"
        assert os.readlink(a) == os.readlink(b) if os.path.islink(a) else filecmp.cmp(a, b, shallow=False), name


@case("nothing but program, libraries, certificates, one user, licences and bill: no shell")
def contents(folder):
    root = f"{folder}/one/build/image"
    extra = [name for name in files(root) if not any(re.fullmatch(form, name) for form in ALLOWED)]
    assert not extra, extra
    with open(f"{root}/etc/passwd") as file:
        assert re.fullmatch(r"tandem:x:65532:65532:[^\n]*\n", file.read())
    programs = [name for name in files(root) if os.access(f"{root}/{name}", os.X_OK) and not os.path.islink(f"{root}/{name}")]
    assert [name for name in programs if "ld-linux" not in name] == ["usr/bin/tandem"], programs


@case("the bill names the package of each library with its version, and each has its licence")
def bill(folder):
    root = f"{folder}/one/build/image"
    with open(f"{root}/usr/share/sbom/tandem.spdx.json") as file:
        sbom = json.load(file)
    assert sbom["spdxVersion"] == "SPDX-2.3" and sbom["dataLicense"] == "CC0-1.0"
    rows = {row["name"]: row for row in sbom["packages"]}
    for name in ("tandem", "libc6", "libcurl4", "libssl3", "libyaml-0-2", "ca-certificates"):
        assert rows[name]["versionInfo"], name
    ids = {row["SPDXID"] for row in sbom["packages"]} | {"SPDXRef-DOCUMENT"}
    assert len(ids) == len(rows) + 1
    assert all({r["spdxElementId"], r["relatedSpdxElement"]} <= ids for r in sbom["relationships"])
    assert all(os.path.getsize(f"{root}/usr/share/doc/{name}/copyright") > 0 for name in rows)
    assert all(run("dpkg-query", "-W", "-f", "${Version}", name) == row["versionInfo"] for name, row in rows.items() if name != "tandem")


@case("it starts with a read-only root, uid 65532, no capability and no network")
def starts(folder):
    os.makedirs(f"{folder}/start", exist_ok=True)
    run("crun", "spec", cwd=f"{folder}/start")
    with open(f"{folder}/start/config.json") as file:
        config = json.load(file)
    config["root"] = {"path": f"{folder}/one/build/image", "readonly": True}
    none = {kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")}
    config["process"].update(terminal=False, user={"uid": 65532, "gid": 65532}, capabilities=none, noNewPrivileges=True,
                             args=["/usr/bin/tandem", "--version"], env=["PATH=/usr/bin"])
    with open(f"{folder}/start/config.json", "w") as file:
        json.dump(config, file)
    # Without cgroups in its view: crun takes no mixed ones.
    said = run("unshare", "--mount", "sh", "-c", f"mount -t tmpfs tmpfs /sys/fs/cgroup && crun --cgroup-manager=disabled run tandem-pack-{os.getpid()}",
               cwd=f"{folder}/start")
    head = run("git", "rev-parse", "--short=12", "HEAD", cwd=f"{folder}/one").strip()
    assert said.startswith("tandem ") and head in said, said


main()
