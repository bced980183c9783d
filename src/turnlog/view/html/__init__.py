"""Rows as HTML, and the page around them."""
