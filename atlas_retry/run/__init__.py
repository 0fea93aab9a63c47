"""One run and several: validate, fix, ask, judge, decide. `many` -> `one` -> `loop` -> `decide`."""
