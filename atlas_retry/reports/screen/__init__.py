"""Events and results on a terminal or in a pipe, as styled lines."""
