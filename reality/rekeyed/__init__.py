"""The same job on an engine three times: natural, pinned and split keys."""
