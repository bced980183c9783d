"""Open tool calls: which there are, and the questions, answers and starts that are recorded before a result."""
