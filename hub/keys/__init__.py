"""Keys in files and in the database, and their rotation."""
