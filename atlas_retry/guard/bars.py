"""Bars that are written as code, and what launches a build: SimpleCov, Gradle, Maven's options."""

import re
from collections.abc import Iterator

from atlas_retry.guard.case import Delta, Finding, Scene

_CODE = re.compile(r"\.gradle(\.kts)?$|\.rb$|(^|/)(\.simplecov|Rakefile)$")
_BAR = re.compile(
    r"\b(?P<name>minimum_coverage(?:_by_\w+)?|maximum_coverage_drop|minimum|maximum|minBound|maxBound"
    r"|minValue|maxValue|maxWarnings|maxErrors|maxViolations)"
    r"(?:\.set)?\b\s*[=:(]*\s*\{?\s*(?P<said>(?:(?::?\w+\s*(?:=>|:)\s*)?[\"']?\d[\d._]*[\"']?\s*,?\s*)+)"
)
_LAUNCH = re.compile(
    r"(^|/)(\.mvn/(maven|jvm)\.config|\.mavenrc|gradle\.properties|\.npmrc|\.yarnrc(\.yml)?"
    r"|\.cargo/config(\.toml)?)$"
)
_HUSHES = re.compile(
    r"-D(skip(Unit|I)?Tests?|maven\.test\.(skip|failure\.ignore))(?!=false)\S*|-DskipITs\b"
    r"|(?<!\S)(-fn|--fail-never)(?!\S)|(skipTests?|ignoreFailures|org\.gradle\.continue)\s*=\s*true"
    r"|-D(surefire|checkstyle|spotbugs|pmd|jacoco)\.(skip|test)\S*|cap-lints|(?<![\w-])-A\s?\w[\w:]+"
    r"|\brunner\s*=|script-shell|-(da|disableassertions)(?!\S)"
)
_GRADLE = re.compile(
    r"\bsetIgnoreFailures\s*\(?\s*true|\bignoreFailures\.set\(true|\bexcludeT(ags|ask)\b"
    r"|\bexclude\s*\(?\s*[\"'](?!META-INF|LICENSE|module-info)|\bexcludeCategories\b"
    r"|\b(failOnNoDiscoveredTests|failOnNoMatchingTests|failOnViolation|enableAssertions|haltOnFailure"
    r"|failFast\w*OnError|abortOnError|checkReleaseBuilds)\s*(=|\.set\()?\s*false"
    r"|\bmaxRetries\s*(=|\.set\()?\s*[1-9]|[\"']-(da|disableassertions)[\"']"
)


def lowered(scene: Scene) -> Iterator[Finding]:
    """Bars that fell or went, and options of a build by which failures no longer count."""
    for delta in scene.files:
        if _CODE.search(delta.path) and delta.before is not None:
            yield from _fallen(delta)
        if delta.path.endswith((".gradle", ".gradle.kts")) and delta.before is not None:
            yield from _came(delta, _GRADLE)
        if _LAUNCH.search(delta.path):
            yield from _came(delta, _HUSHES)


def _fallen(delta: Delta) -> Iterator[Finding]:
    new = _bars(delta.new_text)
    for name, had in _bars(delta.old_text).items():
        has = new.get(name, [])
        is_limit = name.startswith("max")
        kept = len(has) >= len(had) and all(
            now <= was if is_limit else now >= was for was, now in zip(had, has, strict=False)
        )
        if not kept:
            word = name.partition(" ")[0]
            lines = enumerate(delta.new_text.splitlines(), 1)
            line = next((number for number, text in lines if word in text), 1)
            detail = f"{name}: {_shown(had)} became {_shown(has)}"
            yield Finding(path=delta.path, line=line, detail=detail)


def _shown(numbers: list[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers) or "unset"


def _bars(text: str) -> dict[str, list[float]]:
    """Numbers by the name of their bar and of what they are about, in the order of the text."""
    found: dict[str, list[float]] = {}
    bare = re.sub(r"(?m)(^|\s)(#|//).*$", "", text)
    for match in _BAR.finditer(bare):
        for about, number in re.findall(
            r"(?::?(\w+)\s*(?:=>|:)\s*)?[\"']?(\d+(?:\.\d+)?)", match["said"]
        ):
            found.setdefault(f"{match['name']} {about}".strip(), []).append(float(number))
    return found


def _came(delta: Delta, hushes: re.Pattern[str]) -> Iterator[Finding]:
    there = {" ".join(line.split()) for line in delta.old_text.splitlines()}
    for number, line in enumerate(delta.new_text.splitlines(), 1):
        said = re.sub(r"(^|\s)(#|//).*$", "", line)
        found = hushes.search(said)
        if found and " ".join(line.split()) not in there:
            detail = f"hides a failure: `{' '.join(found[0].split())[:80]}`"
            yield Finding(path=delta.path, line=number, detail=detail)
