"""Benchmarks. Not part of the package; run from the checkout root."""
