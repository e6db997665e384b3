#!/bin/sh
# What the documentation says of the tree holds (scripts/check-docs), and in a copy of the tree it fails on what is not there: a file, a
# function, a link, a heading, a page that the index leaves out, a section that a comment cites.
. "$(dirname "$0")/lib.sh"

# result NAME STATUS: of the command before, whose output is in $work/out
result() {
    count=$((count + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1: $(head -c 1000 "$work/out")"
        failed=$((failed + 1))
    fi
}
# add FILE TEXT: a line more in a file of the copy
add() { printf '%s\n' "$2" >>"$work/tree/$1"; }
# found NAME TEXT: one of the problems
found() {
    grep -qF "$2" "$work/out"
    result "$1" $?
}

"$top/scripts/check-docs" >"$work/out" 2>&1
result "the tree" $?
mkdir "$work/tree"
for part in docs src scripts tests bench examples tools deploy share; do cp -R "$top/$part" "$work/tree/"; done
cp "$top"/*.md "$top/LICENSE" "$top/Makefile" "$work/tree/"
"$work/tree/scripts/check-docs" >"$work/out" 2>&1
result "a copy without git" $?

add docs/architecture.md "$(printf '\n- `control/no_such.c`: it is not there.\n- `model/pod.c`: `td_no_such`.\n- `model/pod.c`: `td_hpa_decide`.\n')"
add src/model/README.md 'See `no_such.h`.'
add docs/internals/control/informers.md '`td_no_longer` makes it.'
add README.md '[x](nowhere.md) [x](docs/README.md#nowhere)'
add docs/internals/base/extra.md '# extra'
add src/model/pod.h '/* As vpa.md 99.9 has it. */'
add src/model/pod.h '/* docs/none.md */'
"$work/tree/scripts/check-docs" >"$work/out" 2>&1
[ $? -eq 1 ]
result "a broken copy" $?
found "a walk with a missing file" "names the file 'control/no_such.c'"
found "a walk with a missing function" "'td_no_such' is in none"
found "a function of another file" "'td_hpa_decide' is in none"
found "a file of a README" "src/model/README.md:$(wc -l <"$work/tree/src/model/README.md" | tr -d ' '): names the file 'no_such.h'"
found "a name that is gone" "names 'td_no_longer'"
found "a link" "link to 'nowhere.md'"
found "a heading" "no heading '#nowhere'"
found "a page without a link" "has no link to docs/internals/base/extra.md"
found "a section" "cites vpa.md 99.9"
found "a page that a comment names" "names docs/none.md"
finish
