"""ESJ, adaptive workload: experiments and page."""
