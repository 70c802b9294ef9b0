"""Reports on artefacts, one module per kind."""
