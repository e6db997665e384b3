#!/bin/sh
# Dashboard, alerts and names of metrics against a real Prometheus (monitoring.py). Exit 77, which skips it, where there is none to be had;
# in CI that is a failure.
set -u
unset KUBECONFIG
programs=$("$2/scripts/prometheus") || { [ -n "${CI:-}" ] && exit 1; exit 77; }
exec python3 "$2/tests/cli/monitoring.py" "$1" "$2" "$programs"
