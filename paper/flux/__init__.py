"""Claims of the Flux paper, tested with the stage simulator."""
