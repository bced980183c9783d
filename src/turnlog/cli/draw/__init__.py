"""What people see: tables, text, colours, sessions on a terminal."""
