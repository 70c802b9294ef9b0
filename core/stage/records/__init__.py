"""The records that the compiled engine of the stage keeps."""
