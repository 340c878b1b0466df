#!/usr/bin/env bash
# Writes what this machine (or container) is to ../<model>_env.csv, an artefact of the run. Names of variables are written,
# values are not: they may be secret. Each fact that cannot be had is left out.
set -u

model=${MAD_MODEL_NAME:-model}
output=../${model//[^A-Za-z0-9._-]/_}_env.csv

fact() { # fact NAME VALUE: one CSV record
    [ -n "$2" ] && printf '"%s","%s"\n' "$1" "${2//\"/\"\"}"
}

{
    echo name,value
    fact host "$(uname -n)"
    fact kernel "$(uname -r)"
    fact os "$(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-}")"
    fact cpu "$(grep -m1 '^model name' /proc/cpuinfo | cut -d: -f2- | sed 's/^ *//')"
    fact cpus "$(nproc 2>/dev/null)"
    fact memory_kib "$(awk '/^MemTotal/ {print $2}' /proc/meminfo)"
    fact python "$(python3 -c 'import platform; print(platform.python_version())' 2>/dev/null)"
    fact torch "$(python3 -c 'import torch; print(torch.__version__)' 2>/dev/null)"
    fact rocm "$(cat /opt/rocm/.info/version 2>/dev/null)"
    fact gpus "$(rocm-smi --showproductname 2>/dev/null || nvidia-smi -L 2>/dev/null)"
    fact variables "$(compgen -e | tr '\n' ' ')"
} >"$output"
exit 0
