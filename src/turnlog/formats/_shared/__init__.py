"""What formats share: lines and documents of JSON, keys, growth, and what every writer counts as lost."""
