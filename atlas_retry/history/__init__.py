"""The memory of runs: a journal of what happens, what it teaches, and what was there before.

An observer writes it as events come; nothing here runs a gate or asks an agent.
"""
