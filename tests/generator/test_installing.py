"""From an XML to an installed, compiled package by the steps of spec/README.md; whose files are spared."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import gen_codec
import pytest
from support.compilers import fast_compiler
from support.implementation import wanted

from amqpcodec import __version__

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "spec" / "README.md").read_text(encoding="utf-8")
SECTION = README[README.index("## From an XML to an installed package") :]
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL))


def ours(*folders: Path) -> dict[str, str]:
    """Our environment, with amqpcodec as if it were installed."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*folders, ROOT / "src")))}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands of the README install."""
    if "c" not in wanted():
        pytest.skip("only the pure build is being tested")
    folder = tmp_path_factory.mktemp("greeting")
    (folder / "tools").symlink_to(ROOT / "tools")
    (folder / "greeting.xml").write_text(BLOCKS["xml"], encoding="utf-8")
    # Into a folder and from nowhere else, so that pip cannot make an environment to build in.
    target = ["-q", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(folder / "installed")]
    own, *steps = (shlex.split(line) for line in BLOCKS["sh"].splitlines())
    assert own == ["python", "-m", "pip", "install", "."]  # which has been done for the tests
    for step in steps:
        command = [sys.executable, *step[1:], *(target if "pip" in step else [])]
        done = subprocess.run(
            command, cwd=folder, env=ours() | {"CC": str(fast_compiler(folder))},
            capture_output=True, encoding="utf-8", timeout=180,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
    return folder / "installed"


@pytest.mark.slow("installs a package")
def test_what_is_installed_is_the_compiled_package_with_its_types(installed: Path) -> None:
    names = {path.name for path in (installed / "greeting").iterdir()}
    assert f"methods_c{EXTENSION_SUFFIXES[0]}" in names
    assert {"methods_layouts_c.pyx", "methods_py.py", "py.typed"} <= names


@pytest.mark.slow("installs a package")
@pytest.mark.parametrize("build", ["c", "py"])
def test_the_installed_package_does_what_is_said(installed: Path, tmp_path: Path, build: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCKS["python"]],
        cwd=tmp_path, env=ours(installed) | {"AMQPCODEC_IMPL": build},
        capture_output=True, encoding="utf-8", timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == BLOCKS["text"].replace("c greeting.methods_c", f"{build} greeting.methods_{build}")


@pytest.mark.slow("installs a package")
def test_the_installed_package_asks_for_the_amqpcodec_it_was_made_by(installed: Path) -> None:
    [metadata] = installed.glob("greeting-0.9.1.dist-info/METADATA")
    assert f"\nRequires-Dist: amqpcodec=={__version__}\n" in metadata.read_text(encoding="utf-8")


HIDING = """
import runpy, sys
sys.path[:] = [folder for folder in sys.path if folder != {source!r}]
sys.argv[:] = ["setup.py", "-q", "build_ext", "--inplace"]
runpy.run_path("setup.py", run_name="__main__")
"""
"""Runs setup.py as pip does in an environment of its own, where what is installed is not on the path."""


@pytest.mark.slow("runs setup.py")
@pytest.mark.parametrize("found", [True, False])
def test_the_installed_amqpcodec_is_found_from_where_pip_builds(
    generate: tuple[Path, list[str]], found: bool
) -> None:
    out, options = generate
    assert gen_codec.main(options) == 0
    script = (out / "setup.py").read_text(encoding="utf-8")
    if not found:
        (out / "setup.py").write_text(script.replace("site.addsitedir(folder)", "pass"), encoding="utf-8")
    # A compiler that fails at once: it is enough that there is something to compile.
    done = subprocess.run(
        [sys.executable, "-c", HIDING.format(source=str(ROOT / "src"))],
        cwd=out, env={**os.environ, "PYTHONPATH": "", "CC": "false", "AMQPCODEC_BUILD": "auto"},
        capture_output=True, encoding="utf-8", timeout=120,
    )  # fmt: skip
    assert done.returncode != 0
    assert (out / "build" / "cython" / "greeting" / "methods_c.c").exists() is found
    assert ("install amqpcodec first: this package is compiled against it" in done.stderr) is not found


@pytest.fixture
def generate(tmp_path: Path) -> tuple[Path, list[str]]:
    """A folder, and what has the package written to it."""
    (tmp_path / "greeting.xml").write_text(BLOCKS["xml"], encoding="utf-8")
    out = tmp_path / "out"
    return out, ["--spec", str(tmp_path / "greeting.xml"), "--out", str(out), "--package", "greeting"]


@pytest.mark.parametrize(
    "name",
    ["setup.py", "pyproject.toml", "greeting/__init__.py", "greeting/methods_layouts_c.pyx"],
)
def test_a_file_that_the_generator_did_not_write_is_not_overwritten(
    generate: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    out, options = generate
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("# by hand\n", encoding="utf-8")
    assert gen_codec.main(options) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"{out / name}: is not one of gen_codec.py's files")
    assert [path for path in out.rglob("*") if path.is_file()] == [out / name]
    assert (out / name).read_text(encoding="utf-8") == "# by hand\n"


def test_what_the_generator_wrote_is_written_anew_where_it_differs(
    generate: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    out, options = generate
    assert gen_codec.main(options) == 0
    script = (out / "setup.py").read_text(encoding="utf-8")
    (out / "setup.py").write_text(f"{script}# more\n", encoding="utf-8")
    (out / "greeting" / "own.py").write_text("# by hand\n", encoding="utf-8")
    capsys.readouterr()
    assert gen_codec.main(options) == 0
    assert capsys.readouterr().out == "wrote setup.py\n"
    assert (out / "setup.py").read_text(encoding="utf-8") == script
    assert (out / "greeting" / "own.py").exists()
    assert gen_codec.main([*options, "--check"]) == 0
