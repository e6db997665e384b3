#!/bin/sh
# docs/tour.md does not rot: each command that it shows ("$ ..." in a fenced block) is run against a running shop, a little after the
# role has moved. It must end as the page says, and print the line that the page begins with, numbers and names aside. Commands of
# kubectl are skipped by name where there is none.
. "$(dirname "$0")/lib.sh"
page=$top/docs/tour.md
PATH=$(dirname "$tandem"):$PATH:${REALPLANE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem-realplane}/bin
export PATH KUBECONFIG="$work/shop.kubeconfig"
cd "$top" || exit 1

"$tandem" up --quiet examples/shop --speed 600 --listen 127.0.0.1:0 --kubeconfig "$KUBECONFIG" >"$work/up.out" 2>"$work/up.err" &
up=$!
trap 'kill "$up" 2>/dev/null; wait "$up" 2>/dev/null; rm -rf "$work"' EXIT
tries=0
until grep -q '^day 1 01:4[6-9].* db-1  ResizeCompleted' "$work/up.out" || [ "$tries" -ge 400 ] || ! kill -0 "$up" 2>/dev/null; do
    tries=$((tries + 1))
    sleep 0.1
done

# A line for each command: the command, a tab, the first line of what the page shows of its output.
awk '/^```/ { fenced = !fenced; command = "" }
    fenced && /^\$ / { if (command != "") print command "\t"; command = substr($0, 3); next }
    fenced && command != "" { print command "\t" $0; command = "" }' "$page" >"$work/commands"

# Only words: what is a number, a quantity, a time or a generated name differs from run to run.
words() {
    sed -e 's/…//g' -e 's/[^ ]*[0-9][^ ]*/#/g' -e 's/  */ /g' -e 's/^ //' -e 's/ $//'
}

tab=$(printf '\t')
while IFS="$tab" read -r command shown; do
    count=$((count + 1))
    if [ "${command%% *}" = kubectl ] && ! command -v kubectl >/dev/null; then
        echo "ok $count - $command # SKIP no kubectl"
        continue
    fi
    sh -c "$command" >"$work/out" 2>&1 </dev/null
    status=$?
    case $shown in
    Error* | "The "*) wanted=1 ;;
    *) wanted=0 ;;
    esac
    begin=$(printf '%s\n' "$shown" | words)
    case $command in
    "kubectl get events "*) begin= ;; # they are gone after an hour, which is six seconds here
    esac
    if [ "$status" -ne "$wanted" ]; then
        echo "not ok $count - $command: status $status: $(head -c 300 "$work/out")"
    elif ! words <"$work/out" | grep -qF -- "$begin"; then
        echo "not ok $count - $command: nothing begins with '$begin': $(head -c 300 "$work/out")"
    else
        echo "ok $count - $command"
        continue
    fi
    failed=$((failed + 1))
done <"$work/commands"

# The page has not lost its commands.
count=$((count + 1))
if [ "$count" -gt 15 ]; then
    echo "ok $count - all commands"
else
    echo "not ok $count - only $((count - 1)) commands were found in $page"
    failed=$((failed + 1))
fi
finish
