"""`python -m atlas_retry`."""

from atlas_retry.cli import main

main()
