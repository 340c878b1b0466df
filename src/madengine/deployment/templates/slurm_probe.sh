#!/bin/bash
# What a compute node sees of what a run needs. Arguments: token file, output folder, package, madengine, engine,
# folder of image archives (empty: none), modules to load. Prints a line for each answer, name=value.
set -u

token=$1
output_dir=$2
package=$3
madengine=$4
engine=$5
archives=$6
shift 6

if [ $# -gt 0 ]; then
    for init in /etc/profile.d/lmod.sh /etc/profile.d/modules.sh /usr/share/modules/init/bash; do
        # shellcheck source=/dev/null
        if ! type module >/dev/null 2>&1 && [ -r "$init" ]; then . "$init"; fi
    done
    for name in "$@"; do module load "$name" >/dev/null 2>&1; done
fi

printf 'host=%s\n' "${SLURMD_NODENAME:-$(hostname)}"
if [ -f "$token" ]; then printf 'output_dir=seen\n'; else printf 'output_dir=missing\n'; fi
if [ -w "$output_dir" ]; then printf 'output_dir_writable=yes\n'; else printf 'output_dir_writable=no\n'; fi
if [ -d "$package" ]; then printf 'package=seen\n'; else printf 'package=missing\n'; fi
[ -x "$madengine" ] || madengine=$(command -v madengine) || madengine=""
if [ -n "$madengine" ]; then
    printf 'madengine=%s\n' "$("$madengine" --version 2>&1 | grep -m 1 '^madengine ')"
else
    printf 'madengine=missing\n'
fi
case $engine in
    host) printf 'engine=works\n' ;;
    "")
        if docker info >/dev/null 2>&1 || podman info >/dev/null 2>&1; then
            printf 'engine=works\n'
        else
            printf 'engine=none\n'
        fi
        ;;
    *) if "$engine" info >/dev/null 2>&1; then printf 'engine=works\n'; else printf 'engine=none\n'; fi ;;
esac
if [ -n "$archives" ]; then
    if [ -d "$archives" ]; then printf 'archives=seen\n'; else printf 'archives=missing\n'; fi
fi
