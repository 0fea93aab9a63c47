"""Versions of test tools and plugins that builds pin: none goes back. Reads no file itself."""

import re
from collections.abc import Callable, Iterator, Mapping

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding
from atlas_retry.guard.documents import flat, parse

_TOOLS = re.compile(
    r"surefire|failsafe|junit|jupiter|vintage|testng|mockito|mockk|assertj|hamcrest|truth|jqwik"
    r"|kotest|spock|scalatest|checkstyle|pmd|spotbugs|findbugs|findsecbugs|error_?prone|nullaway"
    r"|jacoco|kover|cobertura|detekt|ktlint|spotless|pitest|archunit|enforcer|sonar|animal-sniffer"
    r"|\b(pytest|ruff|mypy|flake8|pylint|coverage|tox|nox|bandit|pyright|hypothesis)\b",
    re.IGNORECASE,
)
_ELEMENT = re.compile(r"<(plugin|dependency|extension|path)>(.*?)</\1>", re.DOTALL)
_OWN = re.compile(r"<(executions|configuration|dependencies|exclusions)>.*?</\1>", re.DOTALL)
_PROPERTY = re.compile(r"<([\w.-]*[vV]ersion[\w.-]*|[\w.-]+)>\s*(\d[\w.-]*)\s*</\1>")
_GRADLE = (
    re.compile(r"[\"']([\w.-]+:[\w.-]+):(\d[\w.-]*)[\"']"),
    re.compile(r"module\s*=\s*\"([^\"]+)\",\s*version\s*=\s*\"(\d[\w.-]*)\""),
    re.compile(r"\bid[ (]+[\"']([\w.-]+)[\"']\)?\s+version[ (]+[\"'](\d[\w.-]*)[\"']"),
    re.compile(r"\b([\w.-]*[vV]ersion)\s*=\s*[\"'](\d[\w.-]*)[\"']"),
    re.compile(r"^([\w-]+)\s*=\s*[\"'](\d[\w.-]*)[\"']", re.MULTILINE),
)


def held_back(delta: Delta) -> Iterator[Finding]:
    """Test tools of Maven, Gradle and Poetry in a lower version than before."""
    versions = _reader(delta.path)
    if versions is None or delta.is_added or delta.is_deleted:
        return
    old, new = versions(delta.path, delta.old_text), versions(delta.path, delta.new_text)
    for name, version in new.items():
        if _TOOLS.search(name) and is_older(version, old.get(name, "")):
            detail = f"{name} went back from {old[name]} to {version}"
            yield Finding(path=delta.path, line=_line(delta, version), detail=detail)


def _reader(path: str) -> Callable[[str, str], Mapping[str, str]] | None:
    name = places.name(path)
    if name == "pom.xml":
        return _maven
    if re.search(r"\.gradle(\.kts)?$|\.versions\.toml$|^gradle\.properties$", name):
        return _gradle
    return _poetry if name == "pyproject.toml" else None


def is_older(new: str, old: str) -> bool:
    """Whether a version, or the least a range allows, is lower.."""
    return len(_numbers(new)) > 0 and _numbers(new) < _numbers(old)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def _maven(_path: str, text: str) -> Mapping[str, str]:
    bare = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    found = dict(_PROPERTY.findall(bare))
    for _, inner in _ELEMENT.findall(bare):
        own = dict(re.findall(r"<(artifactId|version)>\s*([^<\s]+)\s*<", _OWN.sub("", inner)))
        if {"artifactId", "version"} <= own.keys():
            found[own["artifactId"]] = own["version"]
    return found


def _gradle(path: str, text: str) -> Mapping[str, str]:
    if path.endswith(".properties"):
        return dict(re.findall(r"^([\w.-]+)\s*=\s*(\d[\w.-]*)\s*$", text, re.MULTILINE))
    bare = re.sub(r"(?m)^\s*(//|#).*$", "", text)
    found = {name: version for said in _GRADLE for name, version in said.findall(bare)}
    block = re.findall(r"\b(\w+)\s*\{[^{}]*\btoolVersion\s*=\s*[\"']([\w.-]+)", bare)
    return {**found, **dict(block)}


def _poetry(path: str, text: str) -> Mapping[str, str]:
    leaves = flat(parse(path, text.encode("utf-8", "surrogateescape")))
    return {
        part: str(value)
        for key, value in leaves.items()
        if key[:2] == ("tool", "poetry") and key[-1] != "python"
        for place, part in enumerate(key)
        if place and key[place - 1].endswith("dependencies") and key[-1] in (part, "version")
    }


def _line(delta: Delta, version: str) -> int:
    old = delta.old_text.splitlines()
    lines = enumerate(delta.new_text.splitlines(), 1)
    return next((n for n, line in lines if version in line and line not in old), 1)
