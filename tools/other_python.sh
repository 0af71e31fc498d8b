#!/usr/bin/env bash
# Installs an interpreter that the machine lacks, from a later release of Debian. Runs on Debian, as root.
#
#   tools/other_python.sh freethreaded DIR   CPython 3.13 without the global interpreter lock
#   tools/other_python.sh locked DIR         CPython 3.13 with the lock, to compare with
#   tools/other_python.sh newest DIR         CPython 3.14 with the lock
#   tools/other_python.sh pypy DIR           PyPy 3.11, in a small Debian of its own
#
# The interpreter is DIR/bin/python3, with pip. CPython 3.13 is compiled, which takes five to ten minutes; the others
# are downloaded. A second run finds what is there and does nothing.
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

# Calls apt-get on a release of its own in a folder. It checks the signature of the archive, for source packages as well.
apt_of() {
    local folder=$1
    shift
    apt-get -qq -o "Dir::Etc::SourceList=$folder/python.sources" -o Dir::Etc::SourceParts=/dev/null \
        -o "Dir::State::Lists=$folder/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
        -o APT::Sandbox::User=root "$@"
}

fetch_index() {
    mkdir -p "$1/lists/partial"
    printf 'Types: %s\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$2" "$(mirror)" "$3" \
        /usr/share/keyrings/debian-archive-keyring.gpg >"$1/python.sources"
    apt_of "$1" update
}

fetch_cpython() {
    fetch_index "$1" deb-src "$release"
    mkdir -p "$1/source"
    (cd "$1/source" && apt_of "$1" source --download-only python3.13)
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

# Debian's own 3.14, with the libraries of its release, which the interpreter is told to load. What it starts, and its
# compiler, are the machine's.
unpack_newest() {
    local work tree=$dir/tree
    local libraries=$tree/usr/lib/x86_64-linux-gnu
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder as it is called now
    trap "rm -rf '$work'" EXIT
    needs build-essential patchelf
    fetch_index "$work" deb forky
    apt_of "$work" -o Dir::State::status=/dev/null -o "Dir::Cache::archives=$work" \
        install --yes --no-install-recommends --download-only python3.14-venv libpython3.14-dev
    for package in "$work"/*.deb; do
        dpkg --extract "$package" "$tree"
    done
    ln -sfn tree/usr/lib "$dir/lib"
    ln -sfn tree/usr/include "$dir/include"
    mkdir -p "$dir/bin" "$dir/include/python3.14/x86_64-linux-gnu"
    ln -sfn ../../x86_64-linux-gnu/python3.14 "$dir/include/python3.14/x86_64-linux-gnu/python3.14"
    sed -i "s,'/usr/share/python-wheels,'$tree/usr/share/python-wheels," "$dir"/lib/python3.14/_sysconfigdata*.py
    patchelf --set-interpreter "$libraries/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$libraries" \
        --output "$dir/bin/python3" "$tree/usr/bin/python3.14"
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
    newest) unpack_newest ;;
    pypy) build_pypy ;;
    *) usage ;;
    esac
fi
"$dir/bin/python3" -c 'import sys; print(sys.version)'
