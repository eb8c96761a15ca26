#!/bin/sh
# Prove that a bare Debian with python3, python3-venv and make is enough for `make test` and `make demo`.
#
#   scripts/bare_machine.sh FOLDER [SUITE]
#
# FOLDER must not exist yet; a minimal Debian (debootstrap, variant minbase) goes there, then a clone of what is committed
# here, and both commands run in it as root. SUITE is this machine's release unless given. How this machine reaches its
# archives (apt, pip, certificates, resolver) is copied, because a proof of the software should not fail for the network.
# Everything is mounted in a namespace of its own, so it is unmounted, and every process in it ended, when this script
# ends, however it ends. FOLDER stays: remove it with rm -rf.
set -eu

say() { printf '%s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

[ $# -ge 1 ] || { say "Usage: scripts/bare_machine.sh FOLDER [SUITE]"; exit 2; }
[ "$(id -u)" = 0 ] || fail "A chroot takes root: run this script as root."
command -v debootstrap >/dev/null || fail "There is no debootstrap here: install the package debootstrap."

repository=$(cd "$(dirname "$0")/.." && pwd)
script=$repository/scripts/bare_machine.sh
own_suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
suite=${2:-$own_suite}

if [ "${FENCEPOST_BARE_STAGE:-outside}" = outside ]; then
    [ ! -e "$1" ] || fail "$1 exists already: name a folder that does not."
    mkdir -p "$1"
    folder=$(cd "$1" && pwd)
    FENCEPOST_BARE_STAGE=inside
    export FENCEPOST_BARE_STAGE
    exec unshare --mount --pid --fork --kill-child "$script" "$folder" "$suite"
fi
folder=$1

# ---- a minimal Debian, from the archive that apt uses here
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
    awk -v suite="$own_suite" '$2 == suite { print $1; exit }')
say "Making a minimal $suite in $folder"
debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv,make "$suite" "$folder" "$mirror" \
    >"$folder.log" 2>&1 || { tail -n 20 "$folder.log" >&2; fail "debootstrap failed."; }
rm -f "$folder.log"

# ---- the same ways out as this machine has
copy() { # copy PATH [DESTINATION]: a file or folder that may not exist
    [ -e "$1" ] || return 0
    mkdir -p "$(dirname "$folder${2:-$1}")"
    cp -RLT "$1" "$folder${2:-$1}" 2>/dev/null || true # a dangling link inside is nobody's loss
}
copy /etc/resolv.conf
copy /etc/hosts
copy /etc/pip.conf
copy /usr/local/share/ca-certificates
copy /etc/ssl/certs/ca-certificates.crt
copy "$HOME/.config/pip" /srv/.config/pip
for part in apt.conf.d auth.conf.d preferences.d keyrings trusted.gpg trusted.gpg.d; do copy "/etc/apt/$part"; done
if [ "$suite" = "$own_suite" ]; then
    rm -f "$folder/etc/apt/sources.list"
    copy /etc/apt/sources.list
    copy /etc/apt/sources.list.d
fi

mount -t proc proc "$folder/proc"
mount -t sysfs -o ro sysfs "$folder/sys"
mount --bind /dev "$folder/dev"
mount -t devpts devpts "$folder/dev/pts"
mount -t tmpfs tmpfs "$folder/dev/shm"

# Folders on disk that pip takes packages from; of an index, `files` lies beside `simple`.
pip_settings=$({ cat /etc/pip.conf "$HOME/.config/pip/pip.conf" 2>/dev/null; env | grep '^PIP_'; } || true)
printf '%s\n' "$pip_settings" | tr ' =' '\n\n' | sed -n 's|^file://||; s|/simple/*$||; /^\//p' | sort -u |
    while read -r packages; do
        [ -d "$packages" ] || continue
        mkdir -p "$folder$packages"
        mount --bind -o ro "$packages" "$folder$packages"
    done

git clone --quiet --no-local "$repository" "$folder/srv/fencepost"

# ---- both commands
inside() { # inside COMMAND...: in the chroot, with nothing of this environment but the ways out
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv LANG=C.UTF-8 TERM=dumb \
        $(env | grep -iE '^(PIP_[A-Z_]*|https?_proxy|no_proxy)=[^ ]*$' || true) \
        chroot "$folder" "$@"
}
attempt() { # attempt LOG COMMAND: run it in the clone and show how it ended
    say "In the bare machine: $2"
    began=$(date +%s)
    status=0
    inside sh -c "cd /srv/fencepost && $2" >"$folder/srv/$1.log" 2>&1 || status=$?
    tail -n "${LINES_SHOWN:-15}" "$folder/srv/$1.log"
    say "-- exit code $status after $(($(date +%s) - began)) s; all of it is in $folder/srv/$1.log"
    return "$status"
}
result=0
attempt test 'make test' || result=1
attempt demo 'make demo ARGS="--seconds 20 --agents 50 --json"' || result=1
exit "$result"
