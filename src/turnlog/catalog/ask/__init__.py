"""The queries of the catalog: search, listings, sums."""
