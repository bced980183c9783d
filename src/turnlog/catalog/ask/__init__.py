"""What answers: queries, search, listing, sums."""
