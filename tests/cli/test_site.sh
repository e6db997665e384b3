#!/bin/sh
# The site of `make docs`: every link leads somewhere, every field of the reference has a text, its examples are valid, the schema of a
# scenario has the fields that the program reads, and a page that breaks one of these is refused. Exit 77, which skips it, where the
# Python that it needs is not installed; in CI that is a failure.
. "$(dirname "$0")/lib.sh"
unset KUBECONFIG
python=
for each in python3 /usr/bin/python3; do
    "$each" -c 'import markdown, yaml' 2>/dev/null && python=$each && break
done
if [ -z "$python" ]; then
    [ -n "${CI:-}" ] && exit 1
    exit 77
fi

say() {
    count=$((count + 1))
    name=$1
    shift
    if "$@"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name: $(head -c 1000 "$work/out")"
        failed=$((failed + 1))
    fi
}

for each in vpa hpa hvpa; do
    check "the example of $each" 0 '^no problems in 1 object' '' validate "$top/docs/reference/$each.yaml"
done
check "the example of a scenario" 0 '^' '' simulate "$top/examples/shop" --for 1m --quiet

mkdir "$work/tree"
(cd "$top" && tar cf - --exclude=./build --exclude=./build-* --exclude=./.git .) | (cd "$work/tree" && tar xf -)
site() { "$python" -B "$work/tree/scripts/site/site.py" "$tandem" >"$work/out" 2>&1; }
say "the site is made" site
say "and says how much it has" grep -qE '^site +build/site/index.html: [0-9]+ pages, [0-9]+ links, [0-9]+ sections in the search$' "$work/out"
made=$work/tree/build/site
for each in index.html guide.html run.html reference/vpa.html reference/hvpa.html reference/scenario.html scenario.schema.json index.js search.js; do
    say "it has $each" test -s "$made/$each"
done
say "nothing of it is fetched from elsewhere" sh -c "! grep -rEl '(src|<link[^>]*href)=\"https?:' '$made' --include=*.html"
say "a field has its default" grep -qE 'title="spec.vertical.settleSeconds".*<td>60</td>' "$made/reference/hvpa.html"

fields_of_schema() {
    "$python" - "$top" <<'PY'
import glob, re, sys, yaml
top = sys.argv[1]
names = set()
def walk(node):
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        names.update(value if key == "properties" else ())
        walk(value)
walk(yaml.safe_load(open(f"{top}/docs/reference/scenario.yaml")))
read = set()
for path in glob.glob(f"{top}/src/sim/scenario/*.c"):
    text = open(path).read()
    read |= set(re.findall(r'\{"([A-Za-z-]+)", (?:TD_PLACE|SERIES)_', text)) | set(re.findall(r'td_place_member\([^,]+, "([A-Za-z]+)"\)', text))
print("only in the schema:", sorted(names - read), "only in the program:", sorted(read - names))
sys.exit(len(read) < 40 or names != read)
PY
}
fields_of_schema >"$work/out" 2>&1
say "the schema of a scenario has the fields that the program reads" test $? -eq 0

# What must be refused.
refused() { ! site && grep -qF "$1" "$work/out"; }
printf '\n[x](nowhere.html)\n' >>"$work/tree/docs/tour.md"
say "a dead link" refused "tour.html: link to"
printf '\n[x](run.md#nowhere)\n' >>"$work/tree/docs/tour.md"
say "a dead fragment" refused "no heading of that name"
sed -i '/^tolerancePercent:/d' "$work/tree/docs/reference/fields.yaml"
say "a field without a text" refused "spec.vertical.tolerancePercent: has no text"
echo 'noSuchField: {text: "x"}' >>"$work/tree/docs/reference/fields.yaml"
say "a text without a field" refused "'noSuchField' fits no field"
finish
