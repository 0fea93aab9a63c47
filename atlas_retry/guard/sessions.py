"""Rule on files that are nothing but commands of checks: nox, Rake, Gradle. Runs nothing."""

import re
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Finding, Scene
from atlas_retry.guard.scripts import lines_kept

_RUNNERS = re.compile(
    r"(^|/)(noxfile|tasks|dodo|fabfile|setup|build)\.py$|(^|/)Rakefile$|\.gradle(\.kts)?$"
)


def runners(scene: Scene) -> Iterator[Finding]:
    """Files like noxfile.py that are nothing but commands of checks."""
    for delta in scene.files:
        if not _RUNNERS.search(delta.path) or places.name(delta.path) == "setup.py":
            continue
        if not delta.is_added:
            yield from lines_kept(delta, _sessions(delta.old_text), _sessions(delta.new_text))


_VERSION = re.compile(r"(?<=[\w-]):\d[\w.-]*(?=[\"'])")
"""Of a dependency of Gradle: that a tool's does not fall is looked at elsewhere."""

_TASK = re.compile(
    r"^tasks\.(named(<Test>)?\([\"']test[\"'](, Test)?\)|withType(<Test>)?\((Test)?\)"
    r"(\.configureEach)?|test) \{$"
)
"""Ways to speak of Gradle's task of tests."""


def _sessions(text: str) -> list[tuple[int, str]]:
    """Numbered lines that run or decide something."""
    wanted = re.compile(
        r"\.run|\.install\(|sessions?\b|return|\bskip|success_codes|test|check|exclude|raise"
        r"|[Ii]gnore|enabled|onlyIf|use(JUnit|TestNG)"
    )
    return [
        (number, _TASK.sub("test {", _VERSION.sub("", " ".join(line.split()).rstrip(","))))
        for number, line in enumerate(text.splitlines(), 1)
        if wanted.search(line) and not line.strip().startswith(("#", "//", '"""'))
    ]
