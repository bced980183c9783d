"""`python -m turnlog` is `turnlog`."""

from turnlog.cli import main

main()
