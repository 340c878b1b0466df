#!/bin/bash
# A real Slurm for the tests: one machine that is many nodes. Needs root on a Debian-like machine, and no systemd.
#
#   slurm_cluster.sh start [DIR]   install what is missing, start munge, MariaDB, slurmdbd, slurmctld and the nodes; prints
#                                  the exports that lead to it (use: eval "$(tests/services/slurm_cluster.sh start)")
#   slurm_cluster.sh env   [DIR]   only the exports, when the controller answers; fails otherwise
#   slurm_cluster.sh stop  [DIR]   stop everything and remove DIR
#   slurm_cluster.sh during COMMAND...   start the cluster where that is possible and it does not run, give the command,
#                                  stop what was started
#
# Faults, each of which returns when its effect can be seen:
#   node-down NODE [DIR]   node-up NODE [DIR]      what an administrator does with scontrol
#   kill-node NODE [DIR]   start-node NODE [DIR]   the node's daemon dies; its jobs go on
#   stop-controller [DIR]  start-controller [DIR]  slurmctld
#   stop-database [DIR]    start-database [DIR]    slurmdbd
#
# DIR is a folder outside the repository that every user may enter: /tmp/madengine-slurm unless it is given. Clusters
# that run side by side differ in DIR and PORTBASE (17000). NODES is their number of nodes (16), each with 16 CPUs and 8
# GPUs (character devices that stand in for them). Partitions: debug (all nodes, the default), limited (one node, one
# minute), low and high (the last two nodes; high preempts low), closed (an account that nobody has). Names of nodes do
# not resolve, on purpose.
set -euo pipefail

NODES=${NODES:-16}
PORTBASE=${PORTBASE:-17000}
# The cluster, and what its tests check rendered scripts and look for processes with.
PACKAGES=(slurm-wlm slurmdbd munge mariadb-server shellcheck procps)

say() { echo "slurm_cluster: $*" >&2; }
die() { say "$*"; exit 1; }

wait_until() { # SECONDS COMMAND...
    local try tries=$(($1 * 20))
    shift
    for ((try = 0; try < tries; try++)); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.05
    done
    return 1
}

install_packages() {
    command -v slurmctld >/dev/null && command -v slurmdbd >/dev/null && command -v munged >/dev/null &&
        command -v mariadbd >/dev/null && command -v shellcheck >/dev/null && command -v pgrep >/dev/null && return
    [ "$(id -u)" = 0 ] || die "installing Slurm needs root"
    command -v apt-get >/dev/null || die "this is no Debian-like machine: install ${PACKAGES[*]}"
    say "installing ${PACKAGES[*]}"
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${PACKAGES[@]}" >&2
}

write_configuration() {
    local host last
    host=$(hostname -s)
    last=$((NODES > 2 ? NODES - 1 : 1))
    cat >"$DIR/slurm.conf" <<CONF
ClusterName=test$PORTBASE
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$DIR/munge.sock
CredType=cred/munge
SlurmctldPort=$PORTBASE
StateSaveLocation=$DIR/state
SlurmctldPidFile=$DIR/pid/slurmctld.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdPidFile=$DIR/pid/slurmd-%n.pid
SlurmdLogFile=$DIR/log/slurmd-%n.log
SlurmdSpoolDir=$DIR/spool/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerNode=500
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
ReturnToService=1
SlurmdTimeout=10
SlurmctldTimeout=10
InactiveLimit=0
KillWait=3
MinJobAge=600
PropagateResourceLimits=NONE
SlurmdParameters=config_overrides
GresTypes=gpu
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((PORTBASE + 290))
AccountingStoragePass=$DIR/munge.sock
AccountingStorageEnforce=associations
NodeName=node[1-$NODES] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((PORTBASE + 1))-$((PORTBASE + NODES))] CPUs=16 RealMemory=8000 Gres=gpu:8 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=limited Nodes=ALL MaxNodes=1 MaxTime=1 PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=low Nodes=node[$last-$NODES] PriorityTier=1 PreemptMode=CANCEL State=UP
PartitionName=high Nodes=node[$last-$NODES] PriorityTier=20 PreemptMode=OFF State=UP
PartitionName=closed Nodes=ALL AllowAccounts=nobody State=UP
CONF
    echo "NodeName=node[1-$NODES] Name=gpu File=$DIR/dev/gpu[0-7] Flags=nvidia_gpu_env,amd_gpu_env" >"$DIR/gres.conf"
    (umask 077 && cat >"$DIR/slurmdbd.conf") <<CONF
