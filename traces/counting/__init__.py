"""Counting the keys of a trace on Spark, exactly or by lossy counting."""
