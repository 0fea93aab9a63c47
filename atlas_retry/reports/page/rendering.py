"""HTML from the templates beside this file, which escape everything that is not markup."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from atlas_retry import __version__
from atlas_retry.reports.phrases import plain
from atlas_retry.text.units import counted, seconds, usd


def render(template: str, /, **values: object) -> str:
    """A self-contained page with the style of atlas; its policy allows only that."""
    style = (files(__package__) / "templates" / "page.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        # Output of tools holds what no page may hold; markup was made from what passed here.
        finalize=lambda value: plain(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"seconds": seconds, "usd": usd}
    environment.globals |= {
        "counted": counted,
        "digest": b64encode(sha256(style.encode()).digest()).decode(),
        "style": Markup(style),  # noqa: S704 - our own file
        "version": __version__,
        "bar_width": lambda value, longest: max(round(1000 * value / longest), 4) if longest else 4,
        **values,  # as globals: macros of other templates see them too
    }
    return environment.get_template(template).render()
