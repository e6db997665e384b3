#!/bin/sh
# `--report` of simulate, replay and recommend, and `--fail-if`, from outside: the file, its bytes, exit statuses, what is refused.
. "$(dirname "$0")/lib.sh"
corner=$top/tests/data/scenarios/corner/corner.yaml
traces=$top/tests/data/traces

# say NAME CONDITION...: a check of a file.
say() {
    name=$1
    shift
    count=$((count + 1))
    if "$@"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        failed=$((failed + 1))
    fi
}
lines() { [ "$(wc -l <"$1")" -eq "$2" ]; }

# ---- Reports of simulate ----

"$tandem" simulate -q "$corner" >"$work/plain" 2>&1
check "a report is written" 0 '^ total ' '' simulate --report "$work/one.html" "$corner"
say "and what is printed is the same" cmp -s "$work/out" "$work/plain"
say "it is HTML" grep -q '^<!DOCTYPE html>' "$work/one.html"
say "with a security policy" grep -q "default-src 'none'" "$work/one.html"
say "with the command" grep -q '"command":"tandem simulate --report ' "$work/one.html"
say "with the scenario" grep -q 'kind: Scenario' "$work/one.html"
say "with decisions" grep -q 'SuccessfulRescale' "$work/one.html"
cp "$work/one.html" "$work/first.html"
check "once more" 0 '^ total ' '' simulate --report "$work/one.html" "$corner"
say "the same bytes" cmp -s "$work/one.html" "$work/first.html"
check "several side by side" 0 '^.*corner.yaml:$' '' simulate --for 30m --report "$work/two.html" "$corner" "$top/tests/data/scenarios/closed/scenario.yaml"
say "both are in it" grep -q '"runs":\[{"name":"[^"]*corner.yaml".*{"name":"[^"]*closed/scenario.yaml"' "$work/two.html"
check "beside data" 0 '"totals"' '' simulate --for 5m -o json --report "$work/json.html" "$corner"
check "a folder that is not there" 2 '' '^tandem: simulate: --report: .*/absent/x.html: cannot write into .*/absent/: No such file or directory$' simulate --report "$work/absent/x.html" "$corner"
check "a folder in place of a file" 2 '' '^tandem: simulate: --report: .*: is no file$' simulate --report "$work" "$corner"
check "a device in place of a file" 2 '' '^tandem: simulate: --report: /dev/null: is no file$' simulate --report /dev/null "$corner"
say "the device is still one" test -c /dev/null

# ---- Names that try to be more than text ----

hostile="$work/<img src=x onerror=alert(1)>"
mkdir "$hostile"
cp "$top"/tests/data/scenarios/corner/*.yaml "$hostile"
{ echo '# </script><script>alert(1)</script>'; cat "$corner"; } >"$hostile/corner.yaml"
check "a hostile path and text" 0 '^ total ' '' simulate --for 5m --report "$work/hostile.html" "$hostile/corner.yaml"
say "are text" test "$(grep -cE '<img|alert\(1\)<' "$work/hostile.html")" -eq 0
say "and are there" grep -q 'u003cscript' "$work/hostile.html"

# ---- Reports of replay ----

"$tandem" replay -q "$traces" >"$work/plain" 2>&1
check "a report of a replay" 0 '^ oracle, a day ahead ' '' replay --report "$work/replay.html" "$traces"
say "and what is printed is the same" cmp -s "$work/out" "$work/plain"
say "with all policies" grep -q '"name":"upstream VPA".*"name":"oracle, a day ahead"' "$work/replay.html"
say "with reasons" grep -q 'the highest use of the day to come' "$work/replay.html"
cp "$work/replay.html" "$work/first.html"
check "once more" 0 . '' replay --report "$work/replay.html" "$traces"
say "the same bytes" cmp -s "$work/replay.html" "$work/first.html"
check "beside data" 0 '"policies"' '' replay -o json --report "$work/replay.html" "$traces"
check "a folder that is not there" 2 '' '^tandem: replay: --report: .*: cannot write into .*/absent/: No such file or directory$' replay --report "$work/absent/x.html" "$traces"

# ---- Rules ----

check "a rule that does not hold" 0 '^ total ' '' simulate --fail-if 'leaky.ooms > 100' "$corner"
check "a rule that holds" 1 '^ total ' "^tandem: simulate: .*corner.yaml: 'ooms > 0': it is [1-9]" simulate --fail-if 'ooms > 0' "$corner"
check "a rule of a workload" 1 . "'leaky.ooms >= 3': it is 3$" simulate --fail-if 'leaky.ooms >= 3' "$corner"
check "a rule beside data" 1 '"totals"' "'ooms > 0': it is " simulate -o json --fail-if 'ooms > 0' "$corner"
"$tandem" simulate -q --for 30m --fail-if 'pending == 0' --fail-if 'ooms > 100000' --fail-if 'web.cpu.slack <= 100%' "$corner" >"$work/out" 2>"$work/err"
say "two of three rules hold: exit status 1" test $? -eq 1
say "one line for each" lines "$work/err" 2
check "a report of a run that broke a rule" 1 . "it is" simulate --for 30m --fail-if 'pending == 0' --report "$work/broken.html" "$corner"
say "is written and says so" grep -q '"rules":\[{"text":"pending == 0","broken":true' "$work/broken.html"
check "a misspelt metric" 2 '' "^tandem: simulate: --fail-if: 'oom': no such metric; did you mean ooms\?$" simulate --fail-if 'oom > 0' "$corner"
check "a misspelt workload" 2 '' "^tandem: simulate: --fail-if: 'wbe.ooms > 0': no workload wbe; did you mean web\?$" simulate --fail-if 'wbe.ooms > 0' "$corner"
check "no comparison" 2 '' "^tandem: simulate: --fail-if: 'ooms': needs a comparison" simulate --fail-if ooms "$corner"
check "a bound that is none" 2 '' "compared with a time such as 200ms$" simulate --fail-if 'web.latency > 200' "$corner"
check "a workload of one scenario only" 2 '' "no workload leaky" simulate --fail-if 'leaky.ooms > 0' "$corner" "$top/tests/data/scenarios/closed/scenario.yaml"
check "rules of the help" 0 'fail-if RULE' '' simulate --help

# Each metric that the guide names is one.
sed -n 's/^| `\([a-z0-9.]*\)` | \(both\|the run\|a workload\) |.*/\1 \2/p' "$top/docs/report.md" >"$work/metrics"
say "the guide has metrics" test "$(wc -l <"$work/metrics")" -gt 20
while read -r metric of; do
    case $metric in
    latency* | waiting | dropped) subject=web.$metric bound=9999h ;;
    *) subject=$metric bound=999999999 ;;
    esac
    [ "$of" = "a workload" ] && subject=web.$metric
    case $metric in waiting | dropped) bound=999999999 ;; *.slack | *.throttled | *.starved) bound=100% ;; memory*) bound=9999Ti ;; esac
    "$tandem" simulate -q --for 1m --fail-if "$subject > $bound" "$corner" >"$work/out" 2>"$work/err" || echo "$subject: $(cat "$work/err")" >>"$work/wrong"
done <"$work/metrics"
say "and all of them are known$(cat "$work/wrong" 2>/dev/null)" test ! -e "$work/wrong"
finish
