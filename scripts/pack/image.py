"""The image: build/image/ (root of the native architecture), build/tandem-VERSION.oci.tar and its digest.

A file system without a shell: program, loader and libraries, certificates of authorities, one user, licences, bill of materials. One archive
holds the manifests of all architectures that can be built here, in the layout that skopeo, podman, kind and docker load read."""
import glob
import json
import os
import sys

import closure
import sbom
import tree

USER = 65532
SIZE_MAX = 12 * 2**20  # of the compressed layer
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
PASSWD = f"tandem:x:{USER}:{USER}:Tandem:/:/nonexistent\n"
GROUP = f"tandem:x:{USER}:\n"
# glibc has both services built in; without the line it would look for a file of each other one.
NSSWITCH = "passwd: files\ngroup: files\nhosts: files dns\n"


def authorities():
    """What the package ca-certificates trusts, without what the owner of this machine added to it."""
    files = sorted(glob.glob("/usr/share/ca-certificates/mozilla/*.crt"))
    if not files:
        tree.fail("/usr/share/ca-certificates/mozilla is empty; 'scripts/deps image' installs ca-certificates")
    return b"".join(tree.read(path).rstrip(b"\n") + b"\n" for path in files), files[0]


def root(arch):
    """The files of an architecture's root, and which of them are programs."""
    program = tree.build_program(arch)
    found, loader = closure.libraries(program, arch)
    triple = tree.ARCHES[arch]["triple"]
    certificates, one = authorities()
    packages = {row["name"]: row for row in map(closure.package, [*found.values(), one])}
    folder = f"usr/lib/{triple}"
    files = {
        "usr/bin/tandem": tree.read(program),
        "etc/passwd": PASSWD.encode(), "etc/group": GROUP.encode(), "etc/nsswitch.conf": NSSWITCH.encode(),
        "etc/ssl/certs/ca-certificates.crt": certificates,
        "usr/share/doc/tandem/copyright": tree.read(os.path.join(tree.TOP, "LICENSE")),
        "lib": "usr/lib", "tmp": None, "proc": None, "sys": None, "dev": None,
    }
    for name, path in found.items():
        files[f"{folder}/{name}"] = tree.read(path)
    if loader.startswith("/lib64/"):
        files["lib64"] = folder
    elif not loader.startswith(f"/lib/{triple}/"):
        files["usr" + loader] = f"{triple}/{os.path.basename(loader)}"
    for row in packages.values():
        files[f"usr/share/doc/{row['name']}/copyright"] = tree.read(row["copyright"])
    files["usr/share/sbom/tandem.spdx.json"] = sbom.document(
        f"tandem-{tree.version()}-image-{arch}", arch, files["usr/bin/tandem"], packages.values())
    programs = {"usr/bin/tandem"} | {f"{folder}/{name}" for name in found if name == os.path.basename(loader)}
    return files, programs


def dump(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Blobs:
    """The content-addressed store of the layout."""

    def __init__(self):
        self.files = {}

    def add(self, data, media, **more):
        digest = tree.sha256(data)
        self.files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data), **more}


def blob(row):
    return "blobs/sha256/" + row["digest"].split(":")[1]


def manifest(blobs, arch):
    """Adds layer, configuration and manifest of an architecture; returns the manifest's descriptor, its parts and its root."""
    commit, epoch = tree.commit()
    files, programs = root(arch)
    layer = tree.tar(files, epoch, programs)
    packed = tree.gz(layer)
    created = json.loads(files["usr/share/sbom/tandem.spdx.json"])["creationInfo"]["created"]
    labels = {"org.opencontainers.image.title": "tandem", "org.opencontainers.image.version": tree.version(),
              "org.opencontainers.image.revision": commit, "org.opencontainers.image.licenses": "Apache-2.0",
              "org.opencontainers.image.description": "scales Kubernetes pods: requests, replicas or both"}
    config = blobs.add(dump({
        "created": created, "architecture": arch, "os": "linux",
        "config": {"User": f"{USER}:{USER}", "Entrypoint": ["/usr/bin/tandem"], "Cmd": ["--help"], "WorkingDir": "/",
                   "Env": ["PATH=/usr/bin"], "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + tree.sha256(layer)]},
        "history": [{"created": created, "created_by": "make image"}],
    }), CONFIG)
    layers = [blobs.add(packed, LAYER)]
    if len(packed) > SIZE_MAX:
        tree.fail(f"the image for {arch} has {tree.size(len(packed))} compressed, more than {tree.size(SIZE_MAX)}")
    body = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers, "annotations": {
        "org.opencontainers.image.created": created, "org.opencontainers.image.revision": commit,
        "org.opencontainers.image.version": tree.version()}}
    return blobs.add(dump(body), MANIFEST, platform={"architecture": arch, "os": "linux"}), body, (files, programs)


def main():
    version, epoch = tree.version(), tree.commit()[1]
    # A name that no registry answers to: nothing is pulled by mistake where it was not loaded.
    name, blobs, rows, bodies = f"localhost/tandem:{version}", Blobs(), [], {}
    for arch in sorted(tree.ARCHES, key=lambda arch: arch != tree.native()):
        reason = tree.missing(arch)
        if reason and arch == tree.native():
            tree.fail(reason)
        if reason:
            print(f"{arch:<8} left out: {reason}")
            continue
        row, body, (files, programs) = manifest(blobs, arch)
        if arch == tree.native():
            tree.lay_out(files, os.path.join(tree.BUILD, "image"), programs)
        tree.write(os.path.join(tree.BUILD, f"tandem-{version}-image-{arch}.spdx.json"), files["usr/share/sbom/tandem.spdx.json"])
        print(f"{arch:<8} {tree.size(body['layers'][0]['size'])} compressed, {tree.size(sum(len(f) for f in files.values() if isinstance(f, bytes)))} "
              f"unpacked, {sum('.so' in f for f in files)} libraries")
        rows.append(row)
        bodies[arch] = body
    top = rows[0] if len(rows) == 1 else blobs.add(dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": rows}), INDEX)
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": version}
    first = bodies[tree.native()]
    out = tree.tar({
        **blobs.files, "oci-layout": dump({"imageLayoutVersion": "1.0.0"}),
        "index.json": dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": [{**top, "annotations": names}]}),
        # For docker without containerd's store, which reads no index.
        "manifest.json": dump([{"Config": blob(first["config"]), "RepoTags": [name], "Layers": [blob(row) for row in first["layers"]]}]),
    }, epoch)
    path = os.path.join(tree.BUILD, f"tandem-{version}.oci.tar")
    tree.write(path, out)
    tree.write(os.path.join(tree.BUILD, f"tandem-{version}.oci.digest"), top["digest"].encode() + b"\n")
    print(f"image    {name}\ndigest   {top['digest']}\narchive  {os.path.relpath(path)}, {tree.size(len(out))}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        tree.fail("scripts/image takes no argument")
    if tree.native() is None:
        tree.fail(f"an image is made on {' or '.join(tree.ARCHES)}, not on {os.uname().machine}")
    main()
