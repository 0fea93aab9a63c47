"""The project's paths and sources, and the resolution of imports."""

import heapq
import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import chain, filterfalse, islice

from atlas_retry.patterns import regex
from atlas_retry.prompt.aliases import Aliases, aliased, aliases_of
from atlas_retry.source import Import, Scope, definitions, imports, is_minified, language_of
from atlas_retry.source.languages import MAX_SOURCE_BYTES
from atlas_retry.source.origin import is_generated, is_of_other_system, is_test_path, is_vendored

MAX_READS = 4_000
"""Maximum of files read for one prompt."""
MAX_SEARCHED = 1_000
"""Maximum of files searched for words."""

_SCRIPT_SUFFIXES = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".d.ts")
_SCRIPTS = frozenset({"javascript", "typescript", "tsx"})
PACKAGE_LANGUAGES = frozenset({"go", "java", "c", "cpp", "rust", "ruby", "php"})
"""Languages in which files of one folder see each other."""
_CRATE = regex(r'^\s*name\s*=\s*"([\w-]+)"', re.MULTILINE)
_GO_MODULE = regex(r"^module\s+(\S+)", re.MULTILINE)
_TESTING = regex(r"^test_|[._-](?:test|spec)s?(?=\.)|Tests?(?=\.)")
"""What the name of a file of tests has beside that of what it tests."""
_C_LIKE = frozenset({"c", "cpp"})
_C_SUFFIXES = (".h", ".hpp", ".c", ".cc", ".cpp", ".cxx")


