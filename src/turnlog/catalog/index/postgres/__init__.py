"""The index of our own sessions in a database, in tables beside them: one for all machines."""
