#!/bin/bash
# A real Docker engine for the tests, on a plain Debian machine, as root, without systemd and without any image hub.
#
#   docker_engine.sh start [DIR]   install what is missing, start the engine, make the base images; prints the exports
#                                  that lead to it (use: eval "$(tests/services/docker_engine.sh start)")
#   docker_engine.sh env   [DIR]   only the exports, when the engine answers; fails otherwise
#   docker_engine.sh stop  [DIR]   stop the engine; what was downloaded and built stays in DIR
#
# DIR is a cache outside the repository: by default $MADENGINE_TEST_CACHE/docker or ~/.cache/madengine-ci/docker.
# Images: local/busybox:1 (has no bash, on purpose) and local/debian-py:1 (bash and python3).
# Packages come from the Debian mirror that this machine's own apt sources name: runc, busybox-static and debootstrap
# are installed; the engine, its client and buildx are unpacked beside, from the release after the machine's own,
# because Debian 12's client knows no named build contexts.
set -euo pipefail

SUITE=${MADENGINE_TEST_DOCKER_SUITE:-trixie}
BIP=${MADENGINE_TEST_DOCKER_BIP:-172.31.250.1/24}

say() { echo "docker_engine: $*" >&2; }
die() { say "$*"; exit 1; }

apt_field() { # the first value of a field in the machine's own Debian sources
    awk -v field="$1:" '$1 == field {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null
}

mirror() {
    local uri
    uri=$(apt_field URIs)
    [ -n "$uri" ] || uri=$(awk '$1 == "deb" {for (i = 2; i <= NF; i++) if ($i ~ /:\/\//) {print $i; exit}}' \
        /etc/apt/sources.list 2>/dev/null || true)
    [ -n "$uri" ] || die "no Debian mirror found in this machine's apt sources"
    echo "$uri"
}

