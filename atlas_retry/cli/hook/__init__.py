"""The hooks of Claude Code: what is there at each prompt, gates and guard at the end of every turn.

Infrastructure trouble never blocks a turn: what cannot be judged is reported. Its modules are
imported one by one: a prompt waits for what `beginning` needs, and for nothing else.
"""
