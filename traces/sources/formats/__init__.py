"""Source formats, one file each."""
