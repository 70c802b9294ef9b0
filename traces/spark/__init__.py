"""The only Spark session, the Java that runs it, its tasks and progress."""
