"""The disk space of a home: what of it is needed, and what is given up."""
