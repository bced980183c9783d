"""A session as a document, or as spans."""
