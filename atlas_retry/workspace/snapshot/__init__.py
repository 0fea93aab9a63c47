"""Snapshots of a work tree: take, read, compare and restore them; keep and drop what they need.

From below: `store` is the repository in which git keeps them, and what one holds; `snapshots` takes
them, `trees` reads and compares them, `look` sees what changed between two moments, `restoring` and
`git_state` restore files and git's own state, `pins` holds the objects that git's state names,
`unheld` knows what no snapshot holds.
"""
