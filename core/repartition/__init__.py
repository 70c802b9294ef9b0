"""Re-planning live: the splitter's loop on keys, replayed in a stage."""
