"""Makes paths that a tool printed relative to the workspace. Looks at no file."""

import posixpath

from msgspec.structs import replace

from atlas_retry.diagnostics.failures import inside
from atlas_retry.model import Diagnostic, Frame, Region


def relative(path: str, root: str | None, cwd: str = ".") -> str:
    """The path as seen from the root; one that lies elsewhere stays absolute."""
    plain = path.removeprefix("file://")
    if not plain.startswith("/"):
        joined = posixpath.normpath(posixpath.join(cwd, plain))
        return plain if joined.startswith("../") else joined
    base = root.rstrip("/") + "/" if root else None
    return (
        posixpath.normpath(plain.removeprefix(base)) if base and plain.startswith(base) else plain
    )


def settled(diagnostic: Diagnostic, root: str | None, cwd: str) -> Diagnostic:
    """The diagnostic with paths relative to the root, and without the frames outside of it."""
    if not diagnostic.frames and diagnostic.test_id is None and diagnostic.path:
        plain = relative(diagnostic.path, root, cwd)
        return diagnostic if plain == diagnostic.path else replace(diagnostic, path=plain)
    frames = tuple(
        replace(frame, path=path)
        for frame in diagnostic.frames
        if _belongs(path := relative(frame.path, root, cwd), root)
    )
    test_id = diagnostic.test_id
    if test_id and test_id.startswith("/"):
        test_id = relative(test_id, root, cwd)
    if diagnostic.path is None:
        return replace(diagnostic, frames=frames, test_id=test_id)
    place = relative(diagnostic.path, root, cwd)
    moved = replace(diagnostic, path=place, frames=frames, test_id=test_id)
    return _at(moved, frames[-1]) if frames and not _belongs(place, root) else moved


def _belongs(path: str, root: str | None) -> bool:
    return inside(path) and not (root and path.startswith(("/", "../")))


def _at(diagnostic: Diagnostic, frame: Frame) -> Diagnostic:
    return replace(diagnostic, path=frame.path, region=Region(start_line=frame.line))
