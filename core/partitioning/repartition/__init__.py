"""A stream replayed period by period: route, measure, rebuild, migrate."""
