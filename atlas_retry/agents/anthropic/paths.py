"""Which paths the model may name, to read or to write. Pure; follows no link, opens no file."""

from typing import Final

from pathspec import GitIgnoreSpec

_SECRET: Final = GitIgnoreSpec.from_lines(
    (
        ".env",
        ".env.*",
        "!.env.example",
        "!.env.sample",
        "!.env.template",
        ".envrc",
        "*.pem",
        "*.key",
        "*.p12",
        "*.pfx",
        "*.jks",
        "*.keystore",
        "*.kdbx",
        "*.tfstate",
        "*.tfstate.*",
        "id_rsa*",
        "id_dsa*",
        "id_ecdsa*",
        "id_ed25519*",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".htpasswd",
        ".git-credentials",
        ".aws/",
        ".ssh/",
        ".gnupg/",
        ".docker/config.json",
        ".kube/config",
        "credentials.json",
        "service-account*.json",
        "secrets.y*ml",
    )
)
"""Files that hold secrets by their very name."""


def fault_of_name(path: str) -> str | None:
    """Why a path cannot be one of the project; None when it can."""
    parts = path.split("/")
    if not path or not path.isprintable():
        return "is no path of a file"
    if path.startswith(("/", "~")) or "\\" in path or path[1:2] == ":":
        return "has to be relative to the root of the project, with forward slashes"
    if ".." in parts:
        return "leads out of the project: `..` is not allowed"
    if "." in parts or "" in parts:
        return "has to be written without `.`, doubled or trailing slashes"
    # As case-folding and trimming file systems read it.
    if any(part.casefold().rstrip(". ") in (".git", "git~1") for part in parts):
        return "belongs to git"
    return None


def is_secret(path: str) -> bool:
    """Whether a file holds secrets, by its name."""
    return _SECRET.match_file(path)


def protection(globs: tuple[str, ...]) -> GitIgnoreSpec:
    """What the guard protects, as a matcher."""
    return GitIgnoreSpec.from_lines(globs)
