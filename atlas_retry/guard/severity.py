"""How much a rule of ESLint or a lint of Rust counts, with its options. Reads no file."""

WARN, ERROR = 1, 2


def as_severe(before: object, after: object, *, fresh: int) -> bool:
    """Whether a rule counts as much as before; a new one has to count at least `fresh`."""
    if after is None:
        return _severity(before) == 0
    return _severity(after) >= (fresh if before is None else _severity(before))


def _severity(value: object) -> int:
    """Of a rule of ESLint or a lint of Rust: off, warn, error."""
    first = value[0] if isinstance(value, tuple) and value else value
    levels = {
        "off": 0,
        "allow": 0,
        "0": 0,
        "warn": 1,
        "1": 1,
        "error": 2,
        "2": 2,
        "deny": 2,
        "forbid": 2,
    }
    return levels.get(str(first).strip("'\""), 1)


def options_as_strict(before: object, after: object) -> bool:
    """Whether the options beside a severity allow no more: no word gone, no limit raised."""
    old, new = _options(before), _options(after)
    if not old or not new:
        return True
    pairs = zip(_limits(old), _limits(new), strict=False)
    return _words(old) <= _words(new) and all(now <= was for was, now in pairs)


def _options(value: object) -> tuple[str, ...]:
    return tuple(map(str, value[1:])) if isinstance(value, tuple) else ()


def _limits(options: tuple[str, ...]) -> list[float]:
    return [float(text) for text in options if text.isdigit()]


def _words(options: tuple[str, ...]) -> frozenset[str]:
    return frozenset(text.strip("'\"`") for text in options if not text.isdigit())
