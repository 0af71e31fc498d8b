#!/usr/bin/env bash
# Installs a version of RabbitMQ, in a small Debian of its own. Runs on Debian, as root.
#
#   tools/rabbitmq.sh 3.10 DIR  RabbitMQ 3.10 with Erlang 25, of Debian 12
#   tools/rabbitmq.sh 4.0 DIR   RabbitMQ 4.0 with Erlang 27, of Debian 13
#   tools/rabbitmq.sh 4.3 DIR   RabbitMQ 4.3 with Erlang 29, of the release after it
#
# DIR/bin has rabbitmq-server and rabbitmqctl. They read the variables of RabbitMQ; a node's folder lies under /tmp,
# which is the machine's. It takes a minute and 0.5 GB. A second run finds what is there and does nothing.
set -euo pipefail
usage() {
    sed -n '/^#  /s/^# *//p' "$0" >&2
    exit 2
}
[ $# = 2 ] || usage
case $1 in
3.10) release=bookworm ;;
4.0) release=trixie ;;
4.3) release=forky ;;
*) usage ;;
esac
dir=$(mkdir -p "$2" && cd "$2" && pwd)
tree=$dir/tree
mirror() { apt-get indextargets --format '$(REPO_URI)' | sed -n '1s,/$,,p'; }

# A debootstrap that is older than a release takes it by the script of sid, from which it differs in the name alone.
install_tree() {
    debootstrap --variant=minbase --include=ca-certificates "$release" "$tree" "$(mirror)" \
        /usr/share/debootstrap/scripts/sid
    printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d" # which starts no service
    chmod +x "$tree/usr/sbin/policy-rc.d"
    for file in /etc/resolv.conf /etc/hosts; do
        [ ! -e $file ] || cp "$file" "$tree$file"
    done
    unshare --mount bash -ec "mount -t proc proc '$tree/proc'
        exec chroot '$tree' env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends rabbitmq-server procps"
}

# The program runs with the tree as its root, and in the folder that it is called from.
write_command() {
    cat >"$dir/bin/$1" <<END
#!/usr/bin/env bash
exec unshare --mount bash -ec '
    for folder in /proc /dev /tmp; do mount --rbind "\$folder" "$tree\$folder"; done
    exec chroot "$tree" env -C "\$PWD" /usr/lib/rabbitmq/bin/$1 "\$@"' - "\$@"
END
    chmod +x "$dir/bin/$1"
}

if [ ! -x "$dir/bin/rabbitmq-server" ]; then
    dpkg --status debootstrap >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq debootstrap >/dev/null; }
    rm -rf "$tree"
    install_tree >"$dir/log" 2>&1 || { tail -n 20 "$dir/log" >&2; exit 1; }
    mkdir -p "$dir/bin"
    write_command rabbitmqctl
    write_command rabbitmq-server # last: it says that all is there
fi
chroot "$tree" dpkg-query --show rabbitmq-server erlang-base
