"""What the commands need of Spark: queries in SQL, files of other formats, and how far a job has come."""
