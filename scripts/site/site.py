"""The guide as a static site: build/site/. Usage: scripts/docs, which starts it with the program as its argument."""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse

import reference
from pages import TOP, Site, page_of

OUT = os.path.join(TOP, "build", "site")
HERE = os.path.dirname(os.path.abspath(__file__))
BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "SUPPORT.md")
FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - Tandem</title><link rel="stylesheet" href="{up}style.css"></head>
<body><header><a class="home" href="{up}index.html">Tandem</a>
<nav><a href="{up}guide.html">Guide</a><a href="{up}reference/index.html">Reference</a><a href="{up}changelog.html">Changes</a></nav>
<input id="search" type="search" placeholder="Search" aria-label="Search" data-up="{up}"><ol id="found" hidden></ol></header>
<main>{body}</main>
<script src="{up}index.js"></script><script src="{up}search.js"></script></body></html>
"""


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def tree_files():
    done = subprocess.run(["git", "-C", TOP, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    if done.returncode == 0:
        return sorted(name for name in done.stdout.splitlines() if os.path.exists(os.path.join(TOP, name)))
    return sorted(os.path.relpath(os.path.join(at, name), TOP) for at, _, names in os.walk(TOP) for name in names if "/build" not in at)


def add_wanted(site, tree):
    """Files that pages link to, and for folders a list of what is in them."""
    todo, done = sorted(site.wanted), set()
    while todo:
        path = todo.pop()
        if path in done:
            continue
        done.add(path)
        if os.path.isdir(os.path.join(TOP, path)):
            inside = [name for name in tree if name.startswith(path + "/")]
            todo += inside
            rows = "\n".join(f'<li><a href="{os.path.relpath(name, path)}">{html.escape(os.path.relpath(name, path))}</a></li>' for name in inside)
            site.files[f"files/{path}/index.html"] = (path, f"<h1>{html.escape(path)}</h1>\n<ul>\n{rows}\n</ul>")
        elif os.path.exists(os.path.join(TOP, path)):
            with open(os.path.join(TOP, path), "rb") as file:
                site.files[path.removeprefix("docs/") if path.startswith("docs/img/") else f"files/{path}"] = file.read()


def dead_links(pages):
    """Links of the pages as written that lead nowhere on the site."""
    ids = {url: set(re.findall(r' id="([^"]+)"', text)) for url, text in pages.items() if isinstance(text, str)}
    dead = []
    for url, text in pages.items():
        for target in re.findall(r'(?:href|src)="([^"]+)"', text) if isinstance(text, str) else ():
            target = html.unescape(target)
            if re.match(r"[a-z]+:", target):
                continue
            path, _, fragment = target.partition("#")
            place = os.path.normpath(os.path.join(os.path.dirname(url), urllib.parse.unquote(path))) if path else url
            if place not in pages:
                dead.append(f"{url}: link to '{target}', which is not on the site")
            elif fragment and place in ids and urllib.parse.unquote(fragment) not in ids[place]:
                dead.append(f"{url}: link to '{target}': no heading of that name")
    return dead


def framed(url, title, body):
    up = "../" * url.count("/")
    return FRAME.format(title=html.escape(title), up=up, body=body)


def main(tandem):
    site, tree = Site(), tree_files()
    for path in [name for name in tree if re.fullmatch(r"docs/.*\.md", name)] + [name for name in BESIDE if name in tree]:
        site.add_markdown(path, read(path), page_of(path))
    problems = reference.add(site, tandem)
    add_wanted(site, tree)
    pages = {url: framed(url, *content) if isinstance(content, tuple) else content for url, content in site.files.items()}
    for name in ("style.css", "search.js"):
        with open(os.path.join(HERE, name), "rb") as file:
            pages[name] = file.read()
    pages["index.js"] = ("const INDEX=" + json.dumps(site.sections, ensure_ascii=False, separators=(",", ":")) + ";\n").encode()
    problems += dead_links(pages)
    if problems:
        sys.exit("\n".join(problems))
    shutil.rmtree(OUT, ignore_errors=True)
    for url, content in sorted(pages.items()):
        path = os.path.join(OUT, url)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
    links = sum(len(re.findall(r'(?:href|src)="', text)) for text in pages.values() if isinstance(text, str))
    count = sum(isinstance(text, str) for text in pages.values())
    print(f"site     {os.path.relpath(OUT, TOP)}/index.html: {count} pages, {links} links, {len(site.sections)} sections in the search")


main(os.path.abspath(sys.argv[1]))
