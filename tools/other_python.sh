#!/usr/bin/env bash
# Installs an interpreter that the machine lacks, from Debian's next release. Runs on Debian, as root.
#
#   tools/other_python.sh freethreaded DIR   CPython 3.13 without the global interpreter lock
#   tools/other_python.sh locked DIR         CPython 3.13 with the lock, to compare with
#   tools/other_python.sh pypy DIR           PyPy 3.11, in a small Debian of its own
#
# The interpreter is DIR/bin/python3, with pip. CPython is compiled, which takes five to ten minutes; PyPy is
# downloaded. A second run finds what is there and does nothing.
set -euo pipefail
usage() {
    sed -n '/^#  /s/^# *//p' "$0" >&2
    exit 2
}
[ $# = 2 ] || usage
kind=$1 dir=$(mkdir -p "$2" && cd "$2" && pwd)
release=trixie
needs() {
    dpkg --status "$@" >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq "$@" >/dev/null; }
}
mirror() { apt-get indextargets --format '$(REPO_URI)' | sed -n '1s,/$,,p'; }

# apt-get checks the signature of the archive, for the source package as well.
fetch_cpython() {
    mkdir -p "$1/lists/partial" "$1/source"
    printf 'Types: deb-src\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$(mirror)" "$release" \
        /usr/share/keyrings/debian-archive-keyring.gpg >"$1/python.sources"
    local options=(-qq -o "Dir::Etc::SourceList=$1/python.sources" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$1/lists" -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update
    (cd "$1/source" && apt-get "${options[@]}" source --download-only python3.13)
    tar -C "$1" -xf "$1"/source/python3.13_*.orig.tar.xz
}

build_cpython() {
    local work
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder as it is called now
    trap "rm -rf '$work'" EXIT
    needs build-essential libssl-dev zlib1g-dev libffi-dev libsqlite3-dev liblzma-dev libbz2-dev
    fetch_cpython "$work"
    echo "Compiling CPython 3.13 ($kind) into $dir, which takes minutes; the log is $dir/log"
    cd "$work"/Python-*
    { ./configure -q "$@" --prefix="$dir" && nice make -s -j"$(nproc)" && nice make -s install; } >"$dir/log" 2>&1
}

# PyPy runs with the tree as its root; the folder it is called from is mounted there under the same name.
build_pypy() {
    needs debootstrap
    debootstrap --variant=minbase --include=pypy3,pypy3-venv,ca-certificates "$release" "$dir/tree" "$(mirror)" >"$dir/log" 2>&1
    for file in /etc/pip.conf /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt; do
        [ ! -e $file ] || cp "$file" "$dir/tree$file"
    done
    chroot "$dir/tree" pypy3 -m venv /venv
    mkdir -p "$dir/bin"
    cat >"$dir/bin/python3" <<END
#!/usr/bin/env bash
exec unshare --mount bash -ec '
    for folder in /proc /dev /tmp "\$PWD"; do
        mkdir -p "$dir/tree\$folder"
        mount --rbind "\$folder" "$dir/tree\$folder"
    done
    exec chroot "$dir/tree" env -C "\$PWD" /venv/bin/python "\$@"' - "\$@"
END
    chmod +x "$dir/bin/python3"
}

if [ ! -x "$dir/bin/python3" ]; then
    case $kind in
    freethreaded) build_cpython --disable-gil ;;
    locked) build_cpython ;;
    pypy) build_pypy ;;
    *) usage ;;
    esac
fi
"$dir/bin/python3" -c 'import sys; print(sys.version)'
