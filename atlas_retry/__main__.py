"""`python -m atlas_retry`; imports nothing from the folder that it is called in."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # Python's own doing (sys.path): the folder may be a workspace, and untrusted

from atlas_retry.cli import main

main()