class Project:
    """The project's files, each read at most once."""

    def __init__(
        self, read: Callable[[str], bytes | None], paths: Callable[[], Iterable[str]]
    ) -> None:
        self._read = read
        self._list = paths
        self._sources: dict[str, bytes | None] = {}
        self.definitions = lru_cache(maxsize=None)(self._definitions)
        self.imports = lru_cache(maxsize=None)(self._imports)
        self._lines = lru_cache(maxsize=None)(self._split)
        self._all_ending = lru_cache(maxsize=None)(self._find_ending)
        self.is_own = lru_cache(maxsize=None)(self._is_own)

    @cached_property
    def paths(self) -> frozenset[str]:
        return frozenset(self._list())

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        return self._paths_by(lambda path: path.rpartition("/")[2])

    @cached_property
    def _by_folder(self) -> dict[str, list[str]]:
        return self._paths_by(lambda path: path.rpartition("/")[0])

    def _paths_by(self, key: Callable[[str], str]) -> dict[str, list[str]]:
        paths: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self.paths):
            paths[key(path)].append(path)
        return paths

    @cached_property
    def _crates(self) -> dict[str, list[str]]:
        """Sources of each Rust package of the project, by its name in `use`."""
        sources_by_crate: dict[str, list[str]] = {}
        for manifest in self._by_name.get("Cargo.toml", ()):
            named = _CRATE.search(self.text(manifest))
            folder = posixpath.join(posixpath.dirname(manifest), "src")
            inside = [path for path in self._by_folder.get(folder, ()) if path.endswith(".rs")]
            if named:
                first = posixpath.join(folder, "lib.rs")
                sources_by_crate[named[1].replace("-", "_")] = sorted(
                    inside, key=lambda path: path != first
                )
        return sources_by_crate

    @cached_property
    def _aliases(self) -> Aliases:
        """Aliases of every package.json and tsconfig.json of the project."""
        names = ("package.json", "tsconfig.json", "tsconfig.base.json", "jsconfig.json")
        manifests = chain.from_iterable(self._by_name.get(name, ()) for name in names)
        return aliases_of((path, self.source(path) or b"") for path in manifests)

    @cached_property
    def _go_modules(self) -> dict[str, str]:
        """Import path of each folder with a go.mod."""
        modules_by_folder: dict[str, str] = {}
        for manifest in self._by_name.get("go.mod", ()):
            named = _GO_MODULE.search(self.text(manifest))
            if named:
                modules_by_folder[posixpath.dirname(manifest)] = named[1]
        return modules_by_folder

    def source(self, path: str) -> bytes | None:
        """Content; None if it is missing, huge, binary or above the maximum of files."""
        if path not in self._sources:
            if len(self._sources) >= MAX_READS:
                return None
            content = self._read(path)
            usable = content is not None and len(content) <= MAX_SOURCE_BYTES
            self._sources[path] = content if usable and b"\0" not in (content or b"") else None
        return self._sources[path]

    def _split(self, path: str) -> list[bytes]:
        return (self.source(path) or b"").splitlines()

    def text(self, path: str, start: int = 1, end: int | None = None) -> str:
        """Lines of a file, 1-based and inclusive."""
        return b"\n".join(self._lines(path)[start - 1 : end]).decode("utf-8", "replace")

    def speaking_of(
        self, words: Collection[str], language: str, near: Iterable[str], limit: int
    ) -> tuple[str, ...]:
        """The sources with most of the rarest of these words, of those nearest to some files.

        Near is what shares names of folders, as `tests/parsing` does with `src/parsing`.
        """
        known = frozenset(chain.from_iterable(posixpath.dirname(one).split("/") for one in near))
        folders = sorted(self._by_folder, key=lambda one: -len(known.intersection(one.split("/"))))
        paths = chain.from_iterable(self._by_folder[folder] for folder in folders)
        files = (path for path in paths if language_of(path) == language)
        nearest = islice(filterfalse(is_test_path, files), MAX_SEARCHED)
        sources = {path: self.source(path) or b"" for path in nearest}
        scores: dict[str, float] = defaultdict(float)
        for word in words:
            sought = word.encode()
            having = [path for path, text in sources.items() if sought in text]
            weight = math.log((1 + len(sources)) / (1 + len(having)))
            for path in having:
                scores[path] += weight
        return tuple(heapq.nlargest(limit, scores, key=lambda path: scores[path]))

    def _is_own(self, path: str) -> bool:
        """Whether people here edit the file, and it is of this system."""
        is_aside = is_vendored(path) or is_of_other_system(path, self.paths)
        return not (is_aside or is_generated(self.source(path) or b""))

    def _definitions(self, path: str) -> tuple[Scope, ...]:
        source = self.source(path)
        return definitions(path, source) if source and not is_minified(source) else ()

    def _imports(self, path: str) -> tuple[Import, ...]:
        source = self.source(path)
        return imports(path, source) if source is not None else ()

    def test_file_of(self, folder: str, name: str) -> str | None:
        """The file of tests in a folder that defines this one."""
        files = self._by_folder.get("" if folder == "." else folder, ())
        for path in filter(is_test_path, files):
            if any(scope.name == name for scope in self.definitions(path)):
                return path
        return None

    def tested_by(self, path: str) -> list[str]:
        """Sources that are named like a file of tests: `cart` for `test_cart`."""
        name = _TESTING.sub("", posixpath.basename(path))
        return [other for other in self._by_name.get(name, ()) if not is_test_path(other)]

    def siblings(self, path: str) -> list[str]:
        """Files of the same folder and language: one package in Go, Java and C.

        Java's tests are in the package that they test, but in another tree.
        """
        language = language_of(path)
        folder = posixpath.dirname(path)
        folders = dict.fromkeys((folder, folder.replace("src/test/", "src/main/", 1)))
        files = chain.from_iterable(self._by_folder.get(one, ()) for one in folders)
        others = (file for file in files if file != path)
        return [other for other in others if language_of(other) == language]

    def neighbours(self, path: str) -> Iterator[str]:
        """Files visible from one, by its imports, or by its folder if that is a package."""
        for wanted in self.imports(path):
            yield from self.resolve(path, wanted)
        language = language_of(path)
        is_own_crate = language == "rust" and is_test_path(path)
        if language in PACKAGE_LANGUAGES and not is_own_crate:
            yield from self.siblings(path)

    def resolve(self, path: str, wanted: Import) -> tuple[str, ...]:
        """Files of the project that an import in `path` may mean, most likely first."""
        language = language_of(path)
        if language == "python":
            return tuple(self._python(path, wanted.module, wanted.name))
        if language in _SCRIPTS:
            return tuple(self._script(path, wanted.module))
        if language == "go":
            return tuple(self._go_package(wanted.module))
        return tuple(self._parts(path, wanted))

    def _python(self, path: str, module: str, name: str | None) -> Iterator[str]:
        bare = module.lstrip(".")
        tail = [step for step in bare.split(".") if step]
        level = len(module) - len(bare)
        base: str | None = None
        if level:
            base = path
            for _ in range(level):
                base = posixpath.dirname(base)
        if name and name != "*":
            yield from self._module(path, base, [*tail, name])
        yield from self._module(path, base, tail)

    def _module(self, path: str, base: str | None, parts: list[str]) -> Iterator[str]:
        if base is not None:
            stem = posixpath.join(base, *parts)
            for candidate in (f"{stem}.py", f"{stem}/__init__.py", f"{stem}.pyi"):
                if candidate in self.paths:
                    yield candidate
        elif parts:
            stem = "/".join(parts)
            yield from self._ending(path, f"{stem}.py")
            yield from self._ending(path, f"{stem}/__init__.py")

    def _ending(self, path: str, tail: str) -> list[str]:
        """Paths that end with the components `tail`, those nearest to `path` first."""

        def distance(other: str) -> tuple[int, int, str]:
            shared = posixpath.commonpath([path, other]).split("/") if path else ()
            return -len(shared), other.count("/"), other

        return sorted(self._all_ending(tail), key=distance)

    def _find_ending(self, tail: str) -> tuple[str, ...]:
        paths = self._by_name.get(posixpath.basename(tail), ())
        return tuple(path for path in paths if f"/{path}".endswith(f"/{tail}"))

    def _script(self, path: str, module: str) -> Iterator[str]:
        if module.startswith("."):
            near = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
            yield from filter(self.paths.__contains__, _script_files(near))
            return
        for stem in (*aliased(module, self._aliases), module):
            yield from filter(self.paths.__contains__, _script_files(stem))
        if "/" in module:
            for tail in _script_files(module.lstrip("@~#/")):
                yield from self._ending(path, tail)

    def _go_package(self, module: str) -> Iterator[str]:
        """The files of a package's folder, below the folder of its module."""
        for root, name in self._go_modules.items():
            if f"{module}/".startswith(f"{name}/"):
                folder = posixpath.join(root, module[len(name) + 1 :]).rstrip("/")
                files = self._by_folder.get(folder, ())
                yield from (one for one in files if one.endswith(".go"))

    def _parts(self, path: str, wanted: Import) -> Iterator[str]:
        """For Rust, Java, C, Ruby, PHP, shell: files with the longest tail of the path."""
        suffix = posixpath.splitext(path)[1]
        suffixes = _C_SUFFIXES if language_of(path) in _C_LIKE else (suffix,)
        if suffix == ".rs":
            yield from self._crates.get(wanted.module.partition("::")[0], ())
        whole = wanted.module.replace("::", "/").replace("\\", "/")
        if suffix == ".java":
            whole = whole.replace(".", "/")
        parts = [step for step in whole.split("/") if step not in ("crate", "self", ".", "..", "")]
        named = [*parts, wanted.name] if wanted.name not in (None, "*") else parts
        for tail in (named, parts, parts[-1:]):
            stem = posixpath.splitext("/".join(str(step) for step in tail))[0]
            for end in (*suffixes, f"/mod{suffix}") if stem else ():
                yield from self._ending(path, f"{stem}{end}")


def _script_files(stem: str) -> Iterator[str]:
    """Files that an import without suffix may mean."""
    yield stem
    bare = stem.removesuffix(".js").removesuffix(".mjs")
    yield from (f"{bare}{end}" for end in _SCRIPT_SUFFIXES)
    yield from (f"{stem}/index{end}" for end in _SCRIPT_SUFFIXES)
