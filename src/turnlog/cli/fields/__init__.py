"""What sessions, spending, files and the like are in JSON: their fields, and the functions that fill them."""
