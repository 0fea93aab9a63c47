"""Small projects in memory and the failures of their tools, for the prompt's tests."""

from collections.abc import Mapping

from atlas_retry.diagnostics import ToolOutput, diagnose
from atlas_retry.model import GateResult, Kind, Status, Validation
from atlas_retry.prompt import Brief
from atlas_retry.prompt.candidates import Candidate, candidates
from atlas_retry.prompt.project import Project

PROJECT: Mapping[str, str] = {
    "src/shop/__init__.py": "from .cart import Cart\n",
    "src/shop/cart.py": (
        "from .money import rounded\n\n\n"
        "class Cart:\n"
        "    def __init__(self):\n        self.items = []\n\n"
        "    def add(self, price):\n        self.items.append(price)\n\n"
        "    def total(self):\n        return rounded(sum(self.items) - 1)\n\n"
        "    def unrelated(self):\n        return None\n"
    ),
    "src/shop/money.py": (
        "def rounded(value):\n    return round(value, 2)\n\n\ndef other():\n    pass\n"
    ),
    "tests/conftest.py": (
        "import pytest\n\nfrom shop import Cart\n\n\n"
        "@pytest.fixture\ndef cart():\n    return Cart()\n"
    ),
    "tests/test_cart.py": (
        "def test_total(cart):\n    cart.add(2)\n    assert cart.total() == 2\n\n\n"
        "def test_empty(cart):\n    assert cart.items == []\n"
    ),
}
PYTEST_LOG = """\
F.                                                                       [100%]
=================================== FAILURES ===================================
__________________________________ test_total __________________________________

cart = <shop.cart.Cart object at 0x7f0000000000>

    def test_total(cart):
        cart.add(2)
>       assert cart.total() == 2
E       assert 1 == 2
E        +  where 1 = total()

tests/test_cart.py:3: AssertionError
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_total - assert 1 == 2
1 failed, 1 passed in 0.01s
"""
RUFF_LOG = """\
src/shop/cart.py:12:16: F821 Undefined name `roundd`
src/shop/money.py:5:5: F841 Local variable `x` is assigned to but never used
Found 2 errors.
"""


def failed(
    command: str, log: str, kind: Kind = Kind.TEST, status: Status = Status.FAILED
) -> GateResult:
    """The result of a gate whose tool printed `log`."""
    output = ToolOutput(command=command, kind=kind, exit_code=1, stdout=log, stderr="")
    return GateResult(
        name=kind.value,
        kind=kind,
        command=command,
        status=status,
        success=False,
        exit_code=1,
        stdout=log,
        diagnostics=diagnose(output).diagnostics,
        log_path="/state/logs/1",
    )


def brief_of(*results: GateResult, files: Mapping[str, str] = PROJECT) -> Brief:
    """A brief about these results in a project of these files."""

    def read(path: str) -> bytes | None:
        return files[path].encode("utf-8", "surrogateescape") if path in files else None

    return Brief(
        validation=Validation(results=results),
        read=read,
        paths=lambda: tuple(files),
        max_attempts=3,
        marker="c0ffee",
    )


def ranked(brief: Brief) -> tuple[Candidate, ...]:
    """The code that the prompt may show, most likely first."""
    project = Project(brief.read, brief.paths)
    return candidates(brief.validation.failures, project, brief.trace, brief.changed)


def ranked_symbols(brief: Brief) -> list[str | None]:
    return [candidate.passage.symbol for candidate in ranked(brief)]
