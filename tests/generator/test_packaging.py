"""Wheels and source archives, and what the build does where there is no compiler."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import setuptools
from support.compilers import fast_compiler

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ("setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in")
OURS = ("AMQPCODEC_BUILD", "AMQPCODEC_IMPL", "PYTHONPATH", "CC", "CFLAGS", "LDSHARED")
SMOKE = """
import amqpcodec
from amqpcodec import rabbitmq as amqp
sent = amqp.encode_message(1, amqp.Basic.Publish("x", "k"), amqp.BasicProperties(headers={"n": 1}), b"body")
[message] = amqp.MessageDecoder().feed(sent)
print(amqpcodec.IMPL, amqpcodec.__file__, message.body, message.properties.headers)
"""


def python(*arguments: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run this Python elsewhere, with nothing of ours in the environment but what is given."""
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd, env={**kept, **variables}, capture_output=True, encoding="utf-8", timeout=120,
    )  # fmt: skip


def copied(folder: Path) -> Path:
    """The sources of the package without anything that was built."""
    folder.mkdir()
    for name in SOURCES:
        shutil.copy(ROOT / name, folder)
    skip = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.egg-info")
    for name in ("src", "spec", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    return folder


def made(folder: Path, pattern: str) -> Path:
    [path] = folder.glob(pattern)
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that AMQPCODEC_BUILD=skip makes."""
    tree = copied(tmp_path_factory.mktemp("wheel") / "tree")
    options = ("-q", "--no-build-isolation", "--no-deps", "--no-index", "-w", tree.parent)
    done = python("-m", "pip", "wheel", *options, tree, cwd=tree.parent, AMQPCODEC_BUILD="skip")
    assert done.returncode == 0, done.stderr
    return made(tree.parent, "*.whl")


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """A folder that this wheel is installed in."""
    target = wheel.parent / "installed"
    options = ("-q", "--no-deps", "--no-index", "--target", target)
    done = python("-m", "pip", "install", *options, wheel, cwd=wheel.parent)
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.slow("builds a wheel")
def test_a_build_that_is_set_to_skip_makes_a_wheel_for_every_platform(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.mark.slow("builds a wheel")
def test_the_wheel_has_every_module_and_what_compiling_against_it_needs(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for ending in ("*.py", "*.pxd", "py.typed")
        for path in (source / "amqpcodec").rglob(ending)
    }
    assert {"amqpcodec/py.typed", "amqpcodec/_kernel/stream_c.pxd"} <= wanted
    assert wanted <= names


@pytest.mark.slow("builds a wheel")
def test_the_wheel_has_nothing_compiled_and_no_copied_texts(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.endswith(("_c.py", ".so", ".c", ".pyd"))] == []
    assert "amqpcodec/not-compiled.txt" not in names
    tops = {name.partition("/")[0].partition("-")[0] for name in names}
    assert tops == {"amqpcodec", "pyspark_amqp", "pytest_amqpcodec.py"}


@pytest.mark.slow("builds a wheel")
def test_the_installed_wheel_works_and_is_pure(installed: Path) -> None:
    done = python("-W", "error", "-c", SMOKE, cwd=installed.parent, PYTHONPATH=str(installed))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"py {installed / 'amqpcodec' / '__init__.py'} b'body' {{'n': 1}}\n"


@pytest.mark.slow("builds a wheel")
def test_the_installed_wheel_refuses_to_be_the_compiled_build(installed: Path) -> None:
    done = python("-c", SMOKE, cwd=installed.parent, PYTHONPATH=str(installed), AMQPCODEC_IMPL="c")
    assert done.returncode == 1
    assert "ImportError: AMQPCODEC_IMPL=c, but the compiled build cannot be imported" in done.stderr


@pytest.mark.slow("builds a wheel")
def test_the_installed_wheel_decodes_a_capture(installed: Path) -> None:
    capture = ROOT / "examples" / "real-bunny.pcap"
    done = python("-m", "amqpcodec", "decode", capture, cwd=installed.parent, PYTHONPATH=str(installed))
    assert (done.returncode, done.stderr) == (0, "")
    assert "basic.publish" in done.stdout


@pytest.mark.slow("builds a source archive")
def test_the_source_archive_has_every_source(tmp_path: Path) -> None:
    tree = copied(tmp_path / "tree")
    done = python("setup.py", "-q", "sdist", "-d", tmp_path, cwd=tree, AMQPCODEC_BUILD="skip")
    assert done.returncode == 0, done.stderr
    with tarfile.open(made(tmp_path, "*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    endings = (".py", ".pyx", ".pxd", ".xml", ".toml", "py.typed")
    wanted = {
        path.relative_to(tree).as_posix()
        for folder in ("src/amqpcodec", "spec", "tools")
        for path in (tree / folder).rglob("*")
        if path.name.endswith(endings)
    }
    assert {
        "spec/amqp-0-8.xml",
        "src/amqpcodec/_kernel/reader_c.pyx",
        "src/amqpcodec/_generated/layouts_c.pyx",
    } <= wanted
    assert (wanted | set(SOURCES)) - names == set()


@pytest.mark.parametrize("value", ["", "Auto"])
def test_another_value_of_the_variable_is_refused(tmp_path: Path, value: str) -> None:
    done = python("setup.py", "-q", "--version", cwd=copied(tmp_path / "tree"), AMQPCODEC_BUILD=value)
    assert done.returncode != 0
    assert f"AMQPCODEC_BUILD must be auto, require or skip, not {value!r}" in done.stderr


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with only three modules to compile, by Cython as far as C: that takes longer than the rest."""
    tree = copied(tmp_path_factory.mktemp("small") / "tree")
    kept = {"dialect_c", "lock_c", "sharing_c", "kinds", "wire"}
    for path in (tree / "src").rglob("*.p[xy][dx]"):
        if path.stem not in kept:
            path.unlink()
    for path in (tree / "src" / "amqpcodec" / "_generated").glob("*_py.py"):
        # Not known as generated, so no types follow from it, and it is not compiled.
        path.write_text(path.read_text(encoding="utf-8").partition("\n")[2], encoding="utf-8")
    assert build(tree, "auto", fast_compiler(tree, "*probe*")).returncode == 0
    assert len(list((tree / "build").rglob("*_c.c"))) == 3
    return tree


@pytest.fixture
def small(translated: Path, tmp_path: Path) -> Path:
    """A copy of that tree; what is older than its C is not translated again."""
    return Path(shutil.copytree(translated, tmp_path / "tree"))


def build(tree: Path, mode: str, compiler: Path | str) -> subprocess.CompletedProcess[str]:
    return python(
        "setup.py", "-q", "build_ext", "--inplace", cwd=tree, AMQPCODEC_BUILD=mode, CC=str(compiler)
    )


def compiled(tree: Path) -> Iterator[str]:
    return (path.name.partition(".")[0] for path in sorted((tree / "src").rglob("*.so")))


@pytest.mark.slow("compiles")
def test_a_compiler_that_works_leaves_compiled_modules_and_says_nothing(small: Path) -> None:
    done = build(small, "auto", fast_compiler(small))
    assert done.returncode == 0, done.stderr
    assert list(compiled(small)) == ["_cython_utility", "dialect_c", "lock_c", "sharing_c"]
    assert "NOT COMPILED" not in done.stderr
    assert list((small / "src").rglob("*_c.py")) == []


def test_msvc_is_looked_for_once_before_threads_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    monkeypatch.setenv("AMQPCODEC_BUILD", "skip")
    command = runpy.run_path(str(ROOT / "setup.py"))["BuildWhereItCan"](setuptools.Distribution())
    command.extensions, found = [], []
    for initialized in (False, True, None):  # MSVC, MSVC once it is found, and other compilers
        attributes = {} if initialized is None else {"initialized": initialized}
        command.compiler = SimpleNamespace(initialize=lambda: found.append("MSVC"), **attributes)
        command.build_extensions()
    assert found == ["MSVC"]


@pytest.mark.slow("compiles")
@pytest.mark.parametrize("compiler", ["false", "/there/is/no/compiler"])
def test_without_a_compiler_the_pure_build_serves_and_says_so(small: Path, compiler: str) -> None:
    done = build(small, "auto", compiler)
    assert done.returncode == 0, done.stderr
    assert "amqpcodec: NOT COMPILED, installing the pure-Python build: " in done.stderr
    assert list(compiled(small)) == []
    done = python("-W", "default", "-c", SMOKE, cwd=small, PYTHONPATH=str(small / "src"))
    assert done.stdout.startswith(f"py {small}"), done.stderr
    warned = "<string>:2: RuntimeWarning: amqpcodec runs its pure build, which is many times slower, since "
    assert done.stderr.startswith(warned)
    assert done.stderr.count("RuntimeWarning") == 1
    assert Path(compiler).name in done.stderr
    for silenced in ({"options": ("-W", "error")}, {"AMQPCODEC_IMPL": "py"}):
        options = silenced.pop("options", ())
        done = python(*options, "-c", SMOKE, cwd=small, PYTHONPATH=str(small / "src"), **silenced)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow("compiles")
@pytest.mark.parametrize("mode", ["auto", "skip"])
def test_a_later_build_that_is_as_asked_takes_the_warning_away(small: Path, mode: str) -> None:
    assert build(small, "auto", "false").returncode == 0
    reason = small / "src/amqpcodec/not-compiled.txt"
    assert reason.read_text(encoding="utf-8") == "false fails with status 1"
    assert build(small, mode, fast_compiler(small)).returncode == 0
    assert not reason.exists()


@pytest.mark.slow("compiles")
def test_what_is_built_of_such_a_tree_has_no_reason_of_its_own(small: Path, tmp_path: Path) -> None:
    assert build(small, "auto", "false").returncode == 0
    done = python("setup.py", "-q", "build", "-b", tmp_path / "b", cwd=small, AMQPCODEC_BUILD="skip")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b/lib/amqpcodec/_backend.py").exists()
    assert not (tmp_path / "b/lib/amqpcodec/not-compiled.txt").exists()


@pytest.mark.slow("compiles")
def test_an_editable_installation_keeps_the_reason_beside_the_sources(small: Path) -> None:
    hook = "import setuptools.build_meta as backend; print(backend.build_editable('.'))"
    done = python("-c", hook, cwd=small, CC="false")
    assert done.returncode == 0, done.stderr
    assert (small / "src/amqpcodec/not-compiled.txt").exists()


@pytest.mark.slow("compiles")
def test_a_compiler_that_fails_for_one_module_leaves_none(small: Path) -> None:
    done = build(small, "auto", fast_compiler(small, "*probe*|*lock_c*"))
    assert done.returncode == 0, done.stderr
    assert "NOT COMPILED" in done.stderr
    assert list(compiled(small)) == []
    reason = (small / "src/amqpcodec/not-compiled.txt").read_text(encoding="utf-8")
    assert reason == f"{small / 'some-cc'} fails with status 1"


@pytest.mark.parametrize("mode", ["auto", "require"])
def test_without_a_compiler_nothing_is_translated_to_c(tmp_path: Path, mode: str) -> None:
    tree = copied(tmp_path / "tree")
    assert (build(tree, mode, "false").returncode == 0) == (mode == "auto")
    assert list((tree / "build").rglob("*.c")) == []


@pytest.mark.slow("compiles")
def test_a_terminal_shows_it_though_pip_keeps_the_output_of_builds(small: Path) -> None:
    if shutil.which("script") is None:
        pytest.skip("script is needed, which runs a command in a terminal of its own")
    command = f"{sys.executable} setup.py -q build_ext --inplace >/dev/null 2>&1"
    variables = {**os.environ, "AMQPCODEC_BUILD": "auto", "CC": "false"}
    arguments = ["script", "-qec", command, "/dev/null"]
    done = subprocess.run(
        arguments, cwd=small, env=variables, capture_output=True, encoding="utf-8", timeout=120
    )
    assert "amqpcodec: NOT COMPILED, installing the pure-Python build: " in done.stdout


def test_a_terminal_shows_once_how_long_compiling_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    monkeypatch.setenv("AMQPCODEC_BUILD", "skip")
    modules = runpy.run_path(str(ROOT / "setup.py"))["modules"]
    terminal = tmp_path / "terminal"
    monkeypatch.setattr(os, "ctermid", lambda: str(terminal), raising=False)
    build = {"extensions": lambda *_, stage, **__: (stage / "x.c").touch()}
    modules.__globals__.update(
        MODE="auto", STAGE=tmp_path, obstacle=lambda: None, runpy=SimpleNamespace(run_path=lambda _: build)
    )
    modules()
    said = "amqpcodec: compiling, which takes about three minutes of CPU, on all cores\n"
    assert terminal.read_text(encoding="utf-8") == said
    terminal.unlink()
    modules()
    assert not terminal.exists()


@pytest.mark.slow("compiles")
@pytest.mark.parametrize("compiler", ["false", "/there/is/no/compiler"])
def test_a_build_that_is_required_fails_without_a_compiler(small: Path, compiler: str) -> None:
    done = build(small, "require", compiler)
    assert done.returncode != 0
    assert "amqpcodec cannot be compiled here: " in done.stderr
    assert "NOT COMPILED" not in done.stderr
    assert list(compiled(small)) == []


@pytest.fixture(scope="module")
def uncompiled(translated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built without a compiler."""
    tree = Path(shutil.copytree(translated, tmp_path_factory.mktemp("uncompiled") / "tree"))
    options = ("-q", "--no-build-isolation", "--no-deps", "--no-index", "-w", tree.parent)
    done = python("-m", "pip", "wheel", *options, tree, cwd=tree.parent, CC="false")
    assert done.returncode == 0, done.stderr
    return made(tree.parent, "*.whl")


@pytest.mark.slow("builds a wheel")
def test_a_wheel_built_without_a_compiler_has_nothing_compiled(uncompiled: Path) -> None:
    names = zipfile.ZipFile(uncompiled).namelist()
    assert {"amqpcodec/_kernel/stream_py.py", "amqpcodec/not-compiled.txt"} <= set(names)
    assert [name for name in names if name.endswith((".so", "_c.py"))] == []


@pytest.mark.slow("builds a wheel")
def test_a_wheel_built_without_a_compiler_is_for_every_platform(uncompiled: Path) -> None:
    assert uncompiled.name.endswith("-py3-none-any.whl")