AuthType=auth/munge
AuthInfo=socket=$DIR/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((PORTBASE + 290))
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((PORTBASE + 280))
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
LogFile=$DIR/log/slurmdbd.log
PidFile=$DIR/pid/slurmdbd.pid
CONF
}

make_devices() {
    local number
    for number in 0 1 2 3 4 5 6 7; do
        [ -c "$DIR/dev/gpu$number" ] || mknod "$DIR/dev/gpu$number" c 1 3
    done
}

start_munge() {
    [ -f "$DIR/munge.key" ] || (umask 077 && dd if=/dev/urandom of="$DIR/munge.key" bs=1024 count=1 status=none)
    chmod 400 "$DIR/munge.key"
    munged --force --key-file="$DIR/munge.key" --socket="$DIR/munge.sock" --pid-file="$DIR/pid/munged.pid" \
        --log-file="$DIR/log/munged.log" --seed-file="$DIR/munge.seed" 2>>"$DIR/log/munged.out" 9>&-
}

sql() { mariadb --no-defaults -uroot -S "$DIR/db.sock" -e "$1"; }

start_mariadb() {
    [ -d "$DIR/db/mysql" ] || mariadb-install-db --no-defaults --user=root --datadir="$DIR/db" \
        --auth-root-authentication-method=socket --skip-test-db >"$DIR/log/mariadb-install.log" 2>&1
    setsid mariadbd --no-defaults --user=root --datadir="$DIR/db" --socket="$DIR/db.sock" \
        --pid-file="$DIR/pid/mariadbd.pid" --bind-address=127.0.0.1 --port=$((PORTBASE + 280)) \
        --innodb-buffer-pool-size=32M --performance-schema=OFF --innodb-flush-log-at-trx-commit=0 \
        >"$DIR/log/mariadbd.log" 2>&1 </dev/null 9>&- &
    wait_until 30 sql 'select 1' || die "MariaDB does not answer; its log is $DIR/log/mariadbd.log"
    sql "create database if not exists slurm_acct_db;
        create user if not exists 'slurm'@'127.0.0.1' identified by 'slurm';
        create user if not exists 'slurm'@'localhost' identified by 'slurm';
        grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1'; grant all on slurm_acct_db.* to 'slurm'@'localhost'"
}

accounting_answers() { sacctmgr -n show cluster; }

start_database() {
    slurmdbd 9>&-
    wait_until 30 accounting_answers || die "slurmdbd does not answer; its log is $DIR/log/slurmdbd.log"
}

add_association() { # jobs without an account are root's own; an account that is not there is refused
    sacctmgr -i -n add cluster "test$PORTBASE" >/dev/null 2>&1 || true
    sacctmgr -i -n add account bench >/dev/null 2>&1 || true
    sacctmgr -i -n add user root account=bench >/dev/null 2>&1 || true
}

controller_answers() { scontrol ping | grep -q UP; }

start_controller() {
    slurmctld 9>&-
    wait_until 30 controller_answers || die "slurmctld does not answer; its log is $DIR/log/slurmctld.log"
}

start_node() {
    mkdir -p "$DIR/spool/$1"
    slurmd -N "$1" 9>&-
}

node_is() { # NODE PATTERN
    scontrol -o show node "$1" | grep -Eq "State=$2"
}

no_node_unknown() { ! sinfo -h -o %T | grep -q unk; }

all_idle() { [ "$(sinfo -h -p debug -t idle -o %D | head -n 1)" = "$NODES" ]; }

answers() { [ -f "$DIR/slurm.conf" ] && controller_answers >/dev/null 2>&1; }

exports() { printf 'export SLURM_CONF=%q\n' "$DIR/slurm.conf"; }

is_daemon() { # PID: a pid file may outlive its daemon, and its number may be somebody else's by now
    grep -Eqx 'slurmd|slurmctld|slurmdbd|mariadbd|munged' "/proc/$1/comm" 2>/dev/null
}

