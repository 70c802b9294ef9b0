"""The Spark session, its Java, tasks and progress."""
