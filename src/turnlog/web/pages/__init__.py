"""One file per page: `ROUTES` says under which addresses it answers. A new page is a new file."""
