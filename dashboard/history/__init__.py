"""What Spark computed, by range and step, and questions in SQL."""
