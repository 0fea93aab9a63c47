"""Lines of an output that say nothing of a failure. Pure."""

import re

from atlas_retry.patterns import regex

_RULER = regex(r"^([=_*~-]{3})[=_*~-]{2,}(?:( .*?) ?[=_*~-]{5,})?$", re.MULTILINE)
_DOTS = regex(r"^(\S+\.py )?[.FEsxX]+ *\[ *\d+%\]\n|^[FEsxX]*\.[.FEsxX]{3,}\n", re.MULTILINE)
_WENT_WELL = regex(r"""(?mx)^(?:
      test[ ]\S+(?:[ ]-[ ]should[ ]panic)?[ ]\.\.\.[ ]ok
    | \S+[ ]\([\w.]+\)[ ]\.\.\.[ ]ok
    | (?!.*(?i:fail|error)).*[ ](?:PASSED|Passed)(?:[ ]+\[[^]\n]*\]|[ ]+[\d.]+[ ]?m?s(?:ec)?)?
    | (?:\[gw\d+\][ ].*|[ ]*)(?:PASS|PASSED|Passed)[ ]+\S.*
    | \s*(?:\u2713|\u2714|\u221a|ok[ ]\d+)[ ].*
    | ok[ ]+\t?\S+\t[\d.]+s
    | [ ]*(?:===[ ]RUN|---[ ]PASS:)[ ].*
    | [ ]+(?:Compiling|Downloaded|Fresh)[ ]\S+[ ]v\d.*
    )\n""")
"""A runner's line on one test that passed, and a package manager's on one package."""


def quiet(text: str) -> str:
    """The text without dots of progress, long rulers, and lines that report a success."""
    return _WENT_WELL.sub("", _RULER.sub(r"\1\2", _DOTS.sub("", text)))
