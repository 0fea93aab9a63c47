"""What the guard answers about an attempt: kept, held, refused or noted. Values only."""

from collections.abc import Mapping

from msgspec import Struct, field

from atlas_retry.model import Held, LeftBehind, Verdict, Violation

Content = tuple[str, bytes]
"""Mode, as git writes it, and bytes of a file."""


class Judgement(Struct, frozen=True, kw_only=True):
    """The answers about one change. What is in none of them is kept without a word."""

    refused: tuple[Violation, ...] = ()
    held: tuple[Held, ...] = ()
    noted: tuple[Violation, ...] = ()
    restore: tuple[str, ...] | None = ()
    """Paths to restore, of what is refused or held; None: the whole attempt has to go."""
    rewrite: Mapping[str, Content] = field(default_factory=dict)
    """What is left of files of which only a part is held: a suppression, a test in a source."""
    as_before: Mapping[str, Content | None] = field(default_factory=dict)
    """What the tests have to pass with as well: files that decide and were kept, as they were
    (None: absent), and sources with their earlier inline tests."""
    ends: Verdict | None = None
    """Ends the run at once: what was changed cannot be restored."""
    remedy: str | None = None
    left: tuple[LeftBehind, ...] = ()
    """Of what is refused, what cannot be restored."""
    unseen: tuple[str, ...] = ()
    """What the turn wrote where git does not look: a green is confirmed without it."""
    blocks: bool = True
    """False: everything is reported, nothing is restored."""

    @property
    def held_paths(self) -> tuple[str, ...]:
        """Paths that are restored although nobody did wrong."""
        return tuple(dict.fromkeys(h.path for h in self.held if not h.in_place))
