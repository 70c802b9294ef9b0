"""Input and output: sources, Spark, the trace store, artefacts."""
