"""One partitioned stateful operator over sites, simulated tuple by tuple."""
