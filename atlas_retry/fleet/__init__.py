"""Many repositories on many machines, by Temporal: distribution of the runs, and one budget.

Temporal distributes the runs; the journal on each machine remains the record of each run.
"""
