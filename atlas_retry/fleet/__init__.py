"""Many repositories over many machines, on Temporal: which machine does what, and one budget.

Temporal distributes the runs; the journal on each machine stays what makes one run exact.
"""
