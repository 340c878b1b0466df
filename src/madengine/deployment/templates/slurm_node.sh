#!/bin/bash
# One node's part of a run, started by job.sh once on each node. It leaves node.status in the folder of its rank,
# whatever happens to the one command that it gives.
# shellcheck disable=SC1003,SC2016 # what stands in quotes below is meant as it stands
set -u

run_dir=@RUN_DIR@
run_id=@RUN_ID@
madengine=@MADENGINE@

rank=${SLURM_PROCID:-0}
node_dir="$run_dir/node_$rank"
host=${SLURMD_NODENAME:-$(hostname)}

report() {
    local new="$node_dir/.node.status.$$"
    if ! printf 'run=%s\njob=%s\nattempt=%s\nnode=%s\nhost=%s\nexit_code=%s\ntimestamp=%s\n' "$run_id" \
        "${SLURM_JOB_ID:-}" "${MADENGINE_ATTEMPT:-0}" "$rank" "$host" "$1" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$new" ||
        ! mv -f "$new" "$node_dir/node.status"; then
        printf 'node %s (%s): the status %s could not be written to %s\n' "$rank" "$host" "$1" "$node_dir" >&2
    fi
}

# The command that submitted the run, where the node sees it, else the node's own.
find_madengine() {
    if [ ! -x "$madengine" ]; then
        madengine=$(command -v madengine) || madengine=""
    fi
    [ -n "$madengine" ]
}

mkdir -p "$node_dir" 2>/dev/null
if [ "${1:-}" = --images ]; then
    if ! find_madengine; then
        printf 'madengine is not on node %s (%s)\n' "$rank" "$host" >&2
        exit 127
    fi
    exec "$madengine" node "$run_dir" --rank "$rank" --images-only
fi
if : >"$node_dir/stderr" 2>/dev/null; then
    exec >"$node_dir/stdout" 2>"$node_dir/stderr"
fi

child=""
told=0
# shellcheck disable=SC2317 # called by the trap
on_term() {
    told=1
    report 143 # Slurm may leave no time for a second word
    if [ -n "$child" ]; then kill -TERM "$child" 2>/dev/null; fi
}
trap on_term TERM

is_first=false
[ "$rank" != 0 ] || is_first=true
export NODE_RANK=$rank RANK=$rank MAD_NODE_RANK=$rank MAD_IS_MASTER_NODE=$is_first MAD_COLLECT_METRICS=$is_first

if ! find_madengine; then
    printf 'madengine is not on this node: neither %s nor a madengine on PATH\n' @MADENGINE@ >&2
    report 127
    exit 127
fi
"$madengine" node "$run_dir" --rank "$rank" &
child=$!
[ "$told" = 0 ] || kill -TERM "$child" 2>/dev/null
code=0
wait "$child" || code=$?
while kill -0 "$child" 2>/dev/null; do # a signal interrupts the waiting, not the command
    code=0
    wait "$child" || code=$?
done
if [ "$told" = 1 ]; then # it may have ended while the signal was answered
    last=0
    wait "$child" || last=$?
    case $last in 127 | -*) ;; *) code=$last ;; esac # 127, -1: bash knows no more of it
fi
report "$code"
# 5 is a node on which nothing was measured, which is well: on several nodes one rank prints for all. The marker says so;
# to Slurm it is no bad exit, on which it might end the rank that holds the numbers.
[ "$code" != 5 ] || code=0
exit "$code"
