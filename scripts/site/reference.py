"""The reference: a row for each field, with its type, default and text. Schemas come from the program, which serves them as an API server
does; what they do not say is in docs/reference/."""
import base64
import html
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

import yaml

from pages import TOP

KINDS = [
    ("vpa", "VerticalPodAutoscaler", "apis/autoscaling.k8s.io/v1", "Recommends requests from use, and applies them."),
    ("hpa", "HorizontalPodAutoscaler", "apis/autoscaling/v2", "Keeps metrics near targets by the number of pods."),
    ("hvpa", "Hvpa", "apis/autoscaling.k8s.io/v1alpha1", "One object for number and size."),
    ("checkpoint", "VerticalPodAutoscalerCheckpoint", "apis/autoscaling.k8s.io/v1", "What was learnt of a container."),
]
DEPTH_MAX = 16


class Server:
    """A local cluster for as long as its schemas are read."""

    def __init__(self, tandem):
        self.folder = tempfile.TemporaryDirectory()
        path = f"{self.folder.name}/kubeconfig"
        self.process = subprocess.Popen([tandem, "up", "--controllers", "none", "--listen", "127.0.0.1:0", "--page", "off", "--quiet",
                                         "--kubeconfig", path], stdout=subprocess.DEVNULL)
        for _ in range(200):
            if os.path.exists(path) or self.process.poll() is not None:
                break
            time.sleep(0.1)
        else:
            sys.exit("tandem: the local cluster for the reference does not start")
        with open(path, encoding="utf-8") as file:
            config = yaml.safe_load(file)
        self.url = config["clusters"][0]["cluster"]["server"]
        self.context = ssl.create_default_context(cadata=base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode())
        for name in ("certificate", "key"):
            with open(f"{self.folder.name}/{name}", "wb") as file:
                file.write(base64.b64decode(config["users"][0]["user"][f"client-{name}-data"]))
        self.context.load_cert_chain(f"{self.folder.name}/certificate", f"{self.folder.name}/key")

    def schemas(self, path):
        with urllib.request.urlopen(f"{self.url}/openapi/v3/{path}", context=self.context, timeout=20) as answer:
            return json.load(answer)["components"]["schemas"]

    def end(self):
        self.process.terminate()
        self.process.wait(20)
        self.folder.cleanup()


class Texts:
    """docs/reference/fields.yaml: texts and defaults by the end of a path."""

    def __init__(self):
        with open(os.path.join(TOP, "docs/reference/fields.yaml"), encoding="utf-8") as file:
            self.rows = yaml.safe_load(file)
        self.used = set()

    def find(self, kind, path, what):
        words = path.split(".")
        for i in range(len(words)):
            end = ".".join(words[i:])
            for key in (f"{kind}:{end}", end, end.removesuffix("[]")):
                if what in self.rows.get(key, {}):
                    self.used.add(key)
                    return self.rows[key][what]
        return None


def resolved(schema, schemas):
    for part in ([schema] + schema.get("allOf", [])):
        if "$ref" in part:
            found = schemas[part["$ref"].split("/")[-1]]
            return {**resolved(found, schemas), **{k: v for k, v in schema.items() if k in ("description", "default")}}
    return schema


def type_of(schema):
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        return "quantity"
    if schema.get("title"):
        return schema["title"]
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    return {"array": "list", "object": "object" if schema.get("properties") else "map"}.get(kind, schema.get("format") or kind)


def walk(schema, schemas, path, depth=0):
    """(path, schema, is required) of each field below a schema."""
    assert depth < DEPTH_MAX, path
    schema = resolved(schema, schemas)
    items = resolved(schema["items"], schemas) if "items" in schema else None
    more = schema.get("additionalProperties")
    if items:
        yield from walk(items, schemas, path + "[]", depth + 1)
        return
    for name, field in sorted(schema.get("properties", {}).items()):
        field = resolved(field, schemas)
        own = f"{path}.{name}" if path else name
        yield own, field, name in schema.get("required", [])
        is_again = own.startswith("spec.") and name in ("spec", "status", "metadata")  # a whole object where its spec may stand
        if name != "metadata" and not is_again:
            yield from walk(field, schemas, own, depth + 1)
    for one in schema.get("anyOf", []):
        yield from walk(one, schemas, path, depth + 1)
    if isinstance(more, dict) and more.get("properties"):
        yield from walk(more, schemas, f"{path}.*", depth + 1)


