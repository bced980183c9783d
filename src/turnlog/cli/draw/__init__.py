"""What people see: tables, cells, colours, sessions on a terminal."""
