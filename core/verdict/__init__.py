"""What a stream's skew asks for: nothing, placement, key splitting, or another key."""
