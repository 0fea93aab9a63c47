"""Rows of the tools that check Python. A format is a row; what does not fit one has a module."""

from atlas_retry.diagnostics.table import LineFormat

_PY = r"(?P<path>[^\s:][^:]{0,400}\.(?:pyi?|ipynb)(?::cell \d+)?)"
_AT = r":(?P<line>\d+):(?P<column>\d+)"
_RUFF_CODE = r"(?P<rule>[A-Z]{1,10}\d{1,5}|invalid-syntax|io-error)"
# https://docs.astral.sh/ruff/settings/#output-format

RUFF = LineFormat(
    name="ruff",
    pattern=rf"{_RUFF_CODE}:? (?:\[\*\] )?(?P<message>\S.*)$",
    more=rf" *--> {_PY}{_AT}$|\s*\d* (?:\||[-+](?: |$))|(?:help|info|note): ",
    marks=("--> ",),
)
RUFF_CONCISE = LineFormat(
    name="ruff-concise",
    tool="ruff",
    commands=("ruff", "ruff check"),
    pattern=rf"{_PY}{_AT}: {_RUFF_CODE}:? (?:\[\*\] )?(?P<message>.+)$",
    marks=(" [*] ", " fixable with the `--fix`", " hidden fixes can be enabled"),
)
RUFF_FORMAT = LineFormat(
    name="ruff-format",
    # https://docs.astral.sh/ruff/formatter/
    commands=("ruff format",),
    pattern=r"(?P<rule>unformatted|invalid-syntax): (?P<message>\S.*)$",
    more=RUFF.more,
    marks=("\nunformatted: ",),
)
RUFF_FORMAT_LIST = LineFormat(
    name="ruff-format-list",
    tool="ruff-format",
    # https://docs.astral.sh/ruff/formatter/
    commands=("ruff format",),
    pattern=r"Would reformat: (?P<path>\S.*)$",
    message="File would be reformatted",
    rule="unformatted",
    marks=("Would reformat: ",),
)
BLACK = LineFormat(
    name="black",
    # https://black.readthedocs.io/en/stable/usage_and_configuration/the_basics.html
    pattern=(
        r"(?:would reformat|error: cannot (?:parse|format)):? "
        rf"(?P<path>[^\s:][^:]{{0,400}})(?:{_AT})?(?:: (?P<message>.+))?$"
    ),
    more=r"(?P<message>ParseError: .+)| {4}.*\S",
    message="file would be reformatted",
    zero_based=True,
    marks=("would reformat ", "error: cannot parse: ", "error: cannot format "),
)
ISORT = LineFormat(
    name="isort",
    # https://pycqa.github.io/isort/
    pattern=rf"ERROR: {_PY} (?P<message>Imports are incorrectly .+)$",
    rule="unsorted-imports",
    marks=("Imports are incorrectly sorted",),
)
FLAKE8 = LineFormat(
    name="flake8",
    # https://flake8.pycqa.org/en/latest/internal/formatters.html
    commands=("flake8", "pycodestyle", "pyflakes"),
    pattern=rf"{_PY}{_AT}: (?P<rule>[A-Z]{{1,3}}\d{{1,4}}) (?P<message>.+)$",
    more=r"\s*\^\s*$",
    marks=(".py:",),
)
PYLINT = LineFormat(
    name="pylint",
    # https://pylint.readthedocs.io/en/stable/user_guide/usage/output.html
    pattern=rf"{_PY}{_AT}: (?P<level>[CRWEFI])\d{{4}}: (?P<message>.+) \((?P<rule>[a-z0-9-]+)\)$",
    zero_based=True,
    marks=("************* Module ",),
)
MYPY = LineFormat(
    name="mypy",
    # https://mypy.readthedocs.io/en/stable/error_codes.html
    commands=("mypy", "dmypy", "-m mypy"),
    pattern=(
        rf"{_PY}(?::(?P<line>\d+)(?::(?P<column>\d+)(?::(?P<end_line>\d+):(?P<end_column>\d+))?)?)?"
        r": error: (?P<message>.+?)(?: +\[(?P<rule>[a-z0-9-]+)\])?\s*$"
    ),
    more=(
        r"[^\s:][^:]*\.pyi?:\d+(?::\d+){0,3}: note: (?P<message>.+)$"
        r"|(?P<rest>(?!Found )[^:]*) *\[(?P<rule>[a-z0-9-]+)\]$| {4,}\S"
    ),
    marks=(": error: ",),
)
PYRIGHT = LineFormat(
    name="pyright",
    # https://microsoft.github.io/pyright/#/command-line
    commands=("pyright", "basedpyright"),
    pattern=rf" *{_PY}{_AT} - (?P<level>\w+): (?P<message>.+?)(?: \((?P<rule>report\w+)\))?$",
    more=r"\s{4,}(?P<message>\S.*?)(?: \((?P<rule>report\w+)\))?$",
    marks=(" - error: ",),
)
BANDIT = LineFormat(
    name="bandit",
    # https://bandit.readthedocs.io/en/latest/formatters/text.html
    pattern=r">> Issue: \[(?P<rule>B\d+):\w+\] (?P<message>.+)$",
    more=(
        r"   Severity: (?P<level>\w+)|   Location: (?P<path>[^:]+):(?P<line>\d+):(?P<column>\d+)$"
        r"|   (?:CWE|More Info): |\d+\t"
    ),
    zero_based=True,
    marks=(">> Issue: [B",),
)

ROWS = (
    RUFF_FORMAT,
    RUFF_FORMAT_LIST,
    RUFF,
    RUFF_CONCISE,
    BLACK,
    ISORT,
    PYLINT,
    MYPY,
    PYRIGHT,
    BANDIT,
    FLAKE8,
)
