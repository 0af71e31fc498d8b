"""Says what is known of a release, and what is new in it; with rules, learns what is new.

    python -m support.compat.learn [--rules RULES] LIBRARY==VERSION ...

run with `tests` on the path, as `make compat-learn` does. What is learnt goes by the rules, a key of
`spec/peers` and of `compat/_rules.py`. It is taken back if the stock and the accelerated release differ in
anything.
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
import time
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from amqpcodec.compat import PEERS, _learnt
from amqpcodec.compat._relied import Compared, compare, table
from amqpcodec.compat._sources import Sources

from ..releases import fetched

TESTS = Path(__file__).resolve().parents[2]
HEAD = '''"""Rules by the digest of all that a replacement relies on. See `_relied`.

`make compat-learn VERSION=pika==1.4.4 RULES=1.4` writes this.
"""

from __future__ import annotations

'''


def main() -> int:
    """Look at each release in turn; 1 if one was not learnt that was to be."""
    parser = argparse.ArgumentParser(prog="support.compat.learn", description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="+", metavar="LIBRARY==VERSION")
    parser.add_argument("--rules", help="learn what is new by these")
    parser.add_argument("--count", type=int, default=20_000, help="random comparisons for each release")
    options = parser.parse_args()
    failed = False
    for release in options.releases:
        library, _, version = release.partition("==")
        folder = fetched(library, version)
        new = _show(library, version, _spec(library, folder))
        if options.rules:
            failed |= not _learn(library, version, folder, new, options)
    return int(failed)


def _spec(library: str, folder: Path) -> ModuleSpec:
    spec = PathFinder.find_spec(library, [str(folder)])
    assert spec is not None, folder
    return spec


def _show(library: str, version: str, spec: ModuleSpec) -> list[Compared]:
    """Print what is known and what is not; return the latter."""
    start = time.process_time()
    found = compare(spec)
    milliseconds = (time.process_time() - start) * 1000
    new = [each for each in found if each.rules is None]
    known = f"{len(found) - len(new)} of {len(found)} known"
    print(f"{library} {version}: {known}, compared in {milliseconds:.0f} ms")
    for each in new:
        print(f"  new: {each.name} {each.digest}")
    if new and _learnt.RELEASES[library]:
        nearest = _learnt.RELEASES[library][-1]
        print(f"  what they rely on, beside {library} {nearest}:")
        before = Sources(_spec(library, fetched(library, nearest)))
        print(*_changes({each.name for each in new}, before, Sources(spec)), sep="\n")
    return new


def _changes(names: set[str], before: Sources, after: Sources) -> list[str]:
    """Return the definitions that some replacements rely on and that differ, as lines of a diff."""
    paths: dict[str, None] = {}
    for each in [each for each in table(after.name) if each.name in names]:
        for sources in (before, after):
            paths |= dict.fromkeys(sources.relied(each.roots, each.apart))
    found: list[str] = []
    for path in paths:
        one, other = (_text(sources, path) for sources in (before, after))
        if one != other:
            found += [
                f"    {line}" for line in difflib.unified_diff(one, other, path, path, lineterm="", n=1)
            ]
    return found


def _text(sources: Sources, path: str) -> list[str]:
    return [" " * line.indent + " ".join(line.tokens) for line in sources.lines(path)]


def _learn(
    library: str, version: str, folder: Path, new: list[Compared], options: argparse.Namespace
) -> bool:
    """Add what is new, unless it makes a difference."""
    file = Path(str(_learnt.__file__))
    text = file.read_text(encoding="utf-8")
    for each in new:
        _learnt.LEARNT[library].setdefault(each.name, {})[each.digest] = options.rules
    versions = {*_learnt.RELEASES[library], version}
    _learnt.RELEASES[library] = tuple(sorted(versions, key=_order))
    _write(file, _learnt)
    if library in PEERS:
        path = os.pathsep.join([str(folder), str(TESTS)])
        command = [sys.executable, "-m", "support.compat.compare", "--count", str(options.count), library]
        if subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=False).returncode:
            print("  it differs, so nothing is learnt")
            file.write_text(text, encoding="utf-8")
            for each in new:
                del _learnt.LEARNT[library][each.name][each.digest]
            return False
    print(f"  learnt {len(new)} by the rules of {options.rules}")
    return True


def _order(version: str) -> list[tuple[int, str]]:
    return [(int("".join(filter(str.isdigit, part)) or 0), part) for part in version.split(".")]


def _write(file: Path, learnt: ModuleType) -> None:
    lines = [HEAD, "RELEASES: dict[str, tuple[str, ...]] = {\n"]
    lines += [f"    {name!r}: {versions!r},\n" for name, versions in learnt.RELEASES.items()]
    lines.append("}\n\nLEARNT: dict[str, dict[str, dict[str, str]]] = {\n")
    for library, names in learnt.LEARNT.items():
        entries = "".join(f"        {name!r}: {digests!r},\n" for name, digests in names.items())
        lines.append(f"    {library!r}: {{\n{entries}    }},\n")
    lines.append("}\n")
    file.write_text("".join(lines), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", str(file)], check=True)


if __name__ == "__main__":
    sys.exit(main())