end_process() { # PIDFILE
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 0
    is_daemon "$pid" || return 0
    kill "$pid" 2>/dev/null || return 0
    wait_until 10 eval "! kill -0 $pid 2>/dev/null || grep -q '^State:.Z' /proc/$pid/status" || kill -KILL "$pid" || true
}

start() {
    [ "$(id -u)" = 0 ] || die "starting a cluster needs root"
    mkdir -p "$DIR"/{log,state,spool,dev,pid,db}
    exec 9>"$DIR/start.lock"
    flock 9
    if answers; then
        exports
        return
    fi
    # Of a cluster that was killed, jobs that nobody waits for would come back, and accounting would know job ids that
    # are given once more. What the nodes remember stays: by it they end the steps that were left behind.
    end_everything
    install_packages
    rm -rf "$DIR"/pid/* "$DIR"/*.sock "$DIR"/state/* "$DIR/db"
    mkdir -p "$DIR/db"
    write_configuration
    make_devices
    start_munge
    start_mariadb
    start_database
    add_association
    start_controller
    local number
    for ((number = 1; number <= NODES; number++)); do start_node "node$number"; done
    wait_until 60 all_idle || die "not all nodes came up; the logs are in $DIR/log"
    say "$(sinfo --version), $NODES nodes"
    exports
}

end_everything() {
    local file
    for file in "$DIR"/pid/slurmd-*.pid "$DIR/pid/slurmctld.pid" "$DIR/pid/slurmdbd.pid" "$DIR/pid/mariadbd.pid" \
        "$DIR/pid/munged.pid"; do
        end_process "$file"
    done
}

stop() {
    [ -d "$DIR/pid" ] || { say "no cluster was started from $DIR"; return 0; }
    if controller_answers >/dev/null 2>&1; then scancel --user=root >/dev/null 2>&1 || true; fi
    end_everything
    rm -rf "$DIR"
    say "stopped"
}

during() {
    local code=0
    if answers || ! { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || [ "${CI:-}" = true ]; }; then
        exec "$@"
    fi
    if ! "$0" start >/dev/null; then
        [ "${CI:-}" != true ] || exit 1
        exec "$@" # whose tests say what they skip
    fi
    trap '"$0" stop' EXIT
    trap : INT TERM # the command hears it, too; what was started is stopped all the same
    "$@" || code=$?
    exit "$code"
}

task=${1:-}
case $task in
    node-down | node-up | kill-node | start-node) node=${2:?which node}; place=${3:-} ;;
    during) node=""; place="" ;;
    *) node=""; place=${2:-} ;;
esac
DIR=$(realpath -m "${place:-${TMPDIR:-/tmp}/madengine-slurm}")
export SLURM_CONF="$DIR/slurm.conf"
PATH=$PATH:/usr/sbin
case $task in
    start) start ;;
    env) answers && exports ;;
    stop) stop ;;
    during) shift; during "$@" ;;
    node-down)
        scontrol update NodeName="$node" State=DOWN Reason=test
        wait_until 20 node_is "$node" '[A-Z+]*DOWN'
        ;;
    node-up)
        scontrol update NodeName="$node" State=RESUME 2>/dev/null || true # it may have come back by itself
        wait_until 30 node_is "$node" '(IDLE|MIXED|ALLOCATED)([^+A-Z]|$)'
        ;;
    kill-node)
        pid=$(cat "$DIR/pid/slurmd-$node.pid")
        is_daemon "$pid" || die "no daemon of $node runs"
        kill -KILL "$pid"
        wait_until 10 eval "! is_daemon $pid"
        ;;
    start-node)
        start_node "$node"
        wait_until 30 node_is "$node" '(IDLE|MIXED|ALLOCATED)([^+A-Z]|$)'
        ;;
    stop-controller) end_process "$DIR/pid/slurmctld.pid" ;;
    start-controller)
        start_controller
        wait_until 60 no_node_unknown
        ;;
    stop-database) end_process "$DIR/pid/slurmdbd.pid" ;;
    start-database) start_database ;;
    *) sed -n '2,22p' "$0" >&2; exit 4 ;;
esac
