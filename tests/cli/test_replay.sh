#!/bin/sh
# `tandem replay` from outside: the table, the same as JSON, and input that cannot be read: one line, exit 2, no other output.
. "$(dirname "$0")/lib.sh"
traces=$top/tests/data/traces

header='time_s,cpu_avg_cores,memory_max_bytes'
printf '%s\n0,1,1000\n300,one,1000\n' "$header" >"$work/word.csv"
printf '%s\n0,1,1000\n300,-1,1000\n' "$header" >"$work/negative.csv"
printf '%s\n0,1\n' "$header" >"$work/short.csv"
printf '%s\n300,1,1\n0,1,1\n' "$header" >"$work/order.csv"
printf 'time_s,cpu\n0,1\n' >"$work/column.csv"
printf '%s\n0,1,1000\n300,1,1000\n' "$header" >"$work/one-hour.csv"
printf '{"status":"success","data":{"resultType":"matrix","result":[{' >"$work/cut.json"
printf '{"status":"success","data":{"resultType":"vector","result":[]}}' >"$work/vector.json"
: >"$work/empty.csv"
mkdir "$work/none"

check "the table has its columns" 0 'CPU slack +overrun +excess +throttled +MEM slack +overrun +OOMs/day +with OOM +changes/day +cost' '' replay "$traces/web.csv"
check "as it was is the measure of cost" 0 '^ as it was .* 0\.000 +0 +0\.00 +100%$' '' replay "$traces/web.csv"
check "all usual policies are there" 0 '^ oracle, a day ahead ' '' replay "$traces/web.csv"
check "censored windows are told" 0 '^0 of 48 windows touch their limit \(censored\): demand may have been higher\.$' '' replay "$traces/web.csv"
check "policies can be chosen" 0 '^ adaptive, careful ' '' replay --policy adaptive-careful,krr "$traces/web.csv"
check "the four risks of track" 0 '^ track, calm ' '' replay --policy track,track-careful,track-frugal,track-calm "$traces/web.csv"
check "room above the request" 0 '^ track  ' '' replay --policy track --memory-limit 1.2 "$traces/web.csv"
check "a limit below the request" 2 '' "^tandem: replay: --memory-limit: '0\.9': not a number from 1 to 100$" replay --memory-limit 0.9 "$traces/web.csv"
check "a limit that is no number" 2 '' "^tandem: replay: --memory-limit: 'twice': " replay --memory-limit twice "$traces/web.csv"
check "a container each" 0 '^step$' '' replay --per-container "$traces/web.csv" "$traces/step.csv"
check "options may follow files" 0 '"policy": "krr"' '' replay "$traces/web.csv" --policy krr --output json
check "figures as JSON" 0 '"cpuSlack": 0\.[0-9]+' '' replay -o json "$traces/web.csv"
check "containers as JSON" 0 '"container": "web"' '' replay -o json --per-container "$traces/web.csv"
check "a folder, and Prometheus dumps that belong together" 0 '^3 containers, ' '' replay "$traces"
check "a dump without its other half" 2 '' '^tandem: the traces have no window with both cpu and memory$' replay "$traces/usage.json"
check "a word for a number" 2 '' "^tandem: .*word.csv:3: cpu_avg_cores: 'one': not a number" replay "$work/word.csv"
check "a negative use" 2 '' "^tandem: .*negative.csv:3: cpu_avg_cores: '-1': " replay "$work/negative.csv"
check "a short row" 2 '' '^tandem: .*short.csv:2: 2 columns, but the header has 3$' replay "$work/short.csv"
check "time going back" 2 '' "^tandem: .*order.csv:3: time_s: '0': not later than '300'$" replay "$work/order.csv"
check "an unknown column" 2 '' "^tandem: .*column.csv:1: column 2: 'cpu': unknown column" replay "$work/column.csv"
check "one bad file among good ones prints nothing else" 2 '' '^tandem: .*word.csv:3: ' replay "$traces/web.csv" "$work/word.csv"
check "an empty file" 2 '' '^tandem: .*empty.csv:1: the file is empty$' replay "$work/empty.csv"
check "cut JSON" 2 '' '^tandem: .*cut.json:' replay "$work/cut.json"
check "not a range query" 2 '' "^tandem: .*vector.json: resultType: 'vector': not 'matrix'$" replay "$work/vector.json"
check "shorter than a day" 2 '' '^tandem: replay: every trace ends within its first day' replay "$work/one-hour.csv"
check "a missing file" 2 '' '^tandem: .*absent.csv: No such file or directory$' replay "$work/absent.csv"
check "a folder without traces" 2 '' '^tandem: .*none: no file here ends in ' replay "$work/none"
check "an unknown policy" 2 '' "^tandem: replay: --policy: 'magic': use as-was, " replay --policy krr,magic "$traces/web.csv"
check "an unknown output" 2 '' "^tandem: replay: --output: 'xml': use table, json or yaml$" replay --output xml "$traces/web.csv"
check "an unknown option" 2 '' '^tandem: replay: --nope: ' replay --nope "$traces/web.csv"
check "no traces" 2 '' '^tandem: replay: no traces' replay
check "help of the command" 0 '^usage: tandem replay ' '' replay --help
check "help of the program" 0 '^  replay ' '' --help
check "the same bytes every time" 0 . '' replay --output json --per-container "$traces"
cp "$work/out" "$work/first"
"$tandem" replay --output json --per-container "$traces" | cmp -s - "$work/first" || { echo "not ok - the same bytes every time"; failed=$((failed + 1)); }
finish
