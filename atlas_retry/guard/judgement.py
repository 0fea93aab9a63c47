"""The guard's judgement of an attempt. Values only."""

from collections.abc import Mapping

from msgspec import Struct, field

from atlas_retry.model import (
    Answer,
    AnswerWord,
    Content,
    Contents,
    Held,
    LeftBehind,
    Verdict,
    Violation,
)


class Judgement(Struct, frozen=True, kw_only=True):
    """The answers about one change. All other changes are kept."""

    answers: tuple[Answer, ...] = ()
    """In the order of `AnswerWord`."""
    restore: tuple[str, ...] | None = ()
    """Refused or held paths to restore; None to restore the whole attempt."""
    reinstate: tuple[str, ...] = ()
    """Refused installed files and tools to put back, which no snapshot holds."""
    rewrite: Mapping[str, Content] = field(default_factory=dict)
    """Files without the held part, such as a suppression or a test in a source."""
    as_before: Contents = field(default_factory=dict)
    """Earlier versions that the gates must also pass with: kept files that decide (None: absent),
    and sources with their earlier inline tests."""
    adds_dependencies: bool = False
    """Whether what is reinstated may be what a changed manifest names."""
    ends: Verdict | None = None
    """Verdict that ends the run at once, because the change cannot be restored."""
    remedy: str | None = None
    left: tuple[LeftBehind, ...] = ()
    """Refused changes that cannot be restored."""
    unseen: tuple[str, ...] = ()
    """Ignored files that the turn wrote; the gates must also pass without them."""
    blocks: bool = True
    """False: findings are reported, but nothing is restored."""

    @property
    def refused(self) -> tuple[Violation, ...]:
        return tuple(one for one in self.answers if isinstance(one, Violation))

    @property
    def held(self) -> tuple[Held, ...]:
        return tuple(one for one in self.answers if isinstance(one, Held))

    @property
    def noted(self) -> tuple[Answer, ...]:
        return tuple(one for one in self.answers if one.word is AnswerWord.NOTED)

    @property
    def held_paths(self) -> tuple[str, ...]:
        """Paths of held changes that are restored."""
        return tuple(dict.fromkeys(h.path for h in self.held if not h.in_place))