def row(kind, texts, path, schema, required, problems):
    text = schema.get("description") or texts.find(kind, path, "text")
    if path.endswith((".spec", ".status")) and path.startswith("spec."):
        text = text or "Of a whole object in this place: the fields are those beside it."
    if not text:
        problems.append(f"{kind}: {path}: has no text: add it to docs/reference/fields.yaml")
    default = texts.find(kind, path, "default")
    default = schema.get("default", "") if default is None else default
    default = "required" if required else default
    values = f" One of {', '.join(map(str, schema['enum']))}." if schema.get("enum") else ""
    mark = path.replace("[]", "").replace(".", "-").replace("*", "any")
    depth, name = path.count("."), path.split(".")[-1]
    return (f'<tr id="{mark}"><td class="depth{depth}" title="{html.escape(path)}"><code>{html.escape(name)}</code></td><td>{html.escape(type_of(schema))}</td>'
            f"<td>{html.escape(str(default))}</td><td>{html.escape((text or '') + values)}</td></tr>")


def table(kind, texts, fields, problems):
    rows = "\n".join(row(kind, texts, *field, problems) for field in fields)
    return f"<table><thead><tr><th>field</th><th>type</th><th>default</th><th></th></tr></thead><tbody>\n{rows}\n</tbody></table>"


def example(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return f'<h2 id="example">Example</h2>\n<pre><code>{html.escape(file.read())}</code></pre>'


def add_kind(site, server, texts, problems, short, kind, path, what):
    schemas = server.schemas(path)
    name = next(name for name in schemas if name.endswith(f".{kind}"))
    fields = list(walk(schemas[name], schemas, ""))
    body = [f'<h1 id="{short}">{kind}</h1>\n<p>{what} <code>{path.removeprefix("apis/")}</code></p>']
    for part in ("spec", "status"):
        chosen = [field for field in fields if field[0].startswith(part)]
        if chosen:
            body.append(f'<h2 id="{part}">{part}</h2>\n' + table(kind, texts, chosen, problems))
    if os.path.exists(os.path.join(TOP, f"docs/reference/{short}.yaml")):
        body.append(example(f"docs/reference/{short}.yaml"))
    site.add_page(f"reference/{short}.html", kind, "\n".join(body))


def add_scenario(site, texts, problems):
    with open(os.path.join(TOP, "docs/reference/scenario.yaml"), encoding="utf-8") as file:
        schema = yaml.safe_load(file)
    names = schema["definitions"]
    without_series = {key: {k: v for k, v in value.items() if k != "anyOf"} for key, value in names.items()}
    body = ['<h1 id="scenario">Scenario</h1>\n<p>What a local cluster has, what its workloads want and what happens when. '
            'For editors: <a href="../scenario.schema.json">scenario.schema.json</a>.</p>']
    body.append('<h2 id="fields">Fields</h2>\n' + table("Scenario", texts, walk(schema, without_series, ""), problems))
    body.append('<h2 id="series">series</h2>\n<p>A value that does not change, or:</p>\n' +
                table("Scenario", texts, walk(names["series"], without_series, ""), problems))
    body.append(example("examples/shop/scenario.yaml"))
    site.add_page("reference/scenario.html", "Scenario", "\n".join(body))
    site.files["scenario.schema.json"] = json.dumps(schema, indent=1).encode() + b"\n"


def add(site, tandem):
    """Pages of all kinds; returns what is missing or too much."""
    problems, texts, server = [], Texts(), Server(tandem)
    try:
        for kind in KINDS:
            add_kind(site, server, texts, problems, *kind)
    finally:
        server.end()
    add_scenario(site, texts, problems)
    rows = "\n".join(f'<li><a href="{short}.html">{kind}</a>: {what}</li>' for short, kind, _, what in KINDS)
    site.add_page("reference/index.html", "Reference", f'<h1 id="reference">Reference</h1>\n<p>Every field, with its default.</p>\n<ul>\n{rows}\n'
                  '<li><a href="scenario.html">Scenario</a>: what a local cluster has, and what happens in it.</li>\n</ul>')
    problems += [f"docs/reference/fields.yaml: '{key}' fits no field" for key in sorted(set(texts.rows) - texts.used)]
    return problems
