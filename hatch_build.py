"""What a package index shows: where the project lives, and a README whose links are whole.

The address is that of the repository which builds the release, from the environment: PROJECT_URL.
Without it nothing is claimed, and the links stay as they are in a checkout.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?P<image>!?)(?P<text>\[[^\]]*\])\((?!https?:|#)(?P<target>[^)\s]+)\)")
PAGES = {
    "Documentation": "/blob/{tag}/docs/how-to.md",
    "Changelog": "/blob/{tag}/CHANGELOG.md",
    "Issues": "/issues",
    "Source": "",
}


class Home(MetadataHookInterface):
    """Fills in the URLs and the README."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Links lead to the release's own tag: what they show stays what was released."""
        home = os.environ.get("PROJECT_URL", "").rstrip("/")
        tag = f"v{metadata['version']}"
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        if home:
            text = LINK.sub(lambda link: _whole(link, home, tag), text)
            metadata["urls"] = {name: home + page.format(tag=tag) for name, page in PAGES.items()}
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def _whole(link: re.Match[str], home: str, tag: str) -> str:
    view = "raw" if link["image"] else "blob"
    return f"{link['image']}{link['text']}({home}/{view}/{tag}/{link['target']})"
