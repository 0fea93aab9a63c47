"""The configuration that a change is judged by: that of its base, never the changed one."""

from collections.abc import Mapping

from msgspec.structs import replace

from atlas_retry import config
from atlas_retry.guard.judge import ChangeAsked, base_tree

NAMES = (".atlas/config.yaml", "atlas.yaml")


def with_base_configuration(asked: ChangeAsked, environ: Mapping[str, str]) -> ChangeAsked:
    """The same with the base's gates and `guard` section, unless gates are known already.

    Raises ConfigError for a configuration that cannot be used, GitError for an unknown revision.
    """
    if asked.gates or asked.failing:
        return asked
    tree = base_tree(asked, environ)
    for name in NAMES:
        if (content := tree.read(name)) is not None:
            settings = config.load_text(content, f"{asked.base}:{name}")
            allow = (*settings.guard.allow, *asked.allow)
            return replace(asked, gates=settings.gates, allow=allow, protect=settings.guard.protect)
    return asked
