"""Writes the generated half of amqpcodec from spec/; see spec/README.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from codecgen import output
from codecgen.elements import SpecError
from codecgen.explain import explain
from codecgen.load import load_dialect, load_project
from codecgen.model import Dialect
from codecgen.peers import Peer, load_peers

ROOT = Path(__file__).resolve().parent.parent
FIX = "python tools/gen_codec.py"


class Emitter(Protocol):
    """An emitter, which turns dialects into text: `codecgen.emit`, or a stand-in for it."""

    def render_project(self, dialects: list[Dialect], peers: list[Peer]) -> dict[str, str]:
        """Every generated file of the repository, by its path relative to the root."""

    def render_package(self, dialect: Dialect, package_name: str) -> dict[str, str]:
        """The files of a package for one dialect, by their paths relative to its directory."""


def main(argv: Sequence[str] | None = None, *, root: Path = ROOT, emitter: Emitter | None = None) -> int:
    """Do what the command line says; 0 is success, 1 stale files, 2 anything that prevents an answer.

    That is a wrong specification or request, or a file that cannot be read or written.
    """
    options = _parser().parse_args(argv)
    try:
        if options.explain:
            dialects = [load_dialect(options.spec)] if options.spec else load_project(root)
            sys.stdout.write(explain(dialects, options.explain))
            return 0
        return _generate(options, root, emitter or _default_emitter())
    except (SpecError, LookupError) as error:
        print(error.args[0] if error.args else error, file=sys.stderr)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}" if error.filename else error, file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gen_codec.py", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a stale file")
    parser.add_argument("--explain", metavar="CLASS[.METHOD]", help="say what the dialects know about it")
    parser.add_argument("--spec", type=Path, metavar="FILE", help="use this specification instead of spec/")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the package for --spec goes")
    parser.add_argument("--package", metavar="NAME", help="what the package for --spec is called")
    return parser


def _generate(options: argparse.Namespace, root: Path, emitter: Emitter) -> int:
    package: str | None = output.PACKAGE
    if options.spec is None:
        if options.out or options.package:
            raise LookupError("--out and --package go with --spec")
        dialects = load_project(root)
        files = emitter.render_project(dialects, load_peers(root, dialects))
        fix = FIX
    else:
        if not (options.out and options.package):
            raise LookupError("--spec goes with --out and --package, or with --explain")
        files = emitter.render_package(load_dialect(options.spec), options.package)
        fix = f"{FIX} --spec {options.spec} --out {options.out} --package {options.package}"
        root, package = options.out, None
    if not options.check:
        for line in output.write(root, files, package):
            print(line)
        return 0
    problems = output.check(root, files, package)
    if problems:
        sys.stdout.write(problems)
        print(f"Generated files are not up to date; run: {fix}", file=sys.stderr)
    return 1 if problems else 0


def _default_emitter() -> Emitter:
    # Explaining and loading work without the emitters, so they are not imported before they are needed.
    import codecgen.emit

    return codecgen.emit


if __name__ == "__main__":
    sys.exit(main())
