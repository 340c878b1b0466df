#!/bin/bash
@DIRECTIVES@

# The batch script of one run. It runs on the first node of the job and starts node.sh, which lies beside it, once on
# each node. What it prints goes to logs/job.out in the run directory.
# shellcheck disable=SC1003,SC2016 # what stands in quotes below is meant as it stands
set -euo pipefail

run_dir=@RUN_DIR@
run_id=@RUN_ID@
nodes=@NODES@
gpus_per_node=@GPUS_PER_NODE@
processes=@PROCESSES@
master_port=@MASTER_PORT@
kill_on_bad_exit=@KILL_ON_BAD_EXIT@
drives_allocation=@DRIVES_ALLOCATION@
has_image=@HAS_IMAGE@
modules=(@MODULES@)

say() { printf 'job: %s\n' "$*"; }

# A failure before any node began is the first node's to report.
fail() {
    say "$*" >&2
    mkdir -p "$run_dir/node_0"
    printf '%s\n' "$*" >"$run_dir/node_0/stderr"
    printf 'run=%s\njob=%s\nattempt=%s\nnode=0\nhost=%s\nexit_code=1\ntimestamp=%s\n' "$run_id" "${SLURM_JOB_ID:-}" \
        "$MADENGINE_ATTEMPT" "${SLURMD_NODENAME:-$(hostname)}" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
        >"$run_dir/node_0/.node.status.job"
    mv -f "$run_dir/node_0/.node.status.job" "$run_dir/node_0/node.status"
    exit 1
}

# Whoever submitted the job may have been killed before it could write down the answer.
leave_job_id() {
    printf '%s\n' "${SLURM_JOB_ID:-}" >"$run_dir/.job_id" && mv -f "$run_dir/.job_id" "$run_dir/job_id"
}

# What an attempt left that Slurm requeued is no evidence of this one.
set_earlier_attempt_aside() {
    [ "$MADENGINE_ATTEMPT" -gt 0 ] || return 0
    local aside="$run_dir/attempt_$((MADENGINE_ATTEMPT - 1))" folder
    mkdir -p "$aside"
    for folder in "$run_dir"/node_*; do
        [ -d "$folder" ] || continue
        mv "$folder" "$aside/" || say "$folder of an earlier attempt could not be set aside"
    done
}

load_modules() {
    local init name
    set +eu # the initialisation of modules is not written for strict shells
    if ! type module >/dev/null 2>&1; then
        for init in /etc/profile.d/lmod.sh /etc/profile.d/modules.sh /usr/share/modules/init/bash; do
            # shellcheck source=/dev/null
            if [ -r "$init" ]; then . "$init" && break; fi
        done
    fi
    type module >/dev/null 2>&1 || fail "there is no 'module' command on $(hostname), so these were not loaded: $*"
    for name in "$@"; do
        module load "$name" || fail "the module $name could not be loaded on $(hostname)"
    done
    set -eu
}

# The names of the nodes where names resolve, else the addresses that Slurm itself reaches them by: one question for all.
find_hosts() {
    local names=() name addresses=() address
    local -A known=()
    mapfile -t names < <(scontrol show hostnames "${SLURM_JOB_NODELIST:-}" 2>/dev/null)
    [ ${#names[@]} -gt 0 ] || names=("$(hostname)")
    [ ${#names[@]} -ge "$nodes" ] || fail "the run needs $nodes nodes, and the allocation has ${#names[@]}: ${names[*]}"
    names=("${names[@]:0:$nodes}")
    if ! getent hosts "${names[0]}" >/dev/null 2>&1; then
        while read -r name address; do known[$name]=$address; done < <(
            scontrol -o show node "${SLURM_JOB_NODELIST:-}" 2>/dev/null |
                sed -n 's/^NodeName=\([^ ]*\) .*NodeAddr=\([^ ]*\).*/\1 \2/p'
        )
    fi
    for name in "${names[@]}"; do addresses+=("${known[$name]:-$name}"); done
    MASTER_ADDR=${addresses[0]}
    MADENGINE_HOSTS=$(IFS=,; printf '%s' "${addresses[*]}")
    export MASTER_ADDR MADENGINE_HOSTS
}

export_environment() {
    export MASTER_PORT=$master_port NNODES=$nodes NPROC_PER_NODE=$processes GPUS_PER_NODE=$processes
    export WORLD_SIZE=$((nodes * processes))
    export MAD_DEPLOYMENT_TYPE=slurm MAD_SLURM_JOB_ID=${SLURM_JOB_ID:-} MAD_TOTAL_NODES=$nodes
    export MADENGINE_JOB_GPUS=$gpus_per_node
}

# TERM is how Slurm announces the time limit (--signal) and a cancellation. Each node's part ends its script then and
# still writes down what was measured. A cancelled job is completing already; one that still runs and has little time
# left is near its limit, and will have ended by itself before Slurm says TIMEOUT.
work=""
told=0
tell_nodes() {
    told=1
    local state left limit
    read -r state left limit < <(timeout 10 squeue -h -j "$SLURM_JOB_ID" -o '%T %L %l' 2>/dev/null) || state=""
    case $state/$left in
        RUNNING/[0-2]:?? | RUNNING/INVALID) printf '%s\n' "$limit" >"$run_dir/time_limit" ;;
    esac
    [ -n "$work" ] || return 0
    say "told to end: telling the nodes"
    if [ "$drives_allocation" = 1 ]; then
        kill -TERM "$work" 2>/dev/null || true
    else
        scancel --signal=TERM "$SLURM_JOB_ID" >/dev/null 2>&1 || kill -TERM "$work" 2>/dev/null || true
    fi
}

# Waits for the work to its end; a signal interrupts one wait, not the work.
wait_for_work() {
    code=0
    wait "$work" || code=$?
    while kill -0 "$work" 2>/dev/null; do
        code=0
        wait "$work" || code=$?
    done
    if [ "$told" = 1 ]; then # it may have ended while the signal was answered
        local last=0
        wait "$work" || last=$?
        case $last in 127 | -*) ;; *) code=$last ;; esac # 127, -1: bash knows no more of it
    fi
}

on_each_node() {
    # No rank is ended because another one ended earlier, whatever the site's WaitTime or a SLURM_WAIT says.
    srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --wait=0 --kill-on-bad-exit="$kill_on_bad_exit" \
        bash "$run_dir/node.sh" "$@"
}

export MADENGINE_ATTEMPT=${SLURM_RESTART_COUNT:-0}
rm -f "$run_dir/time_limit"
leave_job_id
set_earlier_attempt_aside
[ ${#modules[@]} -eq 0 ] || load_modules "${modules[@]}"
find_hosts
export_environment
trap tell_nodes TERM
say "$run_id: job ${SLURM_JOB_ID:-} on ${SLURM_JOB_NODELIST:-$(hostname)}, $nodes nodes, master $MASTER_ADDR:$master_port"

if [ "$drives_allocation" = 1 ]; then
    if [ "$has_image" = 1 ]; then
        on_each_node --images || fail "the image is missing on a node: see image.log in the node folders"
    fi
    bash "$run_dir/node.sh" &
else
    on_each_node &
fi
work=$!
[ "$told" = 0 ] || tell_nodes
wait_for_work
say "ended with exit code $code"
exit "$code"
