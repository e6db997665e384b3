"""Markdown as the guide is written to HTML, as GitHub shows it: ids of headings, lists that begin without an empty line, tables."""
import html
import os
import re

import markdown

TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def slug(text, _separator="-"):
    """As GitHub makes the id of a heading."""
    return re.sub(r"[^\w\- ]", "", html.unescape(text).lower()).strip().replace(" ", "-")


def prepared(text):
    """Comments are for the tests, and a list may follow a paragraph at once."""
    lines, fenced = [], False
    for line in re.sub(r"<!--.*?-->\n?", "", text, flags=re.S).split("\n"):
        fence = line.lstrip().startswith("```")
        fenced = not fenced if fence else fenced
        before = lines[-1] if lines else ""
        is_item = re.match(r"(?:[-*]|\d+\.) ", line)
        if not fenced and is_item and before.strip() and not re.match(r"\s*(?:[-*]|\d+\.) |\s", before):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def page_of(path):
    """Where a Markdown file of the tree is on the site; None: nowhere."""
    if path == "docs/home.md":
        return "index.html"
    if path == "docs/README.md":
        return "guide.html"
    if path.startswith("docs/") and path.endswith(".md"):
        return re.sub(r"README\.md$", "index.html", path.removeprefix("docs/")).removesuffix(".md") + ("" if path.endswith("README.md") else ".html")
    return path.removesuffix(".md").lower() + ".html" if path in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "SUPPORT.md") else None


class Site:
    """What is on it: {path on the site: bytes}, and the pages' texts for the search."""

    def __init__(self):
        self.files, self.sections, self.wanted = {}, [], set()

    def _target(self, source, url, target):
        """A link of the page of `source`, as it is on the site."""
        path, mark, fragment = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return target
        file = os.path.normpath(os.path.join(os.path.dirname(source), path))
        place = page_of(file) if os.path.isfile(os.path.join(TOP, file)) else None
        if os.path.isdir(os.path.join(TOP, file)):
            readme = f"{file}/README.md"
            place = page_of(readme) if os.path.exists(os.path.join(TOP, readme)) else None
            place = place or f"files/{file}/index.html"
            if place.startswith("files/"):
                self.wanted.add(file)
        if place is None and file.startswith("docs/img/"):
            place = file.removeprefix("docs/")
            self.wanted.add(file)
        if place is None:
            place = f"files/{file}"
            self.wanted.add(file)
        return os.path.relpath(place, os.path.dirname(url) or ".") + mark + fragment

    def add_markdown(self, source, text, url):
        """Converts a page; links are relative to its file in the tree."""
        engine = markdown.Markdown(extensions=["tables", "fenced_code", "sane_lists", "toc"], tab_length=2,
                                   extension_configs={"toc": {"slugify": slug}})
        body = engine.convert(prepared(text))
        body = re.sub(r'(<(?:a|img)[^>]*? (?:href|src)=")([^"]+)(")', lambda m: m[1] + self._target(source, url, html.unescape(m[2])) + m[3], body)
        title = next((row["name"] for row in engine.toc_tokens), source)
        self.add_page(url, html.unescape(re.sub(r"<[^>]+>", "", title)), body)

    def add_page(self, url, title, body):
        self.files[url] = (title, body)
        parts = re.split(r'<h[1-4] id="([^"]*)">(.*?)</h[1-4]>', body, flags=re.S)
        for i in range(1, len(parts), 3):
            words = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", parts[i + 2]))).strip()
            self.sections.append([html.unescape(re.sub(r"<[^>]+>", "", parts[i + 1])), title, f"{url}#{parts[i]}", words[:600]])
