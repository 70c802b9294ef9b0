"""The stream outside the process and the way in: sources, Spark, the trace store, artefacts."""
