"""What the systems do: no files, no Spark, no terminal; time and chance are arguments."""
