"""The hooks of pre-commit on a change of a specification: what the generator writes is committed as it is."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
METHOD = """\
    <method name="made-up" index="79" synchronous="1" label="ask for something that does not exist">
      <chassis name="server" implement="MUST"/>
      <field name="reason" type="shortstr" label="why it is asked for"/>
    </method>
"""
BEFORE = '  </class>\n\n  <class name="exchange">'


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    # All hooks but that of mypy, which reads the whole package; `make lint` does as well.
    environment = {**os.environ, "SKIP": "mypy", "PRE_COMMIT_HOME": str(folder / ".cache"), "PYTHONPATH": ""}
    environment |= {
        f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=120
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with what the hooks look at, and the tools they use."""
    for name in ("src", "spec", "tools"):
        ignored = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for name in (".gitignore", ".pre-commit-config.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "Before")):
        assert run(tmp_path, "git", *command).returncode == 0
    return tmp_path


@pytest.mark.slow("runs all hooks of pre-commit")
@pytest.mark.skipif(importlib.util.find_spec("pre_commit") is None, reason="pre-commit is not installed")
def test_a_changed_specification_and_what_is_generated_of_it_pass_the_hooks(checkout: Path) -> None:
    path = checkout / "spec" / "rabbitmq-0-9-1.xml"
    text = path.read_text(encoding="utf-8")
    assert text.count(BEFORE) == 1
    path.write_text(text.replace(BEFORE, METHOD + BEFORE), encoding="utf-8")
    generated = run(checkout, sys.executable, "tools/gen_codec.py").stdout
    assert "wrote src/amqpcodec/_generated/rabbitmq_facts.py\n" in generated
    run(checkout, "git", "add", "-A")
    done = run(checkout, sys.executable, "-m", "pre_commit", "run")
    assert done.returncode == 0, done.stdout
    for hook in ("ruff check", "ruff format", "cython-lint", "codespell", "generated files"):
        assert f"{hook}..." in done.stdout
    assert run(checkout, "git", "diff", "--stat").stdout == "", "no hook has changed a file"
