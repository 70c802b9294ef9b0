"""The page of a report and its charts."""
