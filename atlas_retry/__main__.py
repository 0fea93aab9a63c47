"""`python -m atlas_retry`; imports nothing from the current folder."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # Python adds the current folder, which may be an untrusted workspace

from atlas_retry.cli import main

main()
