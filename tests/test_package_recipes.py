"""The recipes of `packaging/` are those of this version, and their linters find nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from amqpcodec import __version__

ROOT = Path(__file__).resolve().parent.parent
CONDA = ROOT / "packaging" / "conda-forge" / "recipe.yaml"
DEBIAN = ROOT / "packaging" / "debian"
OSS_FUZZ = ROOT / "packaging" / "oss-fuzz"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

pytestmark = pytest.mark.skipif(not CONDA.exists(), reason="a source archive has no recipes")


@pytest.mark.slow("renders a package")
def test_the_recipe_of_conda_forge_renders_for_every_python() -> None:
    builder = pytest.importorskip("rattler_build")
    pythons = [f"3.{tag[3:-2]}.*" for tag in PROJECT["tool"]["cibuildwheel"]["build"] if "t" not in tag]
    variants = builder.VariantConfig(
        {"python": pythons, "c_compiler": ["gcc"], "c_stdlib": ["sysroot"], "c_stdlib_version": ["2.17"]}
    )
    recipe = builder.Stage0Recipe.from_file(str(CONDA))
    rendered = [str(each) for each in recipe.render(variants)]
    assert len(rendered) == len(pythons)
    assert all(f"'amqpcodec', version='{__version__}'" in each for each in rendered)


def test_the_recipe_of_conda_forge_asks_for_what_the_build_asks_for() -> None:
    text = CONDA.read_text(encoding="utf-8")
    host = text[text.index("  host:") : text.index("  run:")]
    wanted = {re.sub(r"(?=>=)", " ", each) for each in PROJECT["build-system"]["requires"]}
    assert set(re.findall(r"- (.*)", host)) == wanted | {"python", "pip"}
    assert re.findall(r"- (.*)", text[text.index("  run:") : text.index("tests:")]) == ["python"]


def test_the_recipe_of_debian_is_of_this_version_and_asks_for_what_the_build_asks_for() -> None:
    assert (
        (DEBIAN / "changelog").read_text(encoding="utf-8").startswith(f"python-amqpcodec ({__version__}-1) ")
    )
    control = (DEBIAN / "control").read_text(encoding="utf-8")
    tests = [each for each in PROJECT["project"]["optional-dependencies"]["test"] if "[" not in each]
    wanted = dict(each.split(">=") for each in (*PROJECT["build-system"]["requires"], *tests))
    assert f"cython3 (>= {wanted['cython']}~)" in control
    assert f"python3-setuptools (>= {wanted['setuptools']})" in control
    for tool in ("hypothesis", "pytest"):
        assert f"python3-{tool} (>= {wanted[tool]}) <!nocheck>" in control


@pytest.mark.slow("builds a package")
def test_lintian_finds_nothing_in_the_recipe_of_debian(tmp_path: Path) -> None:
    if not shutil.which("lintian") or not shutil.which("dpkg-source"):
        pytest.skip("lintian is not installed")
    name = f"python-amqpcodec-{__version__}"
    source = tmp_path / name
    source.mkdir()
    for kept in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / kept, source / kept)
    with tarfile.open(tmp_path / f"python-amqpcodec_{__version__}.orig.tar.gz", "w:gz") as archive:
        archive.add(source, name)
    shutil.copytree(DEBIAN, source / "debian")
    built = ["dpkg-source", "--build", name]
    subprocess.run(built, cwd=tmp_path, check=True, capture_output=True, env=os.environ | {"LC_ALL": "C"})
    [described] = tmp_path.glob("*.dsc")
    checked = ["lintian", "--fail-on", "error,warning,info", "--display-info", "--pedantic", str(described)]
    done = subprocess.run(checked, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_recipe_of_oss_fuzz_asks_for_what_there_is_for_python() -> None:
    text = (OSS_FUZZ / "project.yaml").read_text(encoding="utf-8")
    assert "\nlanguage: python\n" in text
    assert re.findall(r"^  - (.*)", text, re.MULTILINE) == ["libfuzzer", "address", "undefined"]
    base = re.search(r"^base_os_version: (.*)", text, re.MULTILINE)
    assert base
    image = f"FROM gcr.io/oss-fuzz-base/base-builder-python:{base[1]}\n"
    assert (OSS_FUZZ / "Dockerfile").read_text(encoding="utf-8").startswith(image)


# In the place of what the image of OSS-Fuzz has; they write down how they were called.
STAND_INS = {
    "python3": """
case "$*" in
    "-m pip "*) echo "$AMQPCODEC_BUILD" >>"$OUT/installed" ;;
    *) exec {python} "$@" ;;
esac
""",
    "compile_python_fuzzer": """
cp "$1" "$OUT"
shift
echo "$*" >>"$OUT/options"
""",
}


@pytest.mark.slow("builds all targets of the fuzzer")
def test_the_build_for_oss_fuzz_leaves_a_program_seeds_and_options_for_each_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for needed in ("bash", "zip"):
        if not shutil.which(needed):
            pytest.skip(f"{needed} is not installed")
    folders = {name: tmp_path / name.lower() for name in ("SRC", "WORK", "OUT", "BIN")}
    for folder in folders.values():
        folder.mkdir()
    for name, text in STAND_INS.items():
        program = folders["BIN"] / name
        program.write_text(f"#!/bin/sh{text.replace('{python}', sys.executable)}", encoding="utf-8")
        program.chmod(0o755)
    environment = {**os.environ, **{name: str(folder) for name, folder in folders.items()}}
    environment["PATH"] = os.pathsep.join([str(folders["BIN"]), os.environ["PATH"]])
    built = ["bash", "-eu", str(OSS_FUZZ / "build.sh")]
    done = subprocess.run(
        built, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    out = folders["OUT"]
    assert (out / "installed").read_text(encoding="utf-8") == "require\n"
    monkeypatch.syspath_prepend(str(ROOT / "fuzz"))
    import dictionaries
    import seeds

    for target in seeds.MAKERS:
        name = f"fuzz_{target}"
        assert f'main("{target}", sys.argv[1:])' in (out / f"{name}.py").read_text(encoding="utf-8")
        assert (out / f"{name}.options").read_text(encoding="utf-8") == "[libfuzzer]\nmax_len = 4096\n"
        assert (out / f"{name}.dict").exists() == (target not in dictionaries.WITHOUT)
        corpus = zipfile.ZipFile(out / f"{name}_seed_corpus.zip")
        held = {corpus.read(each) for each in corpus.namelist()}
        assert held == set(seeds.seeds(target))
    assert len(list(out.glob("*.zip"))) == len(seeds.MAKERS)
    options = "--collect-submodules amqpcodec --hidden-import zoneinfo --collect-all tzdata"
    assert set((out / "options").read_text(encoding="utf-8").splitlines()) == {options}