install_tools() {
    local missing=()
    command -v runc >/dev/null || missing+=(runc)
    command -v busybox >/dev/null || missing+=(busybox-static)
    command -v debootstrap >/dev/null || missing+=(debootstrap)
    [ ${#missing[@]} -eq 0 ] && return
    say "installing ${missing[*]}"
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

unpack_engine() {
    [ -e "$DIR/x/.complete" ] && return
    say "downloading the engine (Debian $SUITE)"
    rm -rf "$DIR/apt" "$DIR/debs" "$DIR/x"
    mkdir -p "$DIR"/apt/{lists/partial,archives/partial,etc} "$DIR/debs" "$DIR/x"
    local key options
    key=$(apt_field Signed-By)
    echo "deb [signed-by=${key:-/usr/share/keyrings/debian-archive-keyring.gpg}] $(mirror) $SUITE main" \
        >"$DIR/apt/etc/sources.list"
    : >"$DIR/apt/status"
    options=(-o "Dir::Etc::sourcelist=$DIR/apt/etc/sources.list" -o Dir::Etc::sourceparts=- -o Dir::Cache::pkgcache=
        -o Dir::Cache::srcpkgcache= -o "Dir::State::lists=$DIR/apt/lists" -o "Dir::Cache::archives=$DIR/apt/archives"
        -o "Dir::State::status=$DIR/apt/status" -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update -qq >&2
    (cd "$DIR/debs" && apt-get "${options[@]}" download -qq docker.io docker-cli docker-buildx containerd tini >&2)
    local package
    for package in "$DIR"/debs/*.deb; do dpkg-deb -x "$package" "$DIR/x"; done
    touch "$DIR/x/.complete"
}

write_runtime() { # an OCI runtime that drops what this machine's root cannot grant, then hands over to runc
    cat >"$DIR/runc-within-means" <<'SH'
#!/bin/sh
# Without CAP_SYS_RESOURCE runc refuses --privileged and raised --ulimit values. Only the commands that carry a
# process description need the detour.
for word in "$@"; do
    case $word in create | run | exec) python3 -I -S "$0.py" "$@" || exit ;; esac
done
exec runc "$@"
SH
    cat >"$DIR/runc-within-means.py" <<'PY'
import json, os, resource, sys

def after(words, name):
    return next((words[i + 1] for i, word in enumerate(words[:-1]) if word == name), None)

words = sys.argv[1:]
bundle, description = after(words, "--bundle"), after(words, "--process")
path = description or os.path.join(bundle or ".", "config.json")
with open("/proc/self/status") as status:
    bounding = int(next(line.split()[1] for line in status if line.startswith("CapBnd")), 16)
if not bounding >> 24 & 1 and os.path.exists(path):
    with open(path) as file:
        document = json.load(file)
    process = document if description else document["process"]
    for kind, names in (process.get("capabilities") or {}).items():
        process["capabilities"][kind] = [name for name in names or [] if name != "CAP_SYS_RESOURCE"]
    for limit in process.get("rlimits") or []:
        most = resource.getrlimit(getattr(resource, limit["type"]))[1]
        if most != resource.RLIM_INFINITY:
            limit["hard"], limit["soft"] = min(limit["hard"], most), min(limit["soft"], most)
    process["oomScoreAdj"] = max(0, process.get("oomScoreAdj") or 0)
    with open(path, "w") as file:
        json.dump(document, file)
PY
    chmod +x "$DIR/runc-within-means"
}

answers() { DOCKER_HOST="unix://$DIR/docker.sock" "$DIR/x/usr/bin/docker" version >/dev/null 2>&1; }

start_daemon() {
    answers && return
    [ "$(id -u)" = 0 ] || die "starting an engine needs root"
    rm -f "$DIR/docker.pid" "$DIR/docker.sock"
    rm -rf "$DIR/exec"
    write_runtime
    PATH="$DIR/x/usr/bin:$DIR/x/usr/sbin:$PATH" setsid "$DIR/x/usr/sbin/dockerd" -H "unix://$DIR/docker.sock" \
        --data-root "$DIR/data" --exec-root "$DIR/exec" -p "$DIR/docker.pid" --iptables=false --ip6tables=false \
        --bip "$BIP" --add-runtime "within-means=$DIR/runc-within-means" --default-runtime within-means \
        >"$DIR/dockerd.log" 2>&1 </dev/null 9>&- &
    local try
    for try in $(seq 1 150); do
        answers && return
        sleep 0.2
    done
    tail -n 20 "$DIR/dockerd.log" >&2
    die "the engine did not answer within 30 s; its log is $DIR/dockerd.log"
}

has_image() { docker image inspect "$1" >/dev/null 2>&1; }

busybox_image() {
    has_image local/busybox:1 && return
    say "making local/busybox:1"
    local root="$DIR/busybox" applet
    rm -rf "$root"
    mkdir -p "$root"/{bin,tmp,etc,root}
    chmod 1777 "$root/tmp"
    cp "$(command -v busybox)" "$root/bin/busybox"
    for applet in $("$root/bin/busybox" --list); do
        [ "$applet" = busybox ] || ln -sf busybox "$root/bin/$applet"
    done
    echo root:x:0:0:root:/root:/bin/sh >"$root/etc/passwd"
    tar -C "$root" -c . | docker import -c 'CMD ["/bin/sh"]' -c 'ENV PATH=/bin' - local/busybox:1 >/dev/null
}

debian_image() {
    has_image local/debian-py:1 && return
    if [ ! -s "$DIR/debian-py.tar" ]; then
        say "making local/debian-py:1 (about half a minute, once)"
        rm -rf "$DIR/rootfs"
        debootstrap --variant=minbase --include=python3,procps bookworm "$DIR/rootfs" "$(mirror)" \
            >"$DIR/debootstrap.log" 2>&1 || { tail -n 20 "$DIR/debootstrap.log" >&2; die "debootstrap failed"; }
        tar -C "$DIR/rootfs" --exclude=./dev --exclude=./proc --exclude=./sys --exclude='./var/cache/apt/*' \
            --exclude='./var/lib/apt/lists/*' --exclude=./usr/share/doc --exclude=./usr/share/locale \
            -cf "$DIR/debian-py.tar.part" .
        mv "$DIR/debian-py.tar.part" "$DIR/debian-py.tar"
        rm -rf "$DIR/rootfs"
    fi
    docker import -c 'CMD ["bash"]' -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        "$DIR/debian-py.tar" local/debian-py:1 >/dev/null
}

exports() {
    printf 'export DOCKER_HOST=%q\nexport DOCKER_CONFIG=%q\nexport PATH=%q:"$PATH"\n' \
        "unix://$DIR/docker.sock" "$DIR/cfg" "$DIR/x/usr/bin"
}

start() {
    mkdir -p "$DIR/cfg/cli-plugins"
    exec 9>"$DIR/start.lock"
    flock 9
    install_tools
    unpack_engine
    ln -sf "$DIR"/x/usr/libexec/docker/cli-plugins/* "$DIR/cfg/cli-plugins/"
    start_daemon
    eval "$(exports)"
    busybox_image
    debian_image
    say "engine $(docker version -f '{{.Server.Version}}') at $DOCKER_HOST"
    exports
}

stop() {
    local pid try
    pid=$(cat "$DIR/docker.pid" 2>/dev/null) || { say "no engine was started from $DIR"; return 0; }
    kill "$pid" 2>/dev/null || true
    for try in $(seq 1 150); do
        [ -e "/proc/$pid" ] && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null || break
        sleep 0.1
    done
    awk -v root="$DIR/" 'index($2, root) == 1 {print $2}' /proc/mounts | sort -r | while read -r mounted; do
        umount "$mounted" || true
    done
    say "stopped"
}

cache=${MADENGINE_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/madengine-ci}
DIR=$(realpath -m "${2:-$cache/docker}")
case ${1:-} in
    start) start ;;
    env) answers && exports ;;
    stop) stop ;;
    *) sed -n '2,13p' "$0" >&2; exit 4 ;;
esac
