"""The work tree and git: snapshots, what differs, restoring, facts, the lock; judges nothing.

The user's repository is only read, but for what a restore writes. Every git runs without the
repository's hooks, filters, monitors and network.
"""
