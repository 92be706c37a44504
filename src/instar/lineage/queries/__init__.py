"""What the database can be asked: each function takes a connection and returns what JSON can say."""
