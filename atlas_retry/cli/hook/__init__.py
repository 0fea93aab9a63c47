"""The hooks of Claude Code: a snapshot at each prompt, gates and guard at the end of every turn.

Problems of atlas itself never block a turn; they are reported. Import the modules one by one:
a prompt waits for the imports of `beginning`.
"""
