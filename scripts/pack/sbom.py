"""A bill of materials: SPDX 2.3 JSON of the program and the packages that its libraries came with."""
import datetime
import json
import re

import tree


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def _debian(row, arch):
    purl = f"pkg:deb/debian/{row['name']}@{row['version'].replace(':', '%3A').replace('+', '%2B')}?arch={arch}"
    return {
        "SPDXID": spdx_id(f"Package-{row['name']}"), "name": row["name"], "versionInfo": row["version"],
        "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "sourceInfo": f"built from {row['source']} {row['source_version']}", "licenseConcluded": "NOASSERTION",
        "licenseDeclared": row["licence"], "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}],
    }


def document(what, arch, program, packages):
    """`what` names the file that it describes, `program` is its bytes; packages are rows of closure.package."""
    commit, epoch = tree.commit()
    digest = tree.sha256(program)
    own = {
        "SPDXID": "SPDXRef-Package-tandem", "name": "tandem", "versionInfo": tree.version(), "supplier": "Organization: Tandem",
        "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "sourceInfo": f"commit {commit}", "primaryPackagePurpose": "APPLICATION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
        "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION",
    }
    rows = [_debian(row, arch) for row in sorted(packages, key=lambda row: row["name"])]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])] + [(own["SPDXID"], "DEPENDS_ON", row["SPDXID"]) for row in rows]
    made = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": what,
        "documentNamespace": f"https://tandem.dev/spdx/{what}-{digest[:16]}",
        "creationInfo": {"created": made, "creators": ["Organization: Tandem", f"Tool: tandem-{tree.version()}-scripts"]},
        "packages": [own] + rows,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations],
    }, indent=1).encode() + b"\n"
