"""What a run says to do about a changed environment is executed, until the next `retry` starts."""

import json
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import Struct

from tests.environments import ADD, IGNORES, SITE
from tests.miniatures import miniature, put
from tests.needs import needs
from tests.projects import Project, atlas

BIG = "# " + "x" * 1_100_000 + "\n"
"""More than is held before a turn."""
FIX = put("calc.py", "def add(a, b):\n    return a + b\n")
GATE = "grep -q 'a + b' calc.py"
SLOW = pytest.mark.slow
"""pip and `venv` take ten seconds and more of CPU."""
PIP = ".venv/bin/python -m pip"


class Case(Struct, frozen=True, kw_only=True):
    """How the environment is made before the run, and what the turn does to it."""

    name: str
    setup: str
    turn: str
    files: Mapping[str, str] = {}


VENV = f"python -m venv .venv && {PIP} install -q Fancy.Name==1.0"
CASES = (
    Case(name="edited", setup=VENV,
         turn=f"cd .venv/{SITE}; echo '# x' | tee -a fancy/big.py >> _fancy_big.py"),
    Case(name="upgraded", setup=VENV, turn=f"{PIP} install -q Fancy.Name==2.0"),
    Case(name="uninstalled", setup=VENV, turn=f"{PIP} uninstall -q -y Fancy.Name"),
    Case(name="outside", setup=f"cd .. && {VENV}",
         turn=f"echo '# x' >> ../.venv/{SITE}/fancy/big.py"),
    Case(name="added-outside", setup=f"cd .. && {VENV}",
         turn="../.venv/bin/python -m pip install -q other"),
    Case(name="node", setup="mkdir -p node_modules && npm install --silent",
         turn="echo '// x' >> node_modules/dep/big.js",
         files={"package.json": '{"dependencies": {"dep": "file:../house/dep"}}\n'}),
)  # fmt: skip


def wheel(house: Path, name: str, version: str, files: Mapping[str, str]) -> None:
    info = f"{name}-{version}.dist-info"
    texts = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: own\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*texts, f"{info}/RECORD"))
    with zipfile.ZipFile(house / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**texts, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)


def made(case: Case, folder: Path, environ: Mapping[str, str]) -> Project:
    house = folder / "house"
    (house / "dep").mkdir(parents=True)
    for version in ("1.0", "2.0"):
        big = {"fancy/big.py": f"{BIG}# {version}\n", "_fancy_big.py": f"{BIG}# {version}\n"}
        wheel(house, "fancy_name", version, {"fancy/__init__.py": f"v = '{version}'\n", **big})
    wheel(house, "other", "1.0", {"other/__init__.py": "", "other/big.py": BIG})
    (house / "dep/package.json").write_text('{"name": "dep", "version": "1.0.0"}\n')
    (house / "dep/big.js").write_text(f"// {BIG}")
    own = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(house),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "npm_config_offline": "true",
        "npm_config_install_links": "true",
        "npm_config_cache": str(folder / "npm"),
    }
    files = {".gitignore": IGNORES, "calc.py": ADD, **case.files}
    project = miniature(
        folder, {**environ, **own}, files, [f"{FIX}; {case.turn}"], validation={"test": [GATE]}
    )
    if "outside" in case.name:
        project.environ["VIRTUAL_ENV"] = str(folder / ".venv")
        project.environ["PATH"] = f"{folder}/.venv/bin:{project.environ['PATH']}"
    shell(project, case.setup)
    return project


def shell(project: Project, line: str) -> None:
    argv = ("sh", "-ec", line)
    done = subprocess.run(
        argv, cwd=project.root, env=project.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"


NEEDS = {"node": needs("npm", "node")}
ROWS = [pytest.param(case, marks=NEEDS.get(case.name, SLOW), id=case.name) for case in CASES]


@pytest.mark.in_place("an overlay leaves the environment as it is")
@pytest.mark.parametrize("case", ROWS)
def test_the_remedy_for_a_changed_environment_helps(
    case: Case, tmp_path: Path, environ: dict[str, str]
) -> None:
    project = made(case, tmp_path, environ)
    run = json.loads(atlas(project, "retry", ".", "--ai-fix", "--max-attempts", "1", "--json").out)
    if remedy := run["remedy"]:
        assert run["verdict"] == "rejected"
        assert atlas(project, "retry", ".").code == 3
        shell(project, remedy.partition(": ")[2])
    else:
        assert run["verdict"] == "fixed", run  # what was added is moved away
    again = atlas(project, "retry", ".")
    assert again.code == (1 if remedy else 0), (remedy, again.out + again.err)
    if "fancy" in case.setup.lower():
        place = ".." if "outside" in case.name else "."
        shell(project, f"{place}/.venv/bin/python -c 'import fancy; assert fancy.v == \"1.0\"'")
