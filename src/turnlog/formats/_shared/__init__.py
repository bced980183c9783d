"""What formats share: finding sessions, keys, growth, and what every writer counts as lost."""
