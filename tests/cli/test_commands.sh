#!/bin/sh
# Every command of README.md and docs/ is run, and what a page shows of its output is compared: doc_commands.py.
exec python3 -B "$(dirname "$0")/doc_commands.py" "$1" "$2"
