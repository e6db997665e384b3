# Faults at random between our client and the local cluster, both in one process: a minute of them, another seed each time.
build=$1
exec "$build/tests/wire/wire_faults" --soak 60 "$(date +%s)"
