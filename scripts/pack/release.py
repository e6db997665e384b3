"""A release: the image, everything of `make dist`, the site, and the manifests of krew and Homebrew, with one table of names and hashes.

Usage: scripts/release [URL], where URL is the folder on the web from which the files will be fetched; without it the two manifests are left
out, since they would name nothing."""
import os
import re
import sys

import dist
import image
import tree


def fill(text, words):
    for name, value in words.items():
        text = text.replace(f"@{name}@", value)
    left = re.search(r"@[A-Z0-9]+@", re.sub(r"^#.*$", "", text, flags=re.M))
    if left:
        tree.fail(f"{left[0]} is not filled in")
    return re.sub(r"\A(?:#.*\n)+", "", text).encode()


def template(name):
    return tree.read(os.path.join(tree.TOP, "deploy", name)).decode()


def digest(name):
    return tree.sha256(tree.read(os.path.join(dist.DIST, name)))


def krew(url, names):
    text, version = template("krew/tandem.yaml"), tree.version()
    each = re.search(r"^ *# @EACH@\n(.*?)^ *# @END@\n", text, re.M | re.S)
    rows = [(arch, f"tandem-{version}-linux-{arch}.tar.gz") for arch in tree.ARCHES]
    platforms = "".join(each[1].replace("@ARCH@", arch).replace("@SHA256@", digest(name)) for arch, name in rows if name in names)
    return dist.keep("krew-tandem.yaml", fill(text.replace(each[0], platforms), {"VERSION": version, "URL": url}))


def formula(url):
    version = tree.version()
    words = {"VERSION": version, "URL": url, "SHA256": digest(f"tandem-{version}.tar.gz")}
    return dist.keep("tandem.rb", fill(template("homebrew/tandem.rb"), words))


def site():
    """The guide, with the schemas of the program that was just built."""
    tree.run([os.path.join(tree.TOP, "scripts", "docs"), os.path.join(tree.BUILD, "release", tree.native(), "tandem")])
    files, top = {}, os.path.join(tree.BUILD, "site")
    for at, _, found in os.walk(top):
        files.update({os.path.relpath(os.path.join(at, name), top): tree.read(os.path.join(at, name)) for name in found})
    name = f"tandem-{tree.version()}-site"
    return dist.keep(f"{name}.tar.gz", tree.gz(tree.tar(files, tree.commit()[1], prefix=name + "/")))


def take(names):
    """Copies files of build/ into build/dist/."""
    return [dist.keep(name, tree.read(os.path.join(tree.BUILD, name))) for name in names]


def main(url):
    version = tree.version()
    if tree.git("status", "--porcelain", "--untracked-files=no"):
        tree.fail("the checkout has changes that are not committed: a release is made of a commit")
    names = dist.make()
    image.main()
    names += take(name for name in sorted(os.listdir(tree.BUILD)) if re.fullmatch(
        rf"tandem-{re.escape(version)}(\.oci\.(tar|digest)|-image-[a-z0-9]+\.spdx\.json)", name))
    names.append(site())
    if url:
        names += [krew(url, names), formula(url)]
    else:
        print("krew, Homebrew: left out; say where the files will be fetched from: make release URL=https://...")
    print()
    dist.finish(names)


if __name__ == "__main__":
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and not re.fullmatch(r"https://[^\s@\"]+[^\s@\"/]", sys.argv[1])):
        tree.fail(f"release: '{' '.join(sys.argv[1:])}': must be a URL such as https://example.com/releases/0.1.0")
    main(sys.argv[1] if len(sys.argv) == 2 else None)
