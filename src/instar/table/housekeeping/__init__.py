"""What keeps a table in order behind the backs of its readers and writers."""
