"""Work beside the workspace: overlays at its path, whole runs in layers, gates with other files."""
