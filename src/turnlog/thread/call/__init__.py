"""Tool calls that are open: which they are, and what is said of them before they have a result."""
