"""The memory of runs: a journal of events, learning records, and snapshots to restore.

Observers write it as events come; nothing here runs a gate or starts an agent.
"""
