#!/bin/sh
# Completion and manual pages say what --help says: the same options, each with its words; every value that is offered is taken.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
unset KUBECONFIG
commands=$("$tandem" __complete '' | sed -n 's/^\([a-z]*\)\t.*/\1/p' | grep -vx -e help -e man)

# say NAME CONDITION...
say() {
    count=$((count + 1))
    name=$1
    shift
    if "$@"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        failed=$((failed + 1))
    fi
}

same_commands() {
    "$tandem" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' | sort >"$work/help"
    printf '%s\n' "$commands" | sort | cmp - "$work/help" && [ "$(printf '%s\n' "$commands" | wc -l)" -ge 9 ]
}
say "the commands are those of tandem --help" same_commands

# Options of a row of help: what stands at two spaces before the words.
options_of_help() {
    "$tandem" "$1" --help | grep -E '^  -' | sed 's/^  //; s/  .*//' | grep -oE -- '--[a-z][a-z-]*' | sort -u
}
same_options() {
    for command in $commands; do
        options_of_help "$command" >"$work/help"
        echo --help >>"$work/help"
        sort -u "$work/help" -o "$work/help"
        "$tandem" __complete "$command" -- | sed -n 's/^\(--[a-z0-9-]*\).*/\1/p' | sort -u >"$work/offered"
        if [ "$command" = run ]; then # it has all flags of --flags, of which help shows some
            "$tandem" run --flags | sed -n 's/^| `\(--[a-z0-9-]*\)`.*/\1/p' >"$work/flags"
            printf '%s\n' --flags --help --quiet >>"$work/flags"
            sort -u "$work/flags" | cmp - "$work/offered" || return 1
            comm -23 "$work/help" "$work/offered" | grep . && return 1
            continue
        fi
        "$tandem" run --flags | sed -n 's/^| `\(--[a-z0-9-]*\)`.*/\1/p' | sort -u >"$work/flags"
        if "$tandem" "$command" --help | grep -q -- '--FLAG VALUE'; then
            comm -23 "$work/offered" "$work/help" >"$work/more"
            comm -23 "$work/more" "$work/flags" | grep . && return 1
            comm -23 "$work/help" "$work/offered" | grep . && return 1
        else
            cmp "$work/help" "$work/offered" || return 1
        fi
    done
}
say "the options are those of --help, and of run those of --flags" same_options

said_options() {
    for command in $commands; do
        ! "$tandem" __complete "$command" -- | grep -xE -- '--[a-z0-9-]+' || return 1
    done
}
say "each option says what it does" said_options

same_pages() {
    for command in $commands; do
        "$tandem" man "$command" >"$work/page" || return 1
        options_of_help "$command" >"$work/help"
        sed -n 's/^\.It Li //p' "$work/page" | sed 's/\\&//g; s/\\-/-/g; s/\\ / /g' | grep -oE -- '--[a-z][a-z0-9-]*' | sort -u >"$work/shown"
        [ "$command" != run ] || "$tandem" run --flags | sed -n 's/^| `\(--[a-z0-9-]*\)`.*/\1/p' >>"$work/help"
        sort -u "$work/help" | cmp - "$work/shown" || return 1
        first=$("$tandem" "$command" --help | head -n 1)
        sed 's/\\-/-/g' "$work/page" | grep -qxF ".Nd $first" || return 1
    done
}
say "manual pages have the options and the summary of --help" same_pages
check "the page of the program" 0 '^\.It Xr tandem-explain 1$' '' man
check "no such command" 2 '' "^tandem: 'explan' is not a command; did you mean explain\?$" man explan
check "two commands" 2 '' "^tandem: man: 'up': takes one command$" man run up
check "an option" 2 '' "^tandem: man: '--help': takes a command, such as 'tandem man run'$" man --help

# offered NAME EXPECTED WORD...: the candidates and the last line, one line.
offered() {
    name=$1 expected=$2
    shift 2
    got=$("$tandem" __complete "$@" 2>&1 | cut -f1 | tr '\n' ' ')
    say "$name ($got)" [ "$got" = "$expected " ]
}
offered "commands" "run recommend replay :4" r
offered "kinds" "deployment daemonset :4" explain d
offered "policies, behind those that are there" "krr,track krr,track-careful krr,track-frugal krr,track-calm :6" replay --policy krr,tr
offered "estimators" "adaptive adaptive-careful adaptive-frugal :4" recommend --estimator ad
offered "controllers" "updater :6" up --controllers u
offered "gates" "Hvpa=true Hvpa=false :6" run --feature-gates=Hv
offered "formats told in a sentence" "table json yaml junit sarif :4" validate -o ''
offered "formats told in a row" "text json yaml :4" explain --output ''
offered "one word of a value" "builtin :4" run --horizontal=
offered "a switch" "true false :4" run --leader-elect=
offered "folders" ":16" up --data ''
offered "files" ":0" validate --migrate ''
offered "files behind --" ":0" validate -- -
offered "nothing where nothing follows" ":4" page ''
offered "a value of an unknown option" ":4" up --nothing=
offered "an unknown command" ":4" nothing ''
offered "names of a cluster that is not there" ":4" explain --kubeconfig /nowhere vpa ''
offered "a word that is too long for anything" ":4" explain "$(head -c 5000 /dev/zero | tr '\0' x)"
offered "commands behind help" "recommend replay :4" help re

# What is offered is taken.
taken() {
    for value in $("$tandem" __complete recommend --estimator '' | sed '/^:/d' | cut -f1); do
        "$tandem" recommend --estimator "$value" --kubeconfig /nowhere 2>&1 | grep -q "estimator" && return 1
    done
    for value in $("$tandem" __complete replay --policy '' | sed '/^:/d' | cut -f1); do
        "$tandem" replay --policy "$value" /nowhere 2>&1 | grep -q -- "--policy" && return 1
    done
    for value in $("$tandem" __complete manifests --only '' | sed '/^:/d' | cut -f1); do
        "$tandem" manifests --image x/y:1 --only "$value" >/dev/null || return 1
    done
    for value in $("$tandem" __complete explain '' | sed '/^:/d' | cut -f1); do
        "$tandem" explain "$value" x --kubeconfig /nowhere 2>&1 | grep -q 'kind' && return 1
    done
    for command in explain recommend simulate replay validate; do
        for value in $("$tandem" __complete "$command" -o '' | sed '/^:/d' | cut -f1); do
            "$tandem" "$command" -o "$value" /nowhere /nowhere 2>&1 | grep -q -- '--output' && return 1
        done
    done
    return 0
}
say "every value that is offered is taken" taken

# The page of the scenario has the fields that the guide has.
same_fields() {
    page=$top/share/man/tandem-scenario.5
    sed -n '/^## The file/,/^### Requests/p; /^## Series/,/^```/p; /^## Metrics/,/^```/p; /^## Events/,/^```/p' "$top/docs/scenario.md" |
        grep '^| `' | cut -d'|' -f2,3,4 | grep -oE '`[^`]*`' | grep -oE '[a-zA-Z][a-zA-Z-]*' | sort -u >"$work/fields"
    [ "$(wc -l <"$work/fields")" -gt 50 ] || return 1
    for field in $(grep -vxE 'as|would|kubectl|role|leader|s|the|Gi|node-' "$work/fields"); do
        grep -qw -e "$field" "$page" || { echo "# $field is not in tandem-scenario(5)"; return 1; }
    done
}
say "tandem-scenario(5) has the fields of docs/scenario.md" same_fields
finish
