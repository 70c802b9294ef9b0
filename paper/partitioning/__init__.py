"""Claims of the paper on partitioning functions, tested, and results beyond it."""
