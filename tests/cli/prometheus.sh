# Sourced by what needs a real Prometheus with made-up days in it. Needs $top, $work, $running and $programs (of scripts/prometheus).
soon() {
    tries=$(($1 * 5))
    shift
    while [ "$tries" -gt 0 ]; do
        "$@" && return 0
        tries=$((tries - 1))
        sleep 0.2
    done
    return 1
}

# serve FOLDER AWK-FLAGS...: a Prometheus over what history.awk writes; leaves its address in $prometheus.
echo 'global: {scrape_interval: 1m}' >"$work/prometheus.yml"
# To the minute: samples are of use for five, and the test must not meet the end of that time.
now=$(($(date +%s) / 60 * 60))
port=$((20000 + $$ % 10000))
serve() {
    data=$work/$1
    shift
    awk -v now="$now" "$@" -f "$top/tests/cli/history.awk" >"$data.txt"
    "$programs/promtool" tsdb create-blocks-from openmetrics --max-block-duration=240h -q "$data.txt" "$data" >"$data.log" 2>&1 ||
        { cat "$data.log" && exit 1; }
    for _ in 1 2 3 4 5; do
        port=$((port + 1))
        "$programs/prometheus" --config.file="$work/prometheus.yml" --storage.tsdb.path="$data" --storage.tsdb.retention.time=30d \
            --web.listen-address="127.0.0.1:$port" --log.level=warn >"$data.log" 2>&1 &
        served=$!
        prometheus=http://127.0.0.1:$port
        ready() { curl --silent --max-time 2 "$prometheus/-/ready" | grep -q Ready || ! kill -0 "$served" 2>/dev/null; }
        soon 20 ready
        if kill -0 "$served" 2>/dev/null; then
            running="$running $served"
            return
        fi
    done
    cat "$data.log"
    exit 1
}
