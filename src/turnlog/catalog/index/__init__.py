"""Where the catalog keeps what it read."""
