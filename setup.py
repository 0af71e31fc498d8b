"""Builds the compiled half of amqpcodec where that is possible.

`AMQPCODEC_BUILD` in the environment: unset or `auto` compiles where a compiler is found and otherwise
installs the pure build and says so; `require` makes a failure an error; `skip` compiles nothing. What `auto`
could not compile, the package says when it is imported: the reason is in a file beside its modules.
"""

import os
import runpy
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import setup
from setuptools._distutils.ccompiler import new_compiler
from setuptools._distutils.sysconfig import customize_compiler
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.modified import newer_group

MODE = os.environ.get("AMQPCODEC_BUILD", "auto")
if MODE not in ("auto", "require", "skip"):
    raise SystemExit(f"AMQPCODEC_BUILD must be auto, require or skip, not {MODE!r}")
REASON = "amqpcodec/not-compiled.txt"  # read by amqpcodec._backend
STAGE = Path("build/cython")
# pip runs this file several times. These commands need no modules, and Cython takes seconds to find that none
# has changed.
WITHOUT_MODULES = {"egg_info", "dist_info", "sdist"}


class BuildWhereItCan(build_ext):
    """Compiles in parallel; in `auto` mode, a compiler that fails leaves the pure build."""

    def finalize_options(self):
        """Use every core."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self):
        """Compile side by side, once MSVC is found: each thread would look for it."""
        if not getattr(self.compiler, "initialized", True):
            self.compiler.initialize()
        # The longest first, or one core works alone at the end.
        self.extensions.sort(key=lambda each: Path(each.sources[0]).stat().st_size, reverse=True)
        changed = [each.name for each in self.extensions if self.force or self.has_changed(each)]
        self.places = {name: f"[{at:2}/{len(changed)}]" for at, name in enumerate(changed, 1)}
        super().build_extensions()

    def has_changed(self, extension):
        """Return whether a module is older than its sources, or not there yet."""
        return newer_group(extension.sources + extension.depends, self.get_ext_fullpath(extension.name))

    def build_extension(self, extension):
        """Compile a module, and say so."""
        if extension.name in self.places:
            print(self.places[extension.name], "Compiling", extension.name, flush=True)
        super().build_extension(extension)

    def run(self):
        """Compile, and take a failure as the mode says."""
        folder, reason = self.build_lib, OBSTACLE
        if self.inplace or self.editable_mode:
            folder = "src"
        try:
            super().run()
        except Exception as error:
            if MODE == "require":
                raise
            for extension in self.extensions:
                # Half of the modules would be worse than none: the build in use must be one of the two.
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            reason = said_of(error)
            say_pure(reason)
            self.extensions = self.distribution.ext_modules = []
        keep_reason(folder, reason)


class PyWithReason(build_py):
    """Copies the modules; where nothing can be compiled, no other command runs that would keep the reason."""

    def run(self):
        """Copy, and keep the reason."""
        super().run()
        keep_reason("src" if self.editable_mode else self.build_lib, OBSTACLE)


class WheelOfWhatThereIs(bdist_wheel):
    """Tags the wheel by what was compiled, which is not known before."""

    def run_command(self, command):
        """Run another command; once it was `build`, what was compiled is known."""
        super().run_command(command)
        if command == "build":
            self.root_is_pure = not self.distribution.has_ext_modules()


def keep_reason(folder, reason):
    """Write why nothing is compiled to a folder with the package; None takes the file away."""
    path = Path(folder, REASON)
    path.unlink(missing_ok=True)
    if reason:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(reason, encoding="utf-8")


def say_pure(reason):
    """Tell that the package installs without its compiled half, and why."""
    text = f"""
amqpcodec: NOT COMPILED, installing the pure-Python build: {reason}
It behaves the same and is slower. Where there is a C compiler with the headers of Python, the same command
compiles (on Debian and Ubuntu: apt install build-essential python3-dev).
`amqpcodec --version` tells which build is in use.
"""
    print(text, file=sys.stderr)
    tell_terminal(text)


def tell_terminal(text):
    """Write to the terminal what pip keeps to itself, unless a build fails or `-v` is given."""
    if not sys.stderr.isatty() and hasattr(os, "ctermid"):
        with suppress(OSError), open(os.ctermid(), "w", encoding="utf-8") as terminal:
            print(text, file=terminal)


def obstacle():
    """Why nothing can be compiled here, or None: found out in a moment, before Cython works for a minute."""
    with TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("#include <Python.h>\n", encoding="utf-8")
        try:
            compiler = new_compiler()
            customize_compiler(compiler)
            compiler.compile([str(source)], folder, include_dirs=[sysconfig.get_path("include")])
        except Exception as error:  # each compiler has its own
            return said_of(error)
    return None


def said_of(error):
    """The text of an error in a line; of a command that fails, without its arguments."""
    while error.args and isinstance(error.args[0], Exception):  # setuptools wraps that of the command
        error = error.args[0]
    command = getattr(error, "cmd", None)
    text = f"{command[0]} fails with status {error.returncode}" if command else str(error)
    return " ".join(text.split()) or type(error).__name__


def modules():
    """The extension modules to build, and why there are none where some are wanted."""
    if MODE == "skip" or WITHOUT_MODULES & set(sys.argv):
        return [], None
    name = sys.implementation.name
    reason = obstacle() if name == "cpython" or MODE == "require" else f"{name} is served by the pure build"
    if reason and MODE == "require":
        raise SystemExit(f"amqpcodec cannot be compiled here: {reason}")
    if reason:
        say_pure(reason)
        return [], reason if name == "cpython" else None
    if not any(STAGE.rglob("*.c")):  # the first run, of which Cython alone takes a minute
        tell_terminal("amqpcodec: compiling, which takes about three minutes of CPU, on all cores")
    # Read by path: the package itself is not installed yet.
    build = runpy.run_path("src/amqpcodec/_build.py")
    return build["extensions"]("amqpcodec", source=Path("src"), stage=STAGE), None


EXTENSIONS, OBSTACLE = modules()
setup(
    ext_modules=EXTENSIONS,
    cmdclass={"build_py": PyWithReason, "build_ext": BuildWhereItCan, "bdist_wheel": WheelOfWhatThereIs},
)
