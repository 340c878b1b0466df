#!/bin/sh
# The main job on the bundled package: discover, run on the host engine, show the table and where the files are.
# usage: demo.sh PATH_TO_MADENGINE
set -eu
madengine=$1
package=$(cd "$(dirname "$0")/quickstart" && pwd)
work=${DEMO_DIR:-$(mktemp -d "${TMPDIR:-/tmp}/madengine-demo.XXXXXX")}
mkdir -p "$work"
cd "$work"

show() {
    printf '\n$ madengine'
    for word in "$@"; do printf ' %s' "$word"; done
    printf '\n'
    MODEL_DIR="$package" "$madengine" "$@"
}

echo "package: $package"
echo "working directory: $work"
show discover
show run --tags quickstart --engine host
printf '\nperf.csv, the columns that matter most:\n'
"$(dirname "$madengine")/python" - perf.csv <<'PY'
import csv, sys

rows = list(csv.DictReader(open(sys.argv[1], newline="")))
names = ("model", "performance", "metric", "status", "test_duration", "machine_name")
for row in [dict(zip(names, names)), *rows]:
    print("  " + "  ".join(f"{row[name]:<26}" for name in names).rstrip())
PY
printf '\nEverything lies in %s\n' "$work"
