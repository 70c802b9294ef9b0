"""Places of files: a disk, or an object store by its URI."""
