"""Reads the files of CI into jobs of ordered lines, as a push or a pull request has them. Pure."""
