"""The work tree and git: snapshots, differences, restoring, facts, the lock; judges nothing.

The user's repository is only read, except when it is restored. Git always runs without the
repository's hooks, filters and monitors, and without network.
"""
