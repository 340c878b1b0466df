#!/usr/bin/env bash
# usage: rocprof_wrapper.sh [ROCPROF OPTION]... -- COMMAND...
# Runs COMMAND under rocprofv3. Without it the command runs all the same, and the log says that nothing was profiled.
set -u

options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
done
[ $# -gt 1 ] || { echo "rocprof_wrapper: no command after --" >&2; exit 4; }
shift

if command -v rocprofv3 >/dev/null; then
    exec rocprofv3 "${options[@]}" -- "$@"
fi
echo "rocprof_wrapper: rocprofv3 is not installed here: running without a profile" >&2
exec "$@"
