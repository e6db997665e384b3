#!/bin/sh
# A real Prometheus with eight made-up days, for doc_commands.py: prints its address and serves until it is ended. Without one to be had
# it prints the reason on standard error. Usage: serve_prometheus.sh TOP WORK
set -u
top=$1
work=$2
running=
programs=$("$top/scripts/prometheus") || exit 1
trap 'kill $running 2>/dev/null; exit 0' TERM INT
. "$(dirname "$0")/prometheus.sh"
serve days
echo "$prometheus"
wait
