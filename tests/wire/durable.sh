#!/bin/sh
# kill -9 at random moments under write load: what was acknowledged is there after the next start.
# Usage: tests/wire/durable.sh BUILD [KILLS [SEED]]
. "$(dirname "$0")/lib.sh"
"$build/tests/wire/wire_durable" "$tandem" "$work" "${2:-200}" "${3:-1}" 2>"$work/err" >"$out"
status=$?
cat "$out"
head -40 "$work/err"
passed=$(grep -cE '^ok ' "$out")
failed=$(grep -cE '^FAIL ' "$out")
[ "$status" -eq 0 ] || [ "$failed" -gt 0 ]
verdict "the writers came to their end" $?
finish
